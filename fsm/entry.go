package fsm

// Entry is one key: its value now, and the earlier ones still kept. An Entry is
// never changed after it entered a State; a write puts a new one in its place.
type Entry struct {
	Key            string
	CreateRevision uint64   // revision of the write that created the key, or created it again after a delete
	Now            *Value   // the newest value; a tombstone when the key is deleted
	Earlier        []*Value // newest first, bounded by Settings.History and MaxEarlierBytes
}

// Value is what one write left at a key. Values are shared between an Entry and
// its successors and never changed.
type Value struct {
	Data        []byte
	ContentType string
	Deleted     bool   // a tombstone: Data is empty, Version goes on
	Version     uint64 // writes to this key, counted from 1, deletes included
	Revision    uint64 // store-wide number of the change; the key's ETag
	Token       uint64 // fencing token the write carried, 0 for none
	RequestID   string
	Holder      string // holder the token was issued to, when known
	Author      string
	Reason      string
	WallMs      int64 // leader's wall clock in Unix milliseconds; only ever shown
}

// At returns the value the key had as of revision, and whether it is still
// kept. A revision before the oldest kept value is not.
func (e *Entry) At(revision uint64) (*Value, bool) {
	if e.Now.Revision <= revision {
		return e.Now, true
	}
	for _, v := range e.Earlier {
		if v.Revision <= revision {
			return v, true
		}
	}
	return nil, false
}

// successor returns the entry that follows e (nil for a new key) when v is
// written, keeping at most history earlier values within MaxEarlierBytes.
func (e *Entry) successor(key string, v *Value, history int64) *Entry {
	if e == nil {
		return &Entry{Key: key, CreateRevision: v.Revision, Now: v}
	}
	next := &Entry{Key: e.Key, CreateRevision: e.CreateRevision, Now: v}
	if e.Now.Deleted && !v.Deleted {
		next.CreateRevision = v.Revision
	}
	next.Earlier = keepEarlier(e.Now, e.Earlier, history)
	return next
}

func keepEarlier(now *Value, earlier []*Value, history int64) []*Value {
	if history <= 0 {
		return nil
	}
	kept := make([]*Value, 0, min(int64(len(earlier)+1), history))
	bytes := 0
	for i := -1; i < len(earlier) && int64(len(kept)) < history; i++ {
		v := now
		if i >= 0 {
			v = earlier[i]
		}
		bytes += len(v.Data)
		if bytes > MaxEarlierBytes {
			break
		}
		kept = append(kept, v)
	}
	return kept
}
