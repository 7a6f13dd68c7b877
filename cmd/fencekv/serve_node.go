package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/httpapi"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// stopLimit is how long a node may take to leave in good order.
const stopLimit = 8 * time.Second

// runServe runs a node until ctx ends (0) or the node stops by itself (2). It
// opens the HTTP listener first: peers greet each other over it while they form.
func runServe(ctx context.Context, cfg serveConfig, stdout, stderr io.Writer) int {
	// Values and request IDs stand in the files a node makes; nobody but its
	// user may read them.
	syscall.Umask(0o077)
	logger := hclog.New(&hclog.LoggerOptions{
		Name: "fencekv", Level: hclog.LevelFromString(cfg.LogLevel), JSONFormat: cfg.LogJSON, Output: stderr,
	})
	if err := serve(ctx, cfg, logger, stdout); err != nil {
		logger.Error("stopped", "error", err)
		return wire.ExitServer
	}
	return wire.ExitOK
}

func serve(ctx context.Context, cfg serveConfig, logger hclog.Logger, stdout io.Writer) (err error) {
	listener, err := net.Listen("tcp", cfg.HTTP)
	if err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	defer listener.Close()
	if cfg.Pprof != "" {
		bound, stop, err := serveProfiles(cfg.Pprof)
		if err != nil {
			return err
		}
		defer stop()
		logger.Info("profiles", "address", bound)
	}
	go paceCollector(ctx)
	address := cfg.AdvertiseHTTP
	if address == "" {
		address = "http://" + listener.Addr().String()
	}
	node, err := cluster.Open(cluster.Options{
		Name: cfg.Name, Dir: cfg.Data, HTTPAddress: address,
		RaftBind: cfg.Raft, RaftAdvertise: cfg.AdvertiseRaft, LogStore: cfg.LogStore,
		Expect: cfg.Peers, Join: cfg.Join, Settings: cfg.Settings, RTT: cfg.RaftRTT,
		SnapshotEntries: cfg.SnapshotEntries, SnapshotInterval: cfg.SnapshotInterval,
		Build: buildVersion(), Logger: logger,
	})
	if err != nil {
		return err
	}
	handler, err := httpapi.New(httpapi.Config{Node: node, Logger: logger.Named("http")})
	if err != nil {
		return errors.Join(err, closeNode(node))
	}
	server := httpapi.NewHTTPServer(cfg.HTTP, handler)
	server.ErrorLog = logger.Named("http").StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Fprintf(stdout, "%s serves %s\n", cfg.Name, address)
	select {
	case <-ctx.Done():
		logger.Info("leaving")
	case <-node.Done():
		err = node.Err()
	case err = <-served:
	}
	return errors.Join(err, leave(server, handler, node))
}

// leave stops in this order: leadership goes to another node while this one
// still answers, so that no write fails for want of a leader; then the listener
// closes and requests under way end; then the stores.
func leave(server *http.Server, handler *httpapi.Handler, node *cluster.Process) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	node.HandOver()
	err := server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("end requests: %w", err), server.Close())
	}
	handler.CloseIdle()
	return errors.Join(err, closeNode(node))
}

func closeNode(node *cluster.Process) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	return node.Close(ctx)
}
