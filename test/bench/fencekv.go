package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// fencekv is three fencekv processes with their default settings.
type fencekv struct {
	trio
	binary string
	http   []string // base URLs
	client *http.Client
}

// newFencekv lays out a cluster; extra are flags for every member.
func newFencekv(binary, root string, extra ...string) (*fencekv, error) {
	dir, err := scratch(root, "fencekv")
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(6)
	if err != nil {
		return nil, err
	}
	s := &fencekv{trio: trio{label: "fencekv", dir: dir}, binary: binary, client: &http.Client{Timeout: 10 * time.Second}}
	var peers []string
	for i := range 3 {
		s.http = append(s.http, "http://"+addresses[2*i])
		peers = append(peers, fmt.Sprintf("n%d=%s", i+1, s.http[i]))
	}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		s.members = append(s.members, &process{
			name: name, path: binary, log: filepath.Join(dir, name+".log"),
			args: append([]string{
				"serve", "--name", name, "--data", filepath.Join(dir, name),
				"--http", addresses[2*i], "--raft", addresses[2*i+1], "--peers", strings.Join(peers, ","),
			}, extra...),
		})
	}
	return s, nil
}

func (s *fencekv) start(ctx context.Context) error {
	return s.startAll(func() error { return s.poke(ctx, []int{0, 1, 2}) })
}

func (s *fencekv) get(ctx context.Context, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

func (s *fencekv) leader(ctx context.Context) (found *process, term uint64, err error) {
	err = await(time.Minute, func() error {
		for i, base := range s.http {
			var status struct {
				Role string `json:"role"`
				Term uint64 `json:"term"`
			}
			if s.get(ctx, base+"/v1/status", &status) == nil && status.Role == "leader" {
				found, term = s.members[i], status.Term
				return nil
			}
		}
		return errNoLeader
	})
	return found, term, err
}

func (s *fencekv) run(ctx context.Context, w work) (result, error) {
	args := []string{
		"--clients", strconv.Itoa(w.clients), "--duration", w.duration.String(), "--warmup", "0s",
		"--count", strconv.FormatInt(w.count, 10), "--keys", strconv.FormatInt(w.keys, 10),
		"--value-size", strconv.Itoa(w.size), "-o", "json",
	}
	if w.inOrder {
		args = append(args, "--sequential")
	}
	switch w.kind {
	case fencedWrite:
		args = append([]string{"bench", "put"}, args...)
	case followersWrites:
		args = append([]string{"bench", "put", "--to", "followers"}, args...)
	case plainWrite:
		args = append([]string{"bench", "put", "--plain", "--prefix", "plain"}, args...)
	case linearizable:
		args = append([]string{"bench", "get"}, args...)
	case staleRead:
		args = append([]string{"bench", "get", "--stale"}, args...)
	case acquireRelease:
		args = append([]string{"bench", "lock"}, args...)
	}
	return s.bench(ctx, args...)
}

// bench runs fencekv's own load tool.
func (s *fencekv) bench(ctx context.Context, args ...string) (result, error) {
	cmd := exec.CommandContext(ctx, s.binary, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "FENCEKV_ADDR="+strings.Join(s.http, ","))
	out, err := cmd.Output()
	if err != nil {
		return result{}, fmt.Errorf("%v: %w: %s", cmd.Args, err, stderr.String())
	}
	var report struct {
		Operations       int64
		Seconds          float64
		PerSecond        float64
		Latency          struct{ P50, P99, Max float64 }
		Service          struct{ P50, P99 float64 }
		Missed           int64
		Errors           map[string]int64
		ClientCPUSeconds float64
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return result{}, err
	}
	found := result{
		Operations: report.Operations, Seconds: report.Seconds, PerSecond: report.PerSecond,
		P50: report.Latency.P50, P99: report.Latency.P99, Max: report.Latency.Max,
		ServiceP50: report.Service.P50, ServiceP99: report.Service.P99, Missed: report.Missed, Codes: report.Errors,
		ClientCPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
	}
	for _, n := range report.Errors {
		found.Errors += n
	}
	return found, nil
}

func (s *fencekv) poke(ctx context.Context, members []int) error {
	return first(ctx, members, func(ctx context.Context, member int) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, s.http[member]+"/v1/kv/poke", strings.NewReader("x"))
		if err != nil {
			return err
		}
		response, err := s.client.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode/100 != 2 {
			return errors.New(response.Status)
		}
		return nil
	})
}

// first tries all members at once and returns with the first that works.
func first(ctx context.Context, members []int, try func(ctx context.Context, member int) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	tried := make(chan error, len(members))
	for _, m := range members {
		go func() { tried <- try(ctx, m) }()
	}
	var err error
	for range members {
		if err = <-tried; err == nil {
			return nil
		}
	}
	return err
}
