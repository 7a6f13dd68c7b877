package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// handlerFunc answers calls by a function.
type handlerFunc func(ctx context.Context, from raft.ServerID, method byte, payload []byte) ([]byte, error)

func (f handlerFunc) ServePeer(ctx context.Context, from raft.ServerID, method byte, payload []byte) ([]byte, error) {
	return f(ctx, from, method, payload)
}

func echo(_ context.Context, from raft.ServerID, method byte, payload []byte) ([]byte, error) {
	if method == 9 {
		return nil, errors.New("no such thing")
	}
	return append([]byte(from+" "), payload...), nil
}

func listen(t *testing.T, self raft.ServerID, clusterID string, handler handlerFunc) *Port {
	t.Helper()
	p, err := ListenPort(PortConfig{
		Bind: "127.0.0.1:0", Self: self, ClusterID: func() string { return clusterID },
		Allow:   func(id raft.ServerID) bool { return id == "a" || id == "b" },
		Handler: handler,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func call(t *testing.T, from *Port, to *Port, id raft.ServerID, payload string) ([]byte, error) {
	t.Helper()
	peers := NewPeers(from, 10*time.Second)
	defer peers.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return peers.Call(ctx, id, raft.ServerAddress(to.Addr().String()), 1, []byte(payload))
}

// TestStrangersGetNothing: whoever is not a member of this cluster, or does not
// mean this node, gets at most a refusal that names nobody, and the port goes on
// serving those it is for.
func TestStrangersGetNothing(t *testing.T) {
	port := listen(t, "b", "c1", echo)
	say := func(g greeting) []byte {
		frame, err := g.encode()
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	good := say(greeting{kind: kindPeer, cluster: "c1", from: "a", want: "b"})
	newer := bytes.Clone(good)
	newer[3]++
	long := append(bytes.Clone(good[:5]), 255)
	for name, said := range map[string][]byte{
		"another cluster":  say(greeting{kind: kindPeer, cluster: "c2", from: "a", want: "b"}),
		"no cluster":       say(greeting{kind: kindRaft, from: "a"}),
		"not a member":     say(greeting{kind: kindRaft, cluster: "c1", from: "z"}),
		"another instance": say(greeting{kind: kindPeer, cluster: "c1", from: "a", want: "b-of-yore"}),
		"unknown kind":     say(greeting{kind: 7, cluster: "c1", from: "a"}),
		"newer format":     newer,
		"length above":     long,
		"half a frame":     good[:len(good)-3],
		"http":             []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"tls":              {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03},
		"nothing":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", port.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = conn.Write(said)
			if name == "half a frame" || name == "nothing" {
				_ = conn.(*net.TCPConn).CloseWrite()
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			heard, err := io.ReadAll(conn)
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatal("the connection stays open")
			}
			if len(heard) > 0 && !bytes.Equal(heard, encodeRefusal()) {
				t.Errorf("a stranger heard %q", heard)
			}
		})
	}
	if answer, err := call(t, listen(t, "a", "c1", echo), port, "b", "hi"); err != nil || string(answer) != "a hi" {
		t.Errorf("the right peer got %q, %v", answer, err)
	}
}

// TestHandshakesAreBounded: connections that say nothing hold no more than their
// places, and those only as long as a handshake may take.
func TestHandshakesAreBounded(t *testing.T) {
	port := listen(t, "b", "c1", echo)
	var silent []net.Conn
	for range maxHandshakes + 8 {
		conn, err := net.Dial("tcp", port.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		silent = append(silent, conn)
	}
	var cut sync.WaitGroup
	for _, conn := range silent {
		cut.Go(func() {
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || strings.Contains(err.Error(), "timeout") {
				t.Errorf("a silent connection got %d bytes, %v", n, err)
			}
		})
	}
	cut.Wait()
	if _, err := call(t, listen(t, "a", "c1", echo), port, "b", "hi"); err != nil {
		t.Errorf("after the silent ones: %v", err)
	}
}

// TestCallErrors: a call that may have been served is never said not to have
// been sent: the difference between unknown and not applied hangs on it.
func TestCallErrors(t *testing.T) {
	served := make(chan struct{}, 1)
	hang := func(ctx context.Context, _ raft.ServerID, _ byte, _ []byte) ([]byte, error) {
		served <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	from := listen(t, "a", "c1", echo)
	address := func(p *Port) raft.ServerAddress { return raft.ServerAddress(p.Addr().String()) }

	t.Run("not sent", func(t *testing.T) {
		gone := listen(t, "b", "c1", echo)
		_ = gone.Close()
		stranger := listen(t, "b", "c2", echo)
		closed := NewPeers(from, time.Second)
		_ = closed.Close()
		peers := NewPeers(from, 10*time.Second)
		defer peers.Close()
		for name, try := range map[string]func() error{
			"nobody listens":  func() error { _, err := peers.Call(t.Context(), "b", address(gone), 1, nil); return err },
			"another cluster": func() error { _, err := peers.Call(t.Context(), "b", address(stranger), 1, nil); return err },
			"too large": func() error {
				_, err := peers.Call(t.Context(), "b", address(gone), 1, make([]byte, maxPayload+1))
				return err
			},
			"caller is closed": func() error { _, err := closed.Call(t.Context(), "b", address(gone), 1, nil); return err },
		} {
			var notSent *NotSentError
			if err := try(); !errors.As(err, &notSent) {
				t.Errorf("%s: %v, want a NotSentError", name, err)
			}
		}
	})
	t.Run("lost", func(t *testing.T) {
		for name, end := range map[string]func(cancel func(), peers *Peers, to *Port){
			"callee breaks off": func(_ func(), _ *Peers, to *Port) { _ = to.Close() },
			"caller closes":     func(_ func(), peers *Peers, _ *Port) { _ = peers.Close() },
			"context ends":      func(cancel func(), _ *Peers, _ *Port) { cancel() },
		} {
			to := listen(t, "b", "c1", hang)
			peers := NewPeers(from, 10*time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { _, err := peers.Call(ctx, "b", address(to), 1, []byte("x")); done <- err }()
			<-served
			end(cancel, peers, to)
			var lost *LostError
			if err := <-done; !errors.As(err, &lost) {
				t.Errorf("%s: %v, want a LostError", name, err)
			}
			cancel()
			_ = peers.Close()
		}
	})
	t.Run("remote", func(t *testing.T) {
		peers := NewPeers(from, 10*time.Second)
		defer peers.Close()
		_, err := peers.Call(t.Context(), "b", address(listen(t, "b", "c1", echo)), 9, nil)
		var remote *RemoteError
		if !errors.As(err, &remote) || remote.Text != "no such thing" {
			t.Errorf("%v, want the handler's own error", err)
		}
	})
}

// TestCallsShareALine: many calls on one connection, answered in any order, each
// get their own answer; a payload at the bound passes; a line that broke is
// dialed anew.
func TestCallsShareALine(t *testing.T) {
	from := listen(t, "a", "c1", echo)
	first := make(chan struct{})
	to := listen(t, "b", "c1", func(ctx context.Context, id raft.ServerID, method byte, payload []byte) ([]byte, error) {
		if string(payload) == "0" {
			<-first // answered after all others
		}
		return echo(ctx, id, method, payload)
	})
	peers := NewPeers(from, 10*time.Second)
	defer peers.Close()
	address := raft.ServerAddress(to.Addr().String())
	var others, all sync.WaitGroup
	others.Add(99)
	for i := range 100 {
		all.Go(func() {
			answer, err := peers.Call(t.Context(), "b", address, 1, fmt.Append(nil, i))
			if err != nil || string(answer) != fmt.Sprint("a ", i) {
				t.Errorf("call %d: %q, %v", i, answer, err)
			}
			if i > 0 {
				others.Done()
			}
		})
	}
	others.Wait()
	close(first)
	all.Wait()
	line, err := peers.line("b")
	if err != nil {
		t.Fatal(err)
	}
	line.end(errors.New("cut"))
	big := strings.Repeat("x", maxPayload-len("a "))
	if answer, err := peers.Call(t.Context(), "b", address, 1, []byte(big)); err != nil || string(answer) != "a "+big {
		t.Errorf("on a new line: %d bytes, %v", len(answer), err)
	}
}

// FuzzFrames: no bytes make the readers of either frame panic or ask for more
// memory than a frame may hold.
func FuzzFrames(f *testing.F) {
	frame, _ := greeting{kind: kindPeer, cluster: "c", from: "a", want: "b"}.encode()
	f.Add(frame)
	f.Add(appendCall(nil, 7, 1, []byte("payload")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := readGreeting(bytes.NewReader(b)); err == nil {
			if again, err := g.encode(); err != nil || !bytes.HasPrefix(b, again) {
				t.Fatalf("%x reads as %+v, which is written %x, %v", b, g, again, err)
			}
		}
		_, _ = readWelcome(bytes.NewReader(b))
		if id, tag, payload, err := readCall(bytes.NewReader(b)); err == nil && !bytes.HasPrefix(b, appendCall(nil, id, tag, payload)) {
			t.Fatalf("%x does not read back", b)
		}
	})
}
