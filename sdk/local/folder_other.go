//go:build !unix

package local

// ownFolder: temporary files are the user's own where folders have no mode.
func ownFolder(string) error { return nil }
