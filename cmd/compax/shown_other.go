//go:build !unix

package main

import "os"

// placeOf knows no files here: a row that may have been printed is printed again
// and says so.
func placeOf(*os.File) (place, bool) { return place{}, false }
