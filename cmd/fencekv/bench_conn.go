package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// benchConn is one kept HTTP/1.1 connection. The generator shares the machine
// with what it measures, so it sends prepared bytes and reads of an answer only
// what it needs; net/http's client would take as much time as the server.
type benchConn struct {
	base   *url.URL
	trust  *tls.Config
	limit  time.Duration // of one request
	conn   net.Conn      // nil while there is none
	cancel func() bool   // stops watching the context of the dial
	reader *bufio.Reader
	answer benchAnswer // of the last do; its body is used again
}

// benchAnswer is what an operation may want to know of its answer.
type benchAnswer struct {
	status   int
	revision uint64 // 0 if the answer has none
	body     []byte // until the next do
	last     bool   // the server closes the connection
}

// code returns what the answer counts as: empty for a success.
func (a *benchAnswer) code() string {
	if a.status/100 == 2 {
		return ""
	}
	var problem wire.Problem
	if json.Unmarshal(a.body, &problem) != nil || problem.Code == "" {
		return "status_" + strconv.Itoa(a.status)
	}
	return string(problem.Code)
}

// do sends one whole request and reads the answer. After an error the
// connection is dialed anew by the next do.
func (c *benchConn) do(ctx context.Context, request []byte) error {
	if c.conn == nil {
		if err := c.dial(ctx); err != nil {
			return err
		}
	}
	err := c.conn.SetDeadline(time.Now().Add(c.limit))
	if err == nil {
		_, err = c.conn.Write(request)
	}
	if err == nil {
		err = c.read()
	}
	if err != nil || c.answer.last {
		c.close()
	}
	return err
}

func (c *benchConn) dial(ctx context.Context) (err error) {
	dialing, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	if c.base.Scheme == "https" {
		c.conn, err = (&tls.Dialer{Config: c.trust}).DialContext(dialing, "tcp", c.base.Host)
	} else {
		c.conn, err = new(net.Dialer).DialContext(dialing, "tcp", c.base.Host)
	}
	if err != nil {
		c.conn = nil
		return err
	}
	if c.reader == nil {
		c.reader = bufio.NewReader(nil)
	}
	c.reader.Reset(c.conn)
	conn := c.conn
	c.cancel = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return nil
}

func (c *benchConn) close() {
	if c.conn != nil {
		c.cancel()
		_ = c.conn.Close()
		c.conn = nil
	}
}

var (
	revisionField = []byte("Fence-Revision: ")
	lengthField   = []byte("Content-Length: ")
	closeField    = []byte("Connection: close")
)

// read takes in one answer. fencekv gives each a Content-Length.
func (c *benchConn) read() error {
	a := &c.answer
	*a = benchAnswer{body: a.body[:0]}
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return fmt.Errorf("answer begins with %q", line)
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return fmt.Errorf("answer begins with %q", line)
	}
	length := -1
	for {
		if line, err = c.reader.ReadSlice('\n'); err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0:
			return c.readBody(length)
		case bytes.HasPrefix(line, lengthField):
			length, err = strconv.Atoi(string(line[len(lengthField):]))
		case bytes.HasPrefix(line, revisionField):
			a.revision, err = wire.ParseNumber(string(line[len(revisionField):]))
		case bytes.Equal(line, closeField):
			a.last = true
		}
		if err != nil {
			return fmt.Errorf("answer has %q: %w", line, err)
		}
	}
}

func (c *benchConn) readBody(length int) error {
	if length < 0 {
		return errors.New("answer has no Content-Length")
	}
	a := &c.answer
	if cap(a.body) < length {
		a.body = make([]byte, 0, length)
	}
	a.body = a.body[:length]
	_, err := io.ReadFull(c.reader, a.body)
	return err
}

// requestBuilder writes requests to one node into a buffer it uses again.
type requestBuilder struct {
	host  string
	auth  string // credential, empty for none
	bytes []byte
}

// begin starts a request.
func (b *requestBuilder) begin(method, path string) *requestBuilder {
	b.bytes = append(append(append(append(b.bytes[:0], method...), ' '), path...), " HTTP/1.1\r\n"...)
	b.header("Host", b.host)
	if b.auth != "" {
		b.header("Authorization", "Bearer "+b.auth)
	}
	return b
}

func (b *requestBuilder) header(name, value string) {
	b.bytes = append(append(append(append(b.bytes, name...), ": "...), value...), "\r\n"...)
}

// end adds the body, if the method has one, and returns the whole.
func (b *requestBuilder) end(body []byte) []byte {
	if body != nil {
		b.bytes = append(b.bytes, "Content-Length: "...)
		b.bytes = append(strconv.AppendInt(b.bytes, int64(len(body)), 10), "\r\n"...)
	}
	b.bytes = append(b.bytes, "\r\n"...)
	return append(b.bytes, body...)
}
