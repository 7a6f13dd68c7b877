package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// The answers that come by the thousand write themselves as encoding/json would,
// but for the escapes of HTML, and several times as fast.

// AppendJSON appends w.
func (w *Written) AppendJSON(to []byte) []byte {
	to = appendString(append(to, `{"key":`...), w.Key)
	to = strconv.AppendUint(append(to, `,"version":`...), w.Version, 10)
	to = strconv.AppendBool(append(to, `,"created":`...), w.Created)
	if w.Deleted {
		to = append(to, `,"deleted":true`...)
	}
	if w.Token != 0 {
		to = strconv.AppendUint(append(to, `,"token":`...), w.Token, 10)
	}
	if w.MaxToken != 0 {
		to = strconv.AppendUint(append(to, `,"maxToken":`...), w.MaxToken, 10)
	}
	return append(w.Receipt.appendFields(to), '}')
}

// AppendJSON appends g.
func (g *Granted) AppendJSON(to []byte) []byte {
	to = appendString(append(to, `{"resource":`...), g.Resource)
	to = appendString(append(to, `,"holder":`...), g.Holder)
	to = strconv.AppendUint(append(to, `,"token":`...), g.Token, 10)
	to = appendString(append(to, `,"leaseId":`...), g.LeaseID)
	to = strconv.AppendInt(append(to, `,"ttlMs":`...), g.TTLMs, 10)
	to = strconv.AppendInt(append(to, `,"remainingMs":`...), g.RemainingMs, 10)
	to = appendString(append(to, `,"fence":`...), g.Fence)
	to = strconv.AppendUint(append(to, `,"maxToken":`...), g.MaxToken, 10)
	if g.Continuity {
		to = append(to, `,"continuity":true`...)
	}
	return append(g.Receipt.appendFields(to), '}')
}

// AppendJSON appends r.
func (r *Renewed) AppendJSON(to []byte) []byte {
	to = appendString(append(to, `{"resource":`...), r.Resource)
	if r.Holder != "" {
		to = appendString(append(to, `,"holder":`...), r.Holder)
	}
	to = strconv.AppendUint(append(to, `,"token":`...), r.Token, 10)
	to = strconv.AppendInt(append(to, `,"ttlMs":`...), r.TTLMs, 10)
	to = strconv.AppendInt(append(to, `,"remainingMs":`...), r.RemainingMs, 10)
	if r.MaxToken != 0 {
		to = strconv.AppendUint(append(to, `,"maxToken":`...), r.MaxToken, 10)
	}
	return append(r.Receipt.appendFields(to), '}')
}

// AppendJSON appends c.
func (c *Changed) AppendJSON(to []byte) []byte {
	to = appendString(append(to, `{"resource":`...), c.Resource)
	to = appendString(append(to, `,"code":`...), c.Code)
	if c.Holder != "" {
		to = appendString(append(to, `,"holder":`...), c.Holder)
	}
	if c.Token != 0 {
		to = strconv.AppendUint(append(to, `,"token":`...), c.Token, 10)
	}
	if c.MaxToken != 0 {
		to = strconv.AppendUint(append(to, `,"maxToken":`...), c.MaxToken, 10)
	}
	return append(c.Receipt.appendFields(to), '}')
}

func (r *Receipt) appendFields(to []byte) []byte {
	to = appendString(append(to, `,"outcome":`...), string(r.Outcome))
	to = strconv.AppendBool(append(to, `,"replayed":`...), r.Replayed)
	if r.RequestID != "" {
		to = appendString(append(to, `,"requestId":`...), r.RequestID)
	}
	to = strconv.AppendUint(append(to, `,"revision":`...), r.Revision, 10)
	to = strconv.AppendInt(append(to, `,"clockMs":`...), r.ClockMs, 10)
	if r.At != "" {
		to = appendString(append(to, `,"at":`...), r.At)
	}
	return appendString(append(to, `,"node":`...), r.Node)
}

// appendString leaves whatever may need an escape to encoding/json.
func appendString(to []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendEscaped(to, s)
		}
	}
	return append(append(append(to, '"'), s...), '"')
}

func appendEscaped(to []byte, s string) []byte {
	buffer := bytes.NewBuffer(to)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string always has a JSON form
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}
