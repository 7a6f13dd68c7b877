package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fencekv/fencekv/fsm"
)

// loadLine loads the configuration of a serve command line; %FILE in it stands
// for a file with the text.
func loadLine(t *testing.T, file string, environ []string, args ...string) (serveConfig, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "fencekv.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, environ: environ}
	cmd := a.serveCommand()
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return loadServeConfig(cmd.LocalNonPersistentFlags(), environ)
}

func standardServeConfig() serveConfig {
	return serveConfig{
		Name: "n1", Data: "data", HTTP: "127.0.0.1:8700", Raft: "127.0.0.1:8701",
		Peers: map[string]string{}, RaftRTT: 10 * time.Millisecond, LogStore: "wal",
		SnapshotInterval: 15 * time.Second, SnapshotEntries: 16_384,
		RequestRetention: 10 * time.Minute, MaxRequests: 1_000_000, History: 8, MaxValue: 256 << 10,
		ExternalTokens: true, LogLevel: "info",
	}
}

func TestServeConfig(t *testing.T) {
	peers := map[string]string{"n1": "http://a:8700", "n2": "http://b:8700"}
	for name, c := range map[string]struct {
		file    string
		environ []string
		args    []string
		want    func(*serveConfig)
	}{
		"nothing given": {want: func(*serveConfig) {}},
		"a flag before the environment before the file": {
			file:    "data: file\nname: file\nlog-level: warn\n",
			environ: []string{"FENCEKV_DATA=environment", "FENCEKV_NAME=environment"},
			args:    []string{"--data", "flag"},
			want:    func(c *serveConfig) { c.Data, c.Name, c.LogLevel = "flag", "environment", "warn" },
		},
		"every kind of value from the environment": {
			environ: []string{
				"FENCEKV_RAFT_RTT=20ms", "FENCEKV_SNAPSHOT_ENTRIES=5", "FENCEKV_LOG_JSON=true",
				"FENCEKV_PEERS=n1=http://a:8700, n2=http://b:8700/", "FENCEKV_ADDR=http://of.the.client",
			},
			want: func(c *serveConfig) {
				c.RaftRTT, c.SnapshotEntries, c.LogJSON = 20*time.Millisecond, 5, true
				c.Peers, c.AdvertiseHTTP = peers, "http://a:8700"
			},
		},
		"every kind of value from the file": {
			file: "raft-rtt: 20ms\nsnapshot-entries: 5\nlog-json: true\npeers: {n1: 'http://a:8700', n2: 'http://b:8700'}\n",
			want: func(c *serveConfig) {
				c.RaftRTT, c.SnapshotEntries, c.LogJSON = 20*time.Millisecond, 5, true
				c.Peers, c.AdvertiseHTTP = peers, "http://a:8700"
			},
		},
		"one cluster-wide setting asks for all, the others as by default": {
			environ: []string{"FENCEKV_HISTORY=3"},
			want: func(c *serveConfig) {
				s := fsm.DefaultSettings()
				s.History = 3
				c.History, c.Settings = 3, &s
			},
		},
		"a setting given as it is by default is given": {
			args: []string{"--external-tokens=true"},
			want: func(c *serveConfig) {
				s := fsm.DefaultSettings()
				c.Settings = &s
			},
		},
		"settings from the file": {
			file: "request-retention: 1h\nexternal-tokens: false\n",
			want: func(c *serveConfig) {
				s := fsm.DefaultSettings()
				s.RequestRetentionMs, s.ExternalTokens = 3_600_000, false
				c.RequestRetention, c.ExternalTokens, c.Settings = time.Hour, false, &s
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := standardServeConfig()
			c.want(&want)
			got, err := loadLine(t, c.file, c.environ, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// Each refusal names the setting, and both where two contradict each other.
func TestServeConfigRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		environ []string
		args    []string
		words   []string
	}{
		"unknown key":          {file: "hisory: 3", words: []string{"hisory"}},
		"config within config": {file: "config: x", words: []string{"config"}},
		"broken file":          {file: "a: [", words: []string{"--config"}},
		"no unit in file":      {file: "raft-rtt: 10", words: []string{"raft-rtt", "unit"}},
		"no number":            {environ: []string{"FENCEKV_HISTORY=many"}, words: []string{"history"}},
		"truth for a number":   {file: "history: true", words: []string{"history"}},
		"number for a truth":   {file: "log-json: 1", words: []string{"log-json"}},
		"peers and join":       {args: []string{"--peers", "n1=http://a:1", "--join", "http://b:1"}, words: []string{"--peers", "--join"}},
		"peers without itself": {args: []string{"--peers", "n2=http://a:1", "--name", "n1"}, words: []string{"--peers", "--name"}},
		"peers twice":          {args: []string{"--peers", "n1=http://a:1,n1=http://b:1"}, words: []string{"peers", "n1"}},
		"peers of one address": {args: []string{"--peers", "n1=http://a:1,n2=http://a:1"}, words: []string{"--peers", "n1", "n2"}},
		"peers and advertise":  {args: []string{"--peers", "n1=http://a:1", "--advertise-http", "http://b:1"}, words: []string{"--peers", "--advertise-http"}},
		"peers without URL":    {args: []string{"--peers", "n1"}, words: []string{"peers", "name=URL"}},
		"every address":        {args: []string{"--http", ":8700"}, words: []string{"--http", "--advertise-http"}},
		"every raft address":   {args: []string{"--raft", "0.0.0.0:8701"}, words: []string{"--raft", "--advertise-raft"}},
		"one address":          {args: []string{"--http", "127.0.0.1:1", "--raft", "127.0.0.1:1"}, words: []string{"--http", "--raft"}},
		"pprof":                {args: []string{"--pprof", "127.0.0.1"}, words: []string{"--pprof"}},
		"no port":              {args: []string{"--raft", "127.0.0.1"}, words: []string{"--raft"}},
		"name":                 {args: []string{"--name", "N 1"}, words: []string{"--name"}},
		"join":                 {args: []string{"--join", "b:1"}, words: []string{"--join"}},
		"rtt":                  {args: []string{"--raft-rtt", "2s"}, words: []string{"--raft-rtt"}},
		"log store":            {args: []string{"--log-store", "leveldb"}, words: []string{"--log-store"}},
		"log level":            {args: []string{"--log-level", "loud"}, words: []string{"--log-level"}},
		"history":              {args: []string{"--history", "65"}, words: []string{"--history"}},
		"max value":            {args: []string{"--max-value", "1048577"}, words: []string{"--max-value"}},
		"retention":            {args: []string{"--request-retention", "1ms"}, words: []string{"--request-retention"}},
		"max requests":         {args: []string{"--max-requests", "0"}, words: []string{"--max-requests"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadLine(t, c.file, c.environ, c.args...)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not name %q", err, word)
				}
			}
		})
	}
}
