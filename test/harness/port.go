//go:build linux

package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken below the range the kernel gives to outgoing connections
// (from 32768): one of those must not sit on the port of a node that is down.
const (
	firstPort = 10_000
	lastPort  = 30_000
)

// freeAddresses returns n loopback addresses, each with a port nobody listens
// on. Another program may take one before it is used; see Cluster.Start.
func freeAddresses(n int) ([]string, error) {
	var found []string
	for range 100 * n {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		defer listener.Close() // held until all are found: each is found once
		if found = append(found, address); len(found) == n {
			return found, nil
		}
	}
	return nil, errors.New("find free ports: too many are taken")
}

// taken reports whether anybody listens on address.
func taken(address string) bool {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return true
	}
	listener.Close()
	return false
}
