package main

import (
	"fmt"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// tellRelease is story e: what frees a lock and what does not.
func tellRelease(d *drill) error {
	key := d.key("release")
	a, err := d.acquire(key, "A", time.Second, "issue")
	if err != nil {
		return err
	}
	b, err := d.acquire(key, "B", 30*time.Second, "issue")
	if err != nil {
		return err
	}
	path := "/v1/release/" + escape(key)
	for _, try := range []struct{ step, lease, expected string }{
		{"release by name only", "", "400 invalid_request, not_applied"},
		{"release by a foreign lease", "0123456789abcdef", "409 not_holder, refused"},
		{"release by an expired lease", a.LeaseID, "409 not_holder, refused"},
	} {
		r, err := d.postJSON(path, wire.Release{LeaseID: try.lease}, nil)
		if err != nil {
			return err
		}
		lock, err := d.lock(key)
		if err != nil {
			return err
		}
		d.expect(try.step, try.expected+"; held by B", r.verdict()+"; held by "+lock.Holder, r.problem.Detail)
	}
	r, err := d.postJSON(path, wire.Release{LeaseID: b.LeaseID}, nil)
	if err != nil {
		return err
	}
	lock, err := d.lock(key)
	if err != nil {
		return err
	}
	d.expect("release by the right lease", "200 applied; free", r.verdict()+seenIf(lock.Held, "; held", "; free"), "")
	late, err := d.put(key, "late", token(b.Token))
	if err != nil {
		return err
	}
	d.expect("a late write under the released token", "409 token_retired, refused", late.verdict(), late.problem.Detail)
	return nil
}

// tellWrongTokens is story f: none of these may change anything.
func tellWrongTokens(d *drill) error {
	key, other := d.key("fenced"), d.key("other")
	a, err := d.acquire(key, "A", 30*time.Second, "issue")
	if err != nil {
		return err
	}
	if _, err := d.put(key, "A's", token(a.Token)); err != nil {
		return err
	}
	foreign, err := d.acquire(other, "A", 30*time.Second, "issue")
	if err != nil {
		return err
	}
	before, err := d.lock(key)
	if err != nil {
		return err
	}
	for _, try := range []struct {
		step     string
		header   fields
		expected string
	}{
		{"a plain write to a fenced key", nil, "428 token_required, refused"},
		{"a forged huge token", token(wire.MaxNumber), "422 token_not_issued, refused"},
		{"a token of another resource", token(foreign.Token), "422 token_not_issued, refused"},
		{"a token that is no number", fields{wire.HeaderToken: "0x1f"}, "400 invalid_request, not_applied"},
	} {
		r, err := d.put(key, "forged", try.header)
		if err != nil {
			return err
		}
		d.expect(try.step, try.expected, r.verdict(), r.problem.Detail)
	}
	after, err := d.lock(key)
	if err != nil {
		return err
	}
	d.expect("nothing changed", fmt.Sprintf(`"A's" version 1, maxToken %d`, before.MaxToken),
		fmt.Sprintf("%s, maxToken %d", d.value(key), after.MaxToken), "")
	return nil
}
