package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"time"
)

// Sampling of waits while profiles are served: cheap enough for a node at work.
const (
	blockProfileRate     = 10_000 // ns: a wait of this length is sampled every time, shorter ones in proportion
	mutexProfileFraction = 100    // one of as many contended unlocks
)

// serveProfiles serves Go's profiles below /debug/pprof/ at address, an operator's
// listener of its own: they show keys and must not be where clients are. The
// returned function ends it; bound is where it listens.
func serveProfiles(address string) (bound string, stop func() error, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("listen for profiles: %w", err)
	}
	runtime.SetBlockProfileRate(blockProfileRate)
	runtime.SetMutexProfileFraction(mutexProfileFraction)
	routes := http.NewServeMux()
	routes.HandleFunc("/debug/pprof/", pprof.Index)
	routes.HandleFunc("/debug/pprof/profile", pprof.Profile)
	routes.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 5 * time.Second}
	go server.Serve(listener)
	return listener.Addr().String(), server.Close, nil
}
