package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// tellResend is story c: the same request ID again, with the same body, with
// another, and by the next holder.
func tellResend(d *drill) error {
	key := d.key("resend")
	a, err := d.acquire(key, "A", time.Second, "write")
	if err != nil {
		return err
	}
	id := token(a.Token).with(wire.HeaderIdempotencyKey, "save-1")
	first, err := d.put(key, "the result", id)
	if err != nil {
		return err
	}
	again, err := d.put(key, "the result", id)
	if err != nil {
		return err
	}
	d.expect("the write", "201 applied", first.verdict(), position(first))
	d.expect("the same again", "201 replayed, "+position(first), again.verdict()+", "+position(again),
		"Idempotency-Replayed: "+again.header.Get(wire.HeaderReplayed))
	other, err := d.put(key, "another result", id)
	if err != nil {
		return err
	}
	d.expect("another body under the same ID", "422 request_mismatch, refused", other.verdict(), other.problem.Detail)

	b, err := d.acquire(key, "B", 30*time.Second, "write")
	if err != nil {
		return err
	}
	before, err := d.lock(key)
	if err != nil {
		return err
	}
	finished, err := d.put(key, "the result", token(b.Token).with(wire.HeaderIdempotencyKey, "save-1"))
	if err != nil {
		return err
	}
	after, err := d.lock(key)
	if err != nil {
		return err
	}
	d.expect("the next holder finishes it under the same ID", "201 replayed, "+position(first),
		finished.verdict()+", "+position(finished), "")
	d.expect("its token is enforced from then on", fmt.Sprintf("maxToken %d → %d", a.Token, b.Token),
		fmt.Sprintf("maxToken %d → %d", before.MaxToken, after.MaxToken), "")
	d.expect("one effect", `"the result" version 1`, d.value(key), "")
	return nil
}

func position(r reply) string {
	return fmt.Sprintf("revision %s version %s", r.header.Get(wire.HeaderRevision), r.header.Get(wire.HeaderVersion))
}

// tellAnswerLost is story d: the change is committed, the answer never arrives.
func tellAnswerLost(d *drill) error {
	key := d.key("lost")
	lock, err := d.loseAcquire(key)
	if err != nil {
		return err
	}
	if err := d.loseRenew(key, lock); err != nil {
		return err
	}
	if err := d.loseWrite(key, lock); err != nil {
		return err
	}
	return d.loseFenced(key, lock)
}

// loseAcquire loses the answer to an acquire and resends it.
func (d *drill) loseAcquire(key string) (wire.Granted, error) {
	var lock wire.Granted
	body, err := json.Marshal(wire.Acquire{Holder: "A", TTLMs: 3_000})
	if err != nil {
		return lock, err
	}
	header := fields{wire.HeaderIdempotencyKey: "lost-acquire", "Content-Type": wire.TypeJSON}
	if err := d.hangUp(http.MethodPost, acquirePath(key), string(body), header); err != nil {
		return lock, err
	}
	held, err := d.lock(key)
	if err != nil {
		return lock, err
	}
	r, err := d.call(http.MethodPost, acquirePath(key), body, header)
	if err != nil {
		return lock, err
	}
	if err := r.decode(&lock); err != nil {
		return lock, err
	}
	d.expect("acquire, answer lost, resent", fmt.Sprintf("replayed, token %d", held.Token),
		fmt.Sprintf("%s, token %d", r.header.Get(wire.HeaderOutcome), lock.Token), "the same lease, held once")
	return lock, nil
}

func (d *drill) loseRenew(key string, lock wire.Granted) error {
	body, err := json.Marshal(wire.Renew{LeaseID: lock.LeaseID, TTLMs: 2_000})
	if err != nil {
		return err
	}
	header := fields{wire.HeaderIdempotencyKey: "lost-renew", "Content-Type": wire.TypeJSON}
	path := "/v1/renew/" + escape(key)
	if err := d.hangUp(http.MethodPost, path, string(body), header); err != nil {
		return err
	}
	r, err := d.call(http.MethodPost, path, body, header)
	if err != nil {
		return err
	}
	var renewed wire.Renewed
	if err := r.decode(&renewed); err != nil {
		return err
	}
	d.expect("renew, answer lost, resent", "200 replayed", r.verdict(),
		fmt.Sprintf("%d ms of the first renewal remain", renewed.RemainingMs))
	return nil
}

func (d *drill) loseWrite(key string, lock wire.Granted) error {
	header := token(lock.Token).with(wire.HeaderIdempotencyKey, "lost-write").with("Content-Type", "text/plain")
	if err := d.hangUp(http.MethodPut, kvPath(key), "A's result", header); err != nil {
		return err
	}
	r, err := d.put(key, "A's result", header)
	if err != nil {
		return err
	}
	d.expect("write, answer lost, resent", "201 replayed", r.verdict(), position(r))
	d.expect("one effect", `"A's result" version 1`, d.value(key), "")
	return nil
}

// loseFenced: the sender whose answer was lost is fenced out before it resends;
// the refusal tells it that its write did apply.
func (d *drill) loseFenced(key string, a wire.Granted) error {
	b, err := d.acquire(key, "B", 30*time.Second, "issue")
	if err != nil {
		return err
	}
	if _, err := d.put(key, "B's result", token(b.Token)); err != nil {
		return err
	}
	r, err := d.put(key, "A's result", token(a.Token).with(wire.HeaderIdempotencyKey, "lost-write"))
	if err != nil {
		return err
	}
	seen := r.verdict()
	if r.problem.Applied != nil {
		seen += fmt.Sprintf(", applied as version %d", r.problem.Applied.Version)
	}
	d.expect("B takes over and writes; A resends its write", "409 stale_owner, refused, applied as version 1", seen, whoFenced(r.problem))
	d.expect("nothing came back", `"B's result" version 2`, d.value(key), "")
	return nil
}
