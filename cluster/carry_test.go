package cluster

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/fsm/codec"
)

// TestReply: what the leader decided, or why it did not, comes out at the other
// end as it went in; bytes that say neither leave the outcome open.
func TestReply(t *testing.T) {
	decision := fsm.Decision{
		Op: fsm.KindPut, Outcome: fsm.OutcomeRefused, Code: fsm.StaleOwner, Resource: "k", Token: 5, MaxToken: 7,
		EnforcedBy: &fsm.Enforcement{Resource: "k", Token: 7, Holder: "B"}, Applied: &fsm.Applied{Revision: 3},
	}
	good, err := encodeReply(&decision, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeReply(good); err != nil || !reflect.DeepEqual(got, decision) {
		t.Errorf("%+v, %v, want %+v", got, err, decision)
	}
	for _, failed := range []*Error{
		{Reason: Overloaded, RetryAfter: time.Second},
		{Reason: Lost, Unknown: true},
		{Reason: TimedOut, Unknown: true, RetryAfter: 250 * time.Millisecond},
	} {
		reply, err := encodeReply(nil, failed)
		if err != nil {
			t.Fatal(err)
		}
		var got *Error
		if _, err := decodeReply(reply); !errors.As(err, &got) || *got != *failed {
			t.Errorf("%v, want %v", err, failed)
		}
	}
	if reply, err := encodeReply(nil, errBroken); err == nil {
		t.Errorf("an error that says nothing of the outcome was sent as %x", reply)
	}
	for _, bad := range [][]byte{nil, {7}, good[:len(good)-1], append(bytes.Clone(good), 0), {replyError}} {
		var got *Error
		if _, err := decodeReply(bad); !errors.As(err, &got) || !got.Unknown {
			t.Errorf("%x: %v, want an unknown outcome", bad, err)
		}
	}
}

// TestServeCarried: a node that does not lead carries nothing further, and what
// it cannot read or would not take from a client it takes from no node.
func TestServeCarried(t *testing.T) {
	payload := func(c *fsm.Command) []byte {
		var e codec.Encoder
		e.Int(60_000)
		e.Blob(fsm.Encode(c))
		return e.Bytes
	}
	n := leading(1, 1<<20)
	n.lead.Store(nil)
	reply, err := n.serveCarried(t.Context(), payload(command("r")))
	if err != nil {
		t.Fatal(err)
	}
	var failed *Error
	if _, err := decodeReply(reply); !errors.As(err, &failed) || failed.Unknown || len(n.queue) > 0 {
		t.Errorf("a follower took a carried command: %v", err)
	}
	n = leading(1, 1<<20)
	for name, bad := range map[string][]byte{
		"nothing":         nil,
		"no command":      {1, 0},
		"half":            payload(command("r"))[:30],
		"invalid command": payload(fsm.NewCommand(fsm.Request{ID: "r"}, &fsm.Put{Key: "//"})),
	} {
		if _, err := n.serveCarried(t.Context(), bad); err == nil || len(n.queue) > 0 {
			t.Errorf("%s: %v, %d proposed", name, err, len(n.queue))
		}
	}
}

// TestCarriedPatience: the leader works on a command no longer than its sender
// would wait for the answer.
func TestCarriedPatience(t *testing.T) {
	n := leading(1, 1<<20)
	var e codec.Encoder
	e.Int(1)
	e.Blob(fsm.Encode(command("r")))
	reply, err := n.serveCarried(t.Context(), e.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	var failed *Error
	if _, err := decodeReply(reply); !errors.As(err, &failed) || failed.Reason != TimedOut || failed.Unknown {
		t.Errorf("%v, want timed out and not applied", err)
	}
}

// TestOutboxBound: behind a peer that takes no bytes no more than the bound
// piles up.
func TestOutboxBound(t *testing.T) {
	to := listen(t, "b", "c1", echo)
	from := listen(t, "a", "c1", echo)
	conn, err := from.dial(kindPeer, to.Addr().String(), "b", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	out := &outbox{conn: conn, wake: make(chan struct{}, 1)} // nobody writes
	defer conn.Close()
	frame := make([]byte, 1<<20)
	taken := 0
	for out.add(1, methodPropose, frame) {
		taken += len(frame)
	}
	if taken == 0 || len(out.waiting) > maxWaiting+callHead*taken/len(frame) {
		t.Errorf("%d bytes wait, bound %d", len(out.waiting), maxWaiting)
	}
	out.end()
	if out.add(1, methodPropose, nil) {
		t.Error("took a frame after its end")
	}
}

// TestCarryOutcomes: a call that certainly never reached the leader is not
// applied; one that may have is unknown.
func TestCarryOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		cancel  bool
		reason  Reason
		unknown bool
	}{
		{"not sent", &NotSentError{errLineBroke}, false, NoLeader, false},
		{"lost", &LostError{errLineBroke}, false, Lost, true},
		{"remote", &RemoteError{"method unknown"}, false, Lost, true},
		{"caller gone", &LostError{context.Canceled}, true, TimedOut, true},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if c.cancel {
			cancel()
		}
		n := &Node{cfg: Config{Peers: callerFunc(func() ([]byte, error) { return nil, c.err })}}
		_, err := n.carryTo(ctx, time.Minute, raft.Server{ID: "n1-1", Address: "x"}, command("r"))
		cancel()
		var failed *Error
		if !errors.As(err, &failed) || failed.Reason != c.reason || failed.Unknown != c.unknown {
			t.Errorf("%s: %v, want %s, unknown %v", c.name, err, c.reason, c.unknown)
		}
	}
}

// callerFunc is a PeerCaller with one answer.
type callerFunc func() ([]byte, error)

func (f callerFunc) Call(context.Context, raft.ServerID, raft.ServerAddress, byte, []byte) ([]byte, error) {
	return f()
}
