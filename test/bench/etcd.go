package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcd is three etcd members with their default settings but for a larger quota:
// the default of 2 GiB would end a run.
type etcd struct {
	trio
	endpoints []string
	// tuned is, for a kind of work and number of clients, how its client did best.
	tuned map[string]connecting
}

// connecting is how many client connections share the load, and where they go.
type connecting struct {
	Connections int
	LeaderOnly  bool
}

func newEtcd(binary, root string) (*etcd, error) {
	dir, err := scratch(root, "etcd")
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(6)
	if err != nil {
		return nil, err
	}
	s := &etcd{trio: trio{label: "etcd", dir: dir}, tuned: map[string]connecting{}}
	var cluster []string
	for i := range 3 {
		s.endpoints = append(s.endpoints, "http://"+addresses[2*i])
		cluster = append(cluster, fmt.Sprintf("e%d=http://%s", i+1, addresses[2*i+1]))
	}
	for i := range 3 {
		name := fmt.Sprintf("e%d", i+1)
		peer := "http://" + addresses[2*i+1]
		s.members = append(s.members, &process{
			name: name, path: binary, log: filepath.Join(dir, name+".log"),
			args: []string{
				"--name", name, "--data-dir", filepath.Join(dir, name),
				"--listen-client-urls", s.endpoints[i], "--advertise-client-urls", s.endpoints[i],
				"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
				"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-state", "new",
				"--quota-backend-bytes", "8589934592", "--log-level", "error",
			},
		})
	}
	return s, nil
}

func (s *etcd) start(ctx context.Context) error {
	return s.startAll(func() error { return s.poke(ctx, []int{0, 1, 2}) })
}

func (s *etcd) connect(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
}

func (s *etcd) leader(ctx context.Context) (found *process, term uint64, err error) {
	err = await(time.Minute, func() error {
		for i, endpoint := range s.endpoints {
			status, err := s.status(ctx, endpoint)
			if err == nil && status.Leader == status.Header.MemberId {
				found, term = s.members[i], status.RaftTerm
				return nil
			}
		}
		return errNoLeader
	})
	return found, term, err
}

func (s *etcd) status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	client, err := s.connect(endpoint)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return client.Status(ctx, endpoint)
}

// leaderFirst returns the endpoints, that of the leader first.
func (s *etcd) leaderFirst(ctx context.Context) ([]string, error) {
	leader, _, err := s.leader(ctx)
	if err != nil {
		return nil, err
	}
	ordered := []string{""}
	for i, m := range s.members {
		if m == leader {
			ordered[0] = s.endpoints[i]
		} else {
			ordered = append(ordered, s.endpoints[i])
		}
	}
	return ordered, nil
}

func (s *etcd) poke(ctx context.Context, members []int) error {
	return first(ctx, members, func(ctx context.Context, member int) error {
		client, err := s.connect(s.endpoints[member])
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = client.Put(ctx, "poke", "x")
		return err
	})
}
