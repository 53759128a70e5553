package testdata

import (
	"fmt"
	"os"
	"testing"
)

// Ran notes that t runs one case of a vectors file ("tree-math.json"), for a
// cipher suite or 0 when the case has none. Call it once a case, at its start.
// With COMPAX_VECTORS_LOG set to a path, a line "file suite test verdict" is
// appended when t ends; make vectors counts these lines and compares them with
// what the files hold.
func Ran(t testing.TB, file string, suite uint16) {
	t.Helper()
	path := os.Getenv("COMPAX_VECTORS_LOG")
	if path == "" {
		return
	}
	t.Cleanup(func() {
		verdict := "passed"
		switch {
		case t.Failed():
			verdict = "failed"
		case t.Skipped():
			verdict = "skipped"
		}
		log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(log, "%s\t%d\t%s\t%s\n", file, suite, t.Name(), verdict)
			if closed := log.Close(); err == nil {
				err = closed
			}
		}
		if err != nil {
			t.Errorf("testdata: COMPAX_VECTORS_LOG: %v", err)
		}
	})
}
