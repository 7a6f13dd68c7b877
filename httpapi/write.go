package httpapi

import (
	"net/http"
	"strings"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// putKey writes the raw body to a key.
func (h *Handler) putKey(w http.ResponseWriter, c *call) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	terms, err := writeTerms(c.Header)
	if err != nil {
		return err
	}
	contentType, err := contentType(c.Header)
	if err != nil {
		return err
	}
	if err := h.read(w, c, h.node.Settings().MaxValue); err != nil {
		return err
	}
	return h.submit(w, c, &fsm.Put{
		Key: key, Value: c.body, ContentType: contentType,
		If: terms.condition, Token: terms.token, Sequence: terms.sequence,
	}, 0)
}

// deleteKey leaves a tombstone.
func (h *Handler) deleteKey(w http.ResponseWriter, c *call) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	terms, err := writeTerms(c.Header)
	if err != nil {
		return err
	}
	if err := h.readNothing(w, c); err != nil {
		return err
	}
	return h.submit(w, c, &fsm.Delete{Key: key, If: terms.condition, Token: terms.token, Sequence: terms.sequence}, 0)
}

// terms are what a write of one key depends on.
type terms struct {
	condition fsm.Condition
	token     uint64 // 0 for none
	sequence  uint64 // 0 for none
}

func writeTerms(header http.Header) (t terms, err error) {
	if t.condition, err = condition(header); err != nil {
		return terms{}, err
	}
	if t.token, _, err = number(header, wire.HeaderToken, 1); err != nil {
		return terms{}, err
	}
	if t.sequence, _, err = number(header, wire.HeaderSequence, 1); err != nil {
		return terms{}, err
	}
	return t, nil
}

// contentType returns the content type a value is to be kept with.
func contentType(header http.Header) (string, error) {
	text, given := value(header, "Content-Type")
	switch {
	case !given:
		return "", nil
	case text == "" || len(text) > fsm.MaxContentTypeBytes:
		return "", invalid("Content-Type", "must be 1 to %d bytes", fsm.MaxContentTypeBytes)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", invalid("Content-Type", "must be visible ASCII")
	}
	return text, nil
}
