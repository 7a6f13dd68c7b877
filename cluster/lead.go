package cluster

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/fencekv/fencekv/fsm"
)

// leadership is this node's reign in one term. It exists only from the first
// Barrier of the term on, when every entry of earlier terms is applied here.
type leadership struct {
	term  uint64
	base  int64         // cluster clock at the Barrier, milliseconds
	since time.Duration // monotonic time then
	ended chan struct{}
}

// clock reckons the cluster clock. Only this node's monotonic time since its own
// Barrier goes in: elections make leases longer, never shorter.
func (l *leadership) clock(n *Node) int64 {
	return l.base + (n.cfg.Elapsed() - l.since).Milliseconds()
}

func (l *leadership) stamp(n *Node) fsm.Stamp {
	return fsm.Stamp{Term: l.term, ClockMs: l.clock(n), WallMs: n.cfg.Wall().UnixMilli()}
}

// tickEvery is how far the cluster clock may fall behind while a lease lives.
const tickEvery = time.Second

// leadLoop follows Raft's word on who leads. A receive on LeaderCh only means
// "look again": the channel keeps the newest value only, and leadership may be
// lost and regained between two looks.
func (n *Node) leadLoop() {
	r := n.raft.Load()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-n.ctx.Done():
			n.leave()
			return
		case <-n.down:
			n.leave()
			n.fail(&Error{Reason: Removed})
			return
		case <-r.LeaderCh():
		case <-n.wake:
		case <-timer.C:
		}
		n.look(r)
		timer.Reset(n.nextLook())
	}
}

func (n *Node) look(r *raft.Raft) {
	lead := n.lead.Load()
	leads, term := r.State() == raft.Leader, r.CurrentTerm()
	if lead != nil && (!leads || lead.term != term) {
		n.leave()
		lead = nil
	}
	if leads && lead == nil {
		lead = n.enter(r, term)
	}
	if lead != nil {
		n.tick(lead)
	}
}

// enter begins to lead: after the Barrier the state holds everything that was
// ever acknowledged. It returns nil when leadership did not last that long.
func (n *Node) enter(r *raft.Raft, term uint64) *leadership {
	var err error
	if !n.untilDown(func() { err = r.Barrier(0).Error() }) {
		return nil
	}
	if err != nil {
		n.log.Debug("barrier", "term", term, "error", err)
		return nil
	}
	if r.State() != raft.Leader || r.CurrentTerm() != term {
		return nil
	}
	lead := &leadership{term: term, base: n.store.head.Load().ClockMs, since: n.cfg.Elapsed(), ended: make(chan struct{})}
	n.lead.Store(lead)
	n.log.Info("leading", "term", term)
	n.run(func() { n.reign(lead) })
	return lead
}

func (n *Node) leave() {
	if lead := n.lead.Swap(nil); lead != nil {
		close(lead.ended)
		n.log.Info("no longer leading", "term", lead.term)
	}
}

// tick commits a tick when a deadline has passed, and at least every tickEvery
// while there is one: repeated elections must not keep a dead holder's lease
// alive. An idle store without deadlines commits nothing.
func (n *Node) tick(lead *leadership) {
	head := n.store.head.Load()
	now := lead.clock(n)
	if head.Deadline == 0 || now < head.Deadline && now-head.ClockMs < tickEvery.Milliseconds() {
		return
	}
	if _, err := n.commit(n.ctx, n.cfg.heartbeat(), &fsm.Command{Op: &fsm.Tick{}}); err != nil {
		n.log.Debug("tick", "error", err)
	}
}

// nextLook returns when the leader loop has to look again by itself.
func (n *Node) nextLook() time.Duration {
	const idle, retry = time.Second, 50 * time.Millisecond
	lead := n.lead.Load()
	if lead == nil {
		if r := n.raft.Load(); r.State() == raft.Leader {
			return retry // the Barrier failed, or the term moved on
		}
		return idle
	}
	head := n.store.head.Load()
	if head.Deadline == 0 {
		return idle
	}
	now := lead.clock(n)
	next := min(head.Deadline, head.ClockMs+tickEvery.Milliseconds()) - now
	return max(time.Millisecond, time.Duration(next)*time.Millisecond)
}

// reign does what a new leader owes the cluster: its ID, the settings its
// operator chose, and then, now and again, the promotion of caught-up members.
func (n *Node) reign(lead *leadership) {
	every := time.NewTicker(tickEvery)
	defer every.Stop()
	for {
		n.record(&fsm.Found{ClusterID: n.ClusterID()}, n.store.head.Load().ClusterID != "")
		if s := n.cfg.Settings; s != nil {
			n.record(&fsm.Configure{Settings: *s}, n.Settings() == *s)
		}
		n.promote()
		select {
		case <-lead.ended:
			return
		case <-every.C:
		}
	}
}

// record proposes op unless the state has it already.
func (n *Node) record(op fsm.Op, done bool) {
	if done {
		return
	}
	if _, err := n.commit(n.ctx, 2*n.cfg.heartbeat(), &fsm.Command{Op: op}); err != nil {
		n.log.Debug("record", "op", op.Kind(), "error", err)
	}
}
