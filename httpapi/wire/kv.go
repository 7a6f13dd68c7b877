package wire

import (
	"errors"
	"unicode/utf8"
)

// Receipt is the part all answers to accepted mutations share.
type Receipt struct {
	Outcome   Outcome `json:"outcome"` // applied
	Replayed  bool    `json:"replayed"`
	RequestID string  `json:"requestId,omitempty"` // absent for a numbered write without one
	Revision  uint64  `json:"revision"`
	ClockMs   int64   `json:"clockMs"`
	At        string  `json:"at,omitempty"`
	Node      string  `json:"node"`
}

// Written answers an accepted put or delete.
type Written struct {
	Key      string `json:"key"`
	Version  uint64 `json:"version"`
	Created  bool   `json:"created"`
	Deleted  bool   `json:"deleted,omitempty"`
	Token    uint64 `json:"token,omitempty"`
	MaxToken uint64 `json:"maxToken,omitempty"`
	Receipt
}

// Value carries bytes in JSON: as text where they are UTF-8, else as base64.
// Exactly one of the fields is set where a value is present.
type Value struct {
	Value       *string `json:"value,omitempty"`
	ValueBase64 *[]byte `json:"valueBase64,omitempty"`
}

// ErrValue is returned where a value is missing or given twice.
var ErrValue = errors.New("must be given once: as text, or as base64")

// MakeValue returns data as a Value.
func MakeValue(data []byte) Value {
	if utf8.Valid(data) {
		text := string(data)
		return Value{Value: &text}
	}
	return Value{ValueBase64: &data}
}

// Bytes returns the bytes v carries.
func (v Value) Bytes() ([]byte, error) {
	switch {
	case v.Value != nil && v.ValueBase64 == nil:
		return []byte(*v.Value), nil
	case v.Value == nil && v.ValueBase64 != nil:
		return *v.ValueBase64, nil
	}
	return nil, ErrValue
}

// ValueMeta is what one write left at a key, but for the bytes.
type ValueMeta struct {
	Revision    uint64 `json:"revision"`
	Version     uint64 `json:"version"`
	Deleted     bool   `json:"deleted,omitempty"` // a delete, not a write
	ContentType string `json:"contentType,omitempty"`
	Size        int    `json:"size"`
	Token       uint64 `json:"token,omitempty"`
	Holder      string `json:"holder,omitempty"` // to whom the token was issued
	RequestID   string `json:"requestId,omitempty"`
	Author      string `json:"author,omitempty"`
	Reason      string `json:"reason,omitempty"`
	At          string `json:"at,omitempty"`
}

// Entry answers GET of a key with ?meta: the newest write, deletes included,
// and the earlier ones whose values are still kept (?revision=N reads them).
type Entry struct {
	Key            string `json:"key"`
	CreateRevision uint64 `json:"createRevision"`
	ValueMeta
	MaxToken   uint64       `json:"maxToken,omitempty"`
	EnforcedBy *Enforcement `json:"enforcedBy,omitempty"`
	History    []ValueMeta  `json:"history"` // newest first
	Read
}

// Read is the part all answers to reads share.
type Read struct {
	StoreRevision uint64 `json:"storeRevision"`   // of the state that was read
	ClockMs       int64  `json:"clockMs"`         // its cluster clock
	AgeMs         *int64 `json:"ageMs,omitempty"` // of a stale read: since the leader was last heard
	Node          string `json:"node"`
}

// List answers GET of the keys under a prefix: one page, in order of key, of
// one state.
type List struct {
	Keys []ListedKey `json:"keys"`
	Next string      `json:"next,omitempty"` // send it as after for the next page; absent on the last
	Read
}

// ListedKey is one key of a List. Its value is there with ?values=true.
type ListedKey struct {
	Key            string `json:"key"`
	CreateRevision uint64 `json:"createRevision"`
	ValueMeta
	Value
}
