package fsm_test

import (
	"fmt"
	"testing"

	"github.com/fencekv/fencekv/fsm"
)

// loaded returns a batch over a state of so many keys, written by requests whose
// records are kept, and the log position it is at.
func loaded(keys int) (*fsm.Batch, uint64) {
	b := fsm.New().Begin()
	index := uint64(1)
	b.Apply(fsm.Position{Index: index, Term: 1}, &fsm.Command{Op: &fsm.Configure{Settings: fsm.DefaultSettings()}})
	for i := range keys {
		index++
		b.Apply(fsm.Position{Index: index, Term: 1}, benchPut(i, fmt.Sprintf("load-%d", i)))
	}
	return b, index
}

func benchPut(key int, id string) *fsm.Command {
	c := fsm.NewCommand(fsm.Request{ID: id}, &fsm.Put{Key: fmt.Sprintf("bench/%07d", key), Value: make([]byte, 256), Token: 1})
	c.Stamp = fsm.Stamp{Term: 1, ClockMs: 1, WallMs: 1}
	return c
}

// BenchmarkApply is a fenced, idempotent write. With a state taken behind each
// group of 64, as readers between groups cause it, the trees are copied as they
// change.
func BenchmarkApply(b *testing.B) {
	for _, keys := range []int{1_000, 100_000, 1_000_000} {
		for _, taken := range []bool{false, true} {
			b.Run(fmt.Sprintf("keys=%d/read=%t", keys, taken), func(b *testing.B) {
				batch, index := loaded(keys)
				commands := make([]*fsm.Command, b.N)
				for i := range commands {
					commands[i] = benchPut(i*7919%keys, fmt.Sprintf("%x-run", i*7919))
				}
				b.ReportAllocs()
				b.ResetTimer()
				for i, c := range commands {
					index++
					batch.Apply(fsm.Position{Index: index, Term: 1}, c)
					if taken && i%64 == 63 {
						batch.State()
					}
				}
			})
		}
	}
}

// BenchmarkCodec is a fenced write on its way into the log and out of it.
func BenchmarkCodec(b *testing.B) {
	command := benchPut(1, "0ecfefa3f5b54604bd5a12e3ef8b1207")
	entry := fsm.Encode(command)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(entry)))
		for b.Loop() {
			fsm.Encode(command)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(entry)))
		for b.Loop() {
			if _, err := fsm.Decode(entry); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("fingerprint", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			fsm.NewCommand(command.Request, command.Op)
		}
	})
}
