package tree

import (
	"errors"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls/wire"
)

// A leaf may carry every extension type and a list of capabilities as long as a
// message: looking for each in the whole list would take minutes.
func TestLongCapabilitiesCostLittle(t *testing.T) {
	c := &wire.Capabilities{Extensions: make([]wire.ExtensionType, 2_000_000)}
	var x wire.Extensions
	for v := wire.ExtensionType(0x1000); v < 0xf000; v++ {
		x = append(x, wire.Extension{ExtensionType: v})
		c.Extensions = append(c.Extensions, v)
	}
	start := time.Now()
	if err := CheckExtensions(x, c); err != nil {
		t.Error(err)
	}
	if err := CheckExtensions(append(x, wire.Extension{ExtensionType: 0xf000}), c); !errors.Is(err, ErrCapabilities) {
		t.Errorf("a type that is not listed: %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
