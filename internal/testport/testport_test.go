package testport

import (
	"net"
	"net/netip"
	"testing"
)

func TestAddressesCanBeUsedAgainAndAgain(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Fatalf("%s was given twice", address)
		}
		seen[address] = true
		if a := netip.MustParseAddrPort(address); !a.Addr().IsLoopback() || a.Port() < lowest || a.Port() > highest {
			t.Fatalf("%s is no loopback address out of the kernel's range", address)
		}
		for range 2 {
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
