package node

import "github.com/askucher/compax-core/store/sqlite"

// ErrInUse: another process serves the data directory.
var ErrInUse = sqlite.ErrInUse
