//go:build !unix

package durable

// syncFolder does nothing: a folder cannot be written through there, and names
// are journalled.
func syncFolder(string) error { return nil }
