package disk

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
)

// TestAFullDiskIsNamed writes to the device that is always full.
func TestAFullDiskIsNamed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux has /dev/full")
	}
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	n, err := copyTo(context.Background(), f, 0, strings.NewReader("x"))
	if n != 0 || !errors.Is(full(err), delivery.ErrFull) {
		t.Fatalf("took %d: %v", n, full(err))
	}
}
