package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/fsm"
)

// serveConfig is what `fencekv serve` was asked for. The tags are the names of
// the flags, of the keys of the file, and, in capitals, of the environment.
type serveConfig struct {
	Name          string            `koanf:"name"`
	Data          string            `koanf:"data"`           // directory
	HTTP          string            `koanf:"http"`           // host:port to listen on
	Raft          string            `koanf:"raft"`           // host:port to listen on
	AdvertiseHTTP string            `koanf:"advertise-http"` // base URL; empty for the listener's own address
	AdvertiseRaft string            `koanf:"advertise-raft"` // host:port; empty for the listener's own address
	Peers         map[string]string `koanf:"peers"`          // name → base URL of every founder; empty without
	Join          string            `koanf:"join"`           // base URL; empty without

	RaftRTT          time.Duration `koanf:"raft-rtt"` // 1 ms to 1 s
	LogStore         string        `koanf:"log-store"`
	SnapshotInterval time.Duration `koanf:"snapshot-interval"`
	SnapshotEntries  uint64        `koanf:"snapshot-entries"`

	RequestRetention time.Duration `koanf:"request-retention"` // 1 s to 30 days of cluster clock
	MaxRequests      int64         `koanf:"max-requests"`
	History          int64         `koanf:"history"`
	MaxValue         int64         `koanf:"max-value"` // bytes
	ExternalTokens   bool          `koanf:"external-tokens"`

	LogLevel string `koanf:"log-level"`
	LogJSON  bool   `koanf:"log-json"`
	Pprof    string `koanf:"pprof"` // host:port to listen on; empty for none

	// Settings are the cluster-wide bounds this node asks for once it leads;
	// nil if none was given, which leaves those the cluster has.
	Settings *fsm.Settings `koanf:"-"`
}

// clusterWide are the flags that make up Settings.
var clusterWide = [...]string{"request-retention", "max-requests", "history", "max-value", "external-tokens"}

// complete derives what follows from the rest.
func (c *serveConfig) complete(given func(flag string) bool) {
	if c.AdvertiseHTTP == "" {
		c.AdvertiseHTTP = c.Peers[c.Name]
	}
	if slices.ContainsFunc(clusterWide[:], given) {
		c.Settings = &fsm.Settings{
			RequestRetentionMs: c.RequestRetention.Milliseconds(),
			MaxRequests:        c.MaxRequests,
			History:            c.History,
			MaxValue:           c.MaxValue,
			ExternalTokens:     c.ExternalTokens,
		}
	}
}

// validate checks each field and how they fit together.
func (c *serveConfig) validate() error {
	if err := cluster.CheckNodeName(c.Name); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	switch {
	case c.Data == "":
		return errors.New("--data is empty")
	case c.RaftRTT < time.Millisecond || c.RaftRTT > time.Second:
		return fmt.Errorf("--raft-rtt %s must be 1ms to 1s", c.RaftRTT)
	case c.LogStore != cluster.LogStoreWAL && c.LogStore != cluster.LogStoreBolt:
		return fmt.Errorf("--log-store %q must be wal or boltdb", c.LogStore)
	case c.SnapshotInterval < 5*time.Millisecond:
		return fmt.Errorf("--snapshot-interval %s must be at least 5ms", c.SnapshotInterval)
	case c.SnapshotEntries == 0:
		return errors.New("--snapshot-entries must be above 0")
	case hclog.LevelFromString(c.LogLevel) == hclog.NoLevel:
		return fmt.Errorf("--log-level %q must be trace, debug, info, warn, error or off", c.LogLevel)
	case len(c.Peers) > 0 && c.Join != "":
		return errors.New("--peers founds a cluster and --join enters one that exists; give one of them")
	}
	if err := c.validateSettings(); err != nil {
		return err
	}
	if err := c.validatePeers(); err != nil {
		return err
	}
	return c.validateAddresses()
}

func (c *serveConfig) validateSettings() error {
	switch {
	case c.RequestRetention < time.Second || c.RequestRetention > 30*24*time.Hour:
		return fmt.Errorf("--request-retention %s must be 1s to 720h", c.RequestRetention)
	case c.MaxRequests < 1 || c.MaxRequests > 100_000_000:
		return fmt.Errorf("--max-requests %d must be 1 to 100000000", c.MaxRequests)
	case c.History < 0 || c.History > 64:
		return fmt.Errorf("--history %d must be 0 to 64", c.History)
	case c.MaxValue < 1 || c.MaxValue > fsm.MaxValueBytes:
		return fmt.Errorf("--max-value %d must be 1 to %d", c.MaxValue, fsm.MaxValueBytes)
	}
	return nil
}

func (c *serveConfig) validatePeers() error {
	if c.Join != "" {
		if err := checkBaseURL(c.Join); err != nil {
			return fmt.Errorf("--join: %w", err)
		}
	}
	if len(c.Peers) == 0 {
		return nil
	}
	names := map[string]string{}
	for name, address := range c.Peers {
		if err := cluster.CheckNodeName(name); err != nil {
			return fmt.Errorf("--peers: %w", err)
		}
		if err := checkBaseURL(address); err != nil {
			return fmt.Errorf("--peers: %s: %w", name, err)
		}
		if other := names[address]; other != "" {
			return fmt.Errorf("--peers gives %s and %s the same address %s", min(name, other), max(name, other), address)
		}
		names[address] = name
	}
	switch own := c.Peers[c.Name]; {
	case own == "":
		return fmt.Errorf("--peers does not name this node, --name %s", c.Name)
	case own != c.AdvertiseHTTP:
		return fmt.Errorf("--advertise-http %s is not what --peers says of %s, %s", c.AdvertiseHTTP, c.Name, own)
	}
	return nil
}

func (c *serveConfig) validateAddresses() error {
	for _, listener := range []struct{ flag, address, advertiseFlag, advertised string }{
		{"--http", c.HTTP, "--advertise-http", c.AdvertiseHTTP},
		{"--raft", c.Raft, "--advertise-raft", c.AdvertiseRaft},
	} {
		host, _, err := net.SplitHostPort(listener.address)
		if err != nil {
			return fmt.Errorf("%s %q must be host:port", listener.flag, listener.address)
		}
		if ip := net.ParseIP(host); (host == "" || ip != nil && ip.IsUnspecified()) && listener.advertised == "" {
			return fmt.Errorf("%s %s listens on every address of this machine, so %s must say which one others reach",
				listener.flag, listener.address, listener.advertiseFlag)
		}
	}
	if _, port, err := net.SplitHostPort(c.HTTP); err == nil && c.HTTP == c.Raft && port != "0" {
		return fmt.Errorf("--http and --raft are both %s", c.HTTP)
	}
	if c.AdvertiseHTTP != "" {
		if err := checkBaseURL(c.AdvertiseHTTP); err != nil {
			return fmt.Errorf("--advertise-http: %w", err)
		}
	}
	if c.Pprof != "" {
		if _, _, err := net.SplitHostPort(c.Pprof); err != nil {
			return fmt.Errorf("--pprof %q must be host:port", c.Pprof)
		}
	}
	if c.AdvertiseRaft != "" {
		if host, port, err := net.SplitHostPort(c.AdvertiseRaft); err != nil || host == "" || port == "" {
			return fmt.Errorf("--advertise-raft %q must be host:port", c.AdvertiseRaft)
		}
	}
	return nil
}

// checkBaseURL refuses anything but scheme and host of a node.
func checkBaseURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%q must be a URL like %s", text, defaultAddr)
	}
	return nil
}
