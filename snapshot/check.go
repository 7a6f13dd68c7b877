package snapshot

import (
	"encoding/binary"
	"errors"

	"github.com/fencekv/fencekv/fsm"
)

var (
	errOrder    = errors.New("out of order")
	errNoHeader = errors.New("the header is missing or stands twice")
	errNumber   = errors.New("number above what the header says")
	errShape    = errors.New("fields contradict each other")
)

// checker holds what a State promises against each record, beyond what the
// checksum can tell: a file with a right sum may still be one that a faulty
// build wrote.
type checker struct {
	header fsm.Header
	begun  bool
	kind   kind
	key    string
	seq    uint64
	live   int64
	locks  int64
}

func (c *checker) begin(h fsm.Header) error {
	if c.begun {
		return errNoHeader
	}
	c.header, c.begun, c.kind = h, true, kindHeader
	if h.Revision > fsm.MaxNumber || h.Token > fsm.MaxNumber || h.ClockMs < 0 || h.Horizon > h.Revision {
		return errNumber
	}
	return nil
}

func (c *checker) record(k kind, record any) error {
	if !c.begun {
		return errNoHeader
	}
	switch record := record.(type) {
	case *fsm.Entry:
		return errors.Join(c.order(k, record.Key), c.entry(record))
	case *fsm.Fence:
		return errors.Join(c.order(k, record.Resource), c.fence(record))
	case *fsm.Absent:
		return c.order(k, record.Prefix)
	case *fsm.Record:
		return errors.Join(c.order(k, rising(record.Revision)), c.request(record))
	case *fsm.Waiter:
		return errors.Join(c.order(k, record.Resource+"\x00"+record.RequestID), c.waiter(record))
	case *fsm.Member:
		return c.order(k, record.Name)
	case *fsm.Event:
		return c.event(k, record)
	}
	return nil
}

// rising returns text that sorts as v does.
func rising(v uint64) string { return string(binary.BigEndian.AppendUint64(nil, v)) }

// order insists on rising kinds and, within a kind, rising keys.
func (c *checker) order(k kind, key string) error {
	if k < c.kind || k == c.kind && key <= c.key || key == "" {
		return errOrder
	}
	c.kind, c.key = k, key
	return nil
}

func (c *checker) entry(e *fsm.Entry) error {
	if !e.Now.Deleted {
		c.live++
	}
	last := e.Now
	if last.Revision > c.header.Revision {
		return errNumber
	}
	for _, v := range e.Earlier {
		if v.Revision >= last.Revision || v.Version >= last.Version {
			return errShape
		}
		last = v
	}
	return nil
}

func (c *checker) fence(f *fsm.Fence) error {
	if f.MaxToken > fsm.MaxNumber || f.Issued > c.header.Token || (f.MaxToken == 0) != (f.Enforced == nil) {
		return errNumber
	}
	last := uint64(0)
	for _, issue := range f.Issues {
		if issue.Token <= last || issue.Token < f.MaxToken {
			return errShape
		}
		last = issue.Token
	}
	if f.Lock != nil {
		c.locks++
		if f.Lock.Token > f.Issued || f.Lock.LeaseID == "" {
			return errShape
		}
	}
	return nil
}

func (c *checker) request(r *fsm.Record) error {
	if !fsm.CheckRecordKey(r.Key) || r.Verdict < fsm.VerdictApplied || r.Verdict > fsm.VerdictSealed {
		return errShape
	}
	if r.Revision > c.header.Revision {
		return errNumber
	}
	return nil
}

func (c *checker) waiter(w *fsm.Waiter) error {
	if w.Order > c.header.Revision || w.LeaseID == "" {
		return errShape
	}
	return nil
}

func (c *checker) event(k kind, e *fsm.Event) error {
	if k < c.kind || e.Seq <= c.seq || e.Seq > c.header.EventSeq {
		return errOrder
	}
	c.kind, c.seq = k, e.Seq
	return nil
}

func (c *checker) end() error {
	if !c.begun {
		return errNoHeader
	}
	return nil
}
