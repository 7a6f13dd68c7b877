package httpapi

import (
	"net/http"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// maxListBytes ends a page of values early, in bytes of values.
const maxListBytes = 4 << 20

// listKeys returns one page of the keys under a prefix, all of one state.
func (h *Handler) listKeys(w http.ResponseWriter, c *call) error {
	prefix, after, limit, err := c.page()
	if err != nil {
		return err
	}
	values, err := c.flag("values")
	if err != nil {
		return err
	}
	state, read, err := h.state(w, c)
	if err != nil {
		return err
	}
	page := wire.List{Keys: []wire.ListedKey{}, Read: read}
	bytes := 0
	for e := range state.Entries(prefix, after) {
		if e.Now.Deleted {
			continue
		}
		if n := len(page.Keys); n == limit || n > 0 && values && bytes+len(e.Now.Data) > maxListBytes {
			page.Next = page.Keys[n-1].Key
			break
		}
		listed := wire.ListedKey{Key: e.Key, CreateRevision: e.CreateRevision, ValueMeta: metaOf(e.Now)}
		if values {
			listed.Value = wire.MakeValue(e.Now.Data)
			bytes += len(e.Now.Data)
		}
		page.Keys = append(page.Keys, listed)
	}
	writeOK(w, &page)
	return nil
}

// page reads what bounds a page of a list.
func (c *call) page() (prefix, after string, limit int, err error) {
	if prefix, err = c.start("prefix"); err != nil {
		return "", "", 0, err
	}
	if after, err = c.start("after"); err != nil {
		return "", "", 0, err
	}
	if limit, err = c.limit(); err != nil {
		return "", "", 0, err
	}
	return prefix, after, limit, nil
}
