//go:build linux

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BinaryVariable names the environment variable with the path of the binary
// under test. Who sets it tests that binary: another release, or a race build.
const BinaryVariable = "FENCEKV_BINARY"

// Build compiles the binary under test into dir, as it is shipped, and sets
// BinaryVariable for Start; it leaves a binary that is already named there.
func Build(dir string) error {
	if os.Getenv(BinaryVariable) != "" {
		return nil
	}
	path := filepath.Join(dir, "fencekv")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/fencekv/fencekv/cmd/fencekv")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the binary under test: %w\n%s", err, output)
	}
	return os.Setenv(BinaryVariable, path)
}
