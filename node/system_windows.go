package node

// syncDir does nothing: a directory cannot be written through there, and names
// are journalled.
func syncDir(string) error { return nil }
