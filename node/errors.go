package node

import "github.com/askucher/compax-core/store/sqlite"

// Errors of the embedded store that say what to do.
var (
	// ErrInUse: another process serves the data directory.
	ErrInUse = sqlite.ErrInUse
	// ErrNewer: a newer version has migrated the data.
	ErrNewer = sqlite.ErrNewer
	// ErrCorrupt: the database file is damaged, or is none.
	ErrCorrupt = sqlite.ErrCorrupt
)
