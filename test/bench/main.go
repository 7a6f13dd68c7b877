// Command bench measures fencekv on this machine, as processes and over its API,
// and holds it against etcd doing the same work:
//
//	bench peers      the table of ratios against etcd
//	bench overload   what three times its capacity does to a node
//	bench growth     what much of anything does to a write and a read
//	bench endurance  what full rate for long leaves behind
//
// Each writes its part of docs/performance.md and its plots next to it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// options are common to all commands.
type options struct {
	fencekv  string        // binary
	etcd     string        // binary
	data     string        // directory on the disk to measure
	docs     string        // directory of performance.md; empty to print only
	rounds   int           // of each measurement
	duration time.Duration // of one
	keys     int64         // of the large state
	only     string        // part of the names of the cells to measure; empty for all
	quick    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, *options) error{
		"peers": peers, "overload": overload, "growth": growth, "endurance": endurance,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("which of peers, overload, growth, endurance?")
	}
	var o options
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.StringVar(&o.fencekv, "fencekv", "../../bin/fencekv", "`binary` under measurement")
	f.StringVar(&o.etcd, "etcd", "../../bin/etcd", "`binary` to compare with")
	f.StringVar(&o.data, "data", "../../bin/bench-data", "scratch `directory`, on the disk to measure")
	f.StringVar(&o.docs, "docs", "", "`directory` whose performance.md takes the results; empty to print them only")
	f.IntVar(&o.rounds, "rounds", 3, "`times` to measure each thing")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "how long to measure one thing")
	f.Int64Var(&o.keys, "keys", 1_000_000, "`number` of keys of the large state")
	f.StringVar(&o.only, "only", "", "measure what holds this `text` in its name, and no failover")
	f.BoolVar(&o.quick, "quick", false, "leave out the large state, and calibrate nothing")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	var err error
	if o.fencekv, err = filepath.Abs(o.fencekv); err != nil {
		return err
	}
	if o.etcd, err = filepath.Abs(o.etcd); err != nil {
		return err
	}
	return commands[args[0]](ctx, &o)
}
