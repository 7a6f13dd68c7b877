package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// caller sends operations to a cluster. It is used by one goroutine at a time.
type caller struct {
	http      *http.Client
	endpoints []string      // base URLs without a slash at the end, tried in order
	current   int           // of endpoints: the one to use while leader is empty
	leader    string        // where the last answer said to go
	timeout   time.Duration // of an operation with all its tries
	authToken string
	base      *uint64 // store revision at the time of the first operation; see learnBase
	curl      curlPrinter
}

// caller makes the caller the global flags describe.
func (a *app) caller() (*caller, error) {
	authToken, err := a.authToken()
	if err != nil {
		return nil, err
	}
	trust, err := a.flags.tlsConfig()
	if err != nil {
		return nil, err
	}
	c := &caller{endpoints: a.flags.endpoints, timeout: a.flags.timeout, authToken: authToken}
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy:              http.ProxyFromEnvironment,
			TLSClientConfig:    trust,
			ForceAttemptHTTP2:  true,
			DisableCompression: true,
			// A node that vanished must not hold a waiting acquire for the
			// minutes the kernel's own probes would take.
			DialContext: (&net.Dialer{
				Timeout:         3 * time.Second,
				KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3},
			}).DialContext,
		},
		// A redirect would lose the credential or turn a write into a read.
		// fencekv never sends one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if a.flags.curl {
		c.curl = curlPrinter{out: a.stderr, cacert: a.flags.cacert, cert: a.flags.cert, key: a.flags.key}
	}
	return c, nil
}

// parseEndpoints reads a comma list of base URLs.
func parseEndpoints(list string) ([]string, error) {
	var endpoints []string
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSuffix(strings.TrimSpace(text), "/")
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
			return nil, fmt.Errorf("%q must be a URL like %s", text, defaultAddr)
		}
		if !slices.Contains(endpoints, text) {
			endpoints = append(endpoints, text)
		}
	}
	return endpoints, nil
}

// authToken returns the credential, empty for none.
func (a *app) authToken() (string, error) {
	token, source := a.env(envAuthToken), envAuthToken
	if file := a.flags.authTokenFile; file != "" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("--auth-token-file: %w", err)
		}
		defer f.Close()
		content, err := io.ReadAll(io.LimitReader(f, 8<<10))
		if err != nil {
			return "", fmt.Errorf("--auth-token-file: %w", err)
		}
		token, source = string(content), "--auth-token-file"
	}
	token = strings.TrimSpace(token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s must hold one word of visible ASCII", source)
	}
	return token, nil
}

func (f globalFlags) tlsConfig() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.cacert != "" {
		pem, err := os.ReadFile(f.cacert)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--cacert: %w", errors.New("holds no PEM certificate"))
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// target returns where to send the next try.
func (c *caller) target() string {
	if c.leader != "" {
		return c.leader
	}
	return c.endpoints[c.current]
}

// leave goes on to another endpoint after target gave no answer.
func (c *caller) leave(target string) {
	c.leader = ""
	if c.endpoints[c.current] == target {
		c.current = (c.current + 1) % len(c.endpoints)
	}
}

// follow remembers the leader an answer of target names, which saves the hop
// through a follower. A leader under another scheme is not followed: the
// credential must not leave a connection that was meant to be encrypted.
func (c *caller) follow(target, leader string) {
	leader = strings.TrimSuffix(leader, "/")
	at, err := url.Parse(target)
	to, err2 := url.Parse(leader)
	if err == nil && err2 == nil && to.Host != "" && at.Scheme == to.Scheme {
		c.leader = leader
	}
}
