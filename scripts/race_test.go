//go:build race

package scripts

import (
	"os"
	"strings"
)

// raceFlags are those that make test gives to go test: what is compiled for the one
// is not compiled again for the other.
func raceFlags() ([]string, error) {
	text, err := os.ReadFile("../tools/race.flags")
	return strings.Fields(string(text)), err
}
