package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/fsm"
)

// Node is the part of *cluster.Node this package needs. Its errors are
// *fsm.InvalidError or *cluster.Error, possibly wrapped.
type Node interface {
	Propose(ctx context.Context, patience time.Duration, c *fsm.Command) (fsm.Decision, error)
	Await(ctx context.Context, resource, requestID string) (fsm.Decision, error)
	Read(ctx context.Context) (*fsm.State, error)
	Stale() (*fsm.State, time.Duration)
	Settings() fsm.Settings
	IsLeader() bool
	Leader() (cluster.Peer, bool)
	Status() cluster.Status
	Members() []cluster.MemberStatus
	Join(ctx context.Context, j cluster.Joiner) (cluster.Joined, error)
	Remove(ctx context.Context, name string) error
	Transfer(ctx context.Context, name string) error
	Hello() cluster.Hello
}

var _ Node = (*cluster.Node)(nil)

// Config says what a Handler serves and within which bounds.
type Config struct {
	Node   Node         // required
	Logger hclog.Logger // default: discards

	// Hosts are further names under which callers may reach the node, beside
	// loopback, its own advertised address and those of the members.
	Hosts []string

	// ProposeTimeout bounds how long a mutation waits for its decision, not
	// counting the wait of an acquire. Default 10 s.
	ProposeTimeout time.Duration
	// ReadTimeout bounds how long a linearizable read waits. Default 10 s.
	ReadTimeout time.Duration
	// MemberTimeout bounds a change of members. Default 60 s.
	MemberTimeout time.Duration
	// BodyTimeout bounds how long a caller may take to send a body. Default 30 s.
	BodyTimeout time.Duration

	// MaxRequests bounds the requests under way, waiting acquires included.
	// Default 16,384.
	MaxRequests int64
	// MaxBodies bounds the bytes of all request bodies held at one time.
	// Default 256 MiB.
	MaxBodies int64
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&c.ProposeTimeout, 10 * time.Second},
		{&c.ReadTimeout, 10 * time.Second},
		{&c.MemberTimeout, time.Minute},
		{&c.BodyTimeout, 30 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.standard
		}
	}
	if c.MaxRequests == 0 {
		c.MaxRequests = 16_384
	}
	if c.MaxBodies == 0 {
		c.MaxBodies = 256 << 20
	}
	return c
}

func (c Config) validate() error {
	if c.Node == nil {
		return errors.New("Node is required")
	}
	for name, d := range map[string]time.Duration{
		"ProposeTimeout": c.ProposeTimeout, "ReadTimeout": c.ReadTimeout,
		"MemberTimeout": c.MemberTimeout, "BodyTimeout": c.BodyTimeout,
	} {
		if d < 0 {
			return fmt.Errorf("%s is negative", name)
		}
	}
	if c.MaxRequests < 0 {
		return errors.New("MaxRequests is negative")
	}
	if least := int64(maxTxnBody); c.MaxBodies < least {
		return fmt.Errorf("MaxBodies %d is below %d, one transaction", c.MaxBodies, least)
	}
	return nil
}
