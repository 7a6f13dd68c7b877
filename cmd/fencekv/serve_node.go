package main

import (
	"context"
	"fmt"
	"io"

	"github.com/fencekv/fencekv/httpapi/wire"
)

func runServe(_ context.Context, _ serveConfig, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "fencekv: this build has no node")
	return wire.ExitUsage
}
