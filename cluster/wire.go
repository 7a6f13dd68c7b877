package cluster

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"
)

// Nodes reach each other on one port. The dialer speaks first and says what the
// connection is for and who is at both ends; not one byte of Raft or of a call
// is read before both sides agreed.
//
//	dialer:    | "FKV" | format | kind | cluster ID | from | want |
//	acceptor:  | "FKV" | format | verdict |      cluster ID | self |
//
// format, kind and verdict are one byte; the others a length byte and as many
// bytes. want is the server ID the dialer means to reach, empty when it does not
// know. A refusal names nobody: a stranger learns nothing from it.
const wireFormat = 1

var wireMagic = [3]byte{'F', 'K', 'V'}

const (
	kindRaft byte = 1
	kindPeer byte = 2

	verdictWelcome byte = 1
	verdictRefused byte = 2

	maxWireID = 128 // bytes of an ID in a frame
)

var (
	errNotFencekv = errors.New("not a fencekv node")
	errWireFormat = errors.New("node speaks another format: upgrade the older one")
	errRefused    = errors.New("refused by the node")
	errWrongNode  = errors.New("another node answers at this address")
)

// greeting is what a dialer says.
type greeting struct {
	kind       byte
	cluster    string
	from, want raft.ServerID
}

func (g greeting) encode() ([]byte, error) {
	return encodeFrame(g.kind, g.cluster, string(g.from), string(g.want))
}

func readGreeting(r io.Reader) (greeting, error) {
	kind, ids, err := readFrame(r, 3)
	if err != nil {
		return greeting{}, err
	}
	if kind != kindRaft && kind != kindPeer {
		return greeting{}, errNotFencekv
	}
	return greeting{kind: kind, cluster: ids[0], from: raft.ServerID(ids[1]), want: raft.ServerID(ids[2])}, nil
}

// welcome is what an acceptor answers.
type welcome struct {
	cluster string
	self    raft.ServerID
}

func (w welcome) encode() ([]byte, error) {
	return encodeFrame(verdictWelcome, w.cluster, string(w.self))
}

func encodeRefusal() []byte {
	frame, _ := encodeFrame(verdictRefused, "", "") // two empty IDs always fit
	return frame
}

func readWelcome(r io.Reader) (welcome, error) {
	verdict, ids, err := readFrame(r, 2)
	switch {
	case err != nil:
		return welcome{}, err
	case verdict != verdictWelcome:
		return welcome{}, errRefused
	}
	return welcome{cluster: ids[0], self: raft.ServerID(ids[1])}, nil
}

func encodeFrame(tag byte, ids ...string) ([]byte, error) {
	frame := append(wireMagic[:len(wireMagic):len(wireMagic)], wireFormat, tag)
	for _, id := range ids {
		if len(id) > maxWireID {
			return nil, fmt.Errorf("ID of %d bytes is longer than %d", len(id), maxWireID)
		}
		frame = append(append(frame, byte(len(id))), id...)
	}
	return frame, nil
}

// readFrame reads no further than the frame's end, and never allocates for a
// length that is out of bounds.
func readFrame(r io.Reader, count int) (tag byte, ids []string, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	if [3]byte(head[:3]) != wireMagic {
		return 0, nil, errNotFencekv
	}
	if head[3] != wireFormat {
		return 0, nil, errWireFormat
	}
	var buffer [maxWireID]byte
	for range count {
		var length [1]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return 0, nil, err
		}
		if length[0] > maxWireID {
			return 0, nil, errNotFencekv
		}
		if _, err := io.ReadFull(r, buffer[:length[0]]); err != nil {
			return 0, nil, err
		}
		ids = append(ids, string(buffer[:length[0]]))
	}
	return head[4], ids, nil
}
