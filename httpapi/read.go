package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// state returns the state the call reads from and says on the answer which it
// was: every acknowledged write is in it, unless the caller asked for a stale
// one, which comes with its age.
func (h *Handler) state(w http.ResponseWriter, c *call) (*fsm.State, wire.Read, error) {
	var state *fsm.State
	var age *int64
	switch c.query.Get("consistency") {
	case "linearizable":
	case "stale":
		local, behind := h.node.Stale()
		ms := behind.Milliseconds()
		state, age = local, &ms
		c.fields.setNumber(w.Header(), wire.HeaderAgeMs, uint64(ms))
	default:
		if c.query.Has("consistency") {
			return nil, wire.Read{}, invalid("consistency", "must be linearizable or stale")
		}
	}
	if state == nil {
		ctx, cancel := context.WithTimeout(c.Context(), h.cfg.ReadTimeout)
		defer cancel()
		var err error
		if state, err = h.node.Read(ctx); err != nil {
			return nil, wire.Read{}, err
		}
	}
	c.fields.setNumber(w.Header(), wire.HeaderRevision, state.Revision())
	return state, wire.Read{StoreRevision: state.Revision(), ClockMs: state.ClockMs(), AgeMs: age, Node: h.name}, nil
}

// getKey returns a value as it was stored, now or at an earlier revision, or
// with ?meta what is known of the key.
func (h *Handler) getKey(w http.ResponseWriter, c *call) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	revision, earlier, err := c.count("revision")
	if err != nil {
		return err
	}
	meta, err := c.flag("meta")
	if err != nil {
		return err
	}
	if meta && earlier {
		return invalid("revision", "and meta cannot be asked together")
	}
	known, hasKnown := value(c.Header, wire.HeaderIfNoneMatch)
	if hasKnown {
		if _, err := wire.ParseETag(known); err != nil {
			return invalid(wire.HeaderIfNoneMatch, "%v", err)
		}
	}
	state, read, err := h.state(w, c)
	if err != nil {
		return err
	}
	if earlier && revision > state.Revision() {
		return invalid("revision", "is above the store's, %d", state.Revision())
	}
	entry := state.Entry(key)
	if entry == nil {
		return keyNotFound(state, key)
	}
	version := entry.Now
	if earlier {
		if version, err = valueAt(state, entry, revision); err != nil {
			return err
		}
	}
	if version.Deleted && !meta {
		return keyNotFound(state, key)
	}
	maxToken, by := state.Enforced(key)
	c.describe(w.Header(), version, maxToken)
	switch {
	case hasKnown && known == wire.FormatETag(version.Revision):
		w.WriteHeader(http.StatusNotModified)
	case meta:
		writeOK(w, entryOf(entry, maxToken, by, read))
	default:
		c.writeValue(w, version)
	}
	return nil
}

// valueAt returns the value the key had as of revision. Before its first
// version it had none; what is no longer kept is another matter.
func valueAt(state *fsm.State, e *fsm.Entry, revision uint64) (*fsm.Value, error) {
	if v, kept := e.At(revision); kept {
		return v, nil
	}
	oldest := e.Now
	if n := len(e.Earlier); n > 0 {
		oldest = e.Earlier[n-1]
	}
	if oldest.Version == 1 {
		return nil, keyNotFound(state, e.Key)
	}
	return nil, &problem{code: wire.CodeCompacted, facts: wire.Facts{Key: e.Key, Revision: oldest.Revision}}
}

func keyNotFound(state *fsm.State, key string) *problem {
	maxToken, by := state.Enforced(key)
	return &problem{
		code: wire.CodeKeyNotFound, detail: strconv.Quote(key) + " does not exist",
		facts: wire.Facts{
			Key: key, Revision: state.Revision(), ClockMs: state.ClockMs(),
			MaxToken: maxToken, EnforcedBy: enforcement(by),
		},
	}
}

func (c *call) describe(header http.Header, v *fsm.Value, maxToken uint64) {
	c.fields.set(header, fieldETag, wire.FormatETag(v.Revision))
	c.fields.setNumber(header, wire.HeaderVersion, v.Version)
	c.fields.setNumber(header, wire.HeaderToken, v.Token)
	c.fields.setNumber(header, wire.HeaderMaxToken, maxToken)
}

var sandbox = []string{"default-src 'none'; sandbox"}

// writeValue sends the bytes with the type they were stored with. A browser is
// told to run nothing in them: anybody may have written them.
func (c *call) writeValue(w http.ResponseWriter, v *fsm.Value) {
	contentType := v.ContentType
	if contentType == "" {
		contentType = wire.TypeBytes
	}
	header := w.Header()
	c.fields.set(header, "Content-Type", contentType)
	header["Content-Security-Policy"] = sandbox
	c.fields.setNumber(header, "Content-Length", uint64(len(v.Data)))
	w.WriteHeader(http.StatusOK)
	w.Write(v.Data)
}

func entryOf(e *fsm.Entry, maxToken uint64, by *fsm.Enforcement, read wire.Read) *wire.Entry {
	history := make([]wire.ValueMeta, 0, len(e.Earlier))
	for _, v := range e.Earlier {
		history = append(history, metaOf(v))
	}
	return &wire.Entry{
		Key: e.Key, CreateRevision: e.CreateRevision, ValueMeta: metaOf(e.Now),
		MaxToken: maxToken, EnforcedBy: enforcement(by), History: history, Read: read,
	}
}

func metaOf(v *fsm.Value) wire.ValueMeta {
	return wire.ValueMeta{
		Revision: v.Revision, Version: v.Version, Deleted: v.Deleted,
		ContentType: v.ContentType, Size: len(v.Data),
		Token: v.Token, Holder: v.Holder, RequestID: v.RequestID,
		Author: v.Author, Reason: v.Reason, At: wire.FormatTime(v.WallMs),
	}
}
