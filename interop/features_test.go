package interop

// feature is one row of the table of docs/interop.md.
type feature struct{ key, what string }

// features are what the scenarios here exercise. A scenario that needs one runs
// with every peer that says it has it.
var features = []feature{
	{"create", "creates a group"},
	{"add", "adds by commit, one or many at once"},
	{"remove", "removes by commit"},
	{"remove_refilled", "leaves by a commit that gives its leaf to somebody else"},
	{"update", "commits a path alone"},
	{"join", "joins by Welcome with the tree in it"},
	{"messages", "application messages"},
	{"late_messages", "messages out of order and skipped"},
	{"past_epoch", "messages of the epoch before"},
	{"private_handshake", "commits as PrivateMessage"},
	{"propose_add", "Add by reference"},
	{"propose_remove", "Remove by reference"},
	{"propose_update", "Update by reference"},
	{"propose_psk", "PreSharedKey by reference"},
	{"psk", "external PSK by value"},
	{"external_join", "external commit"},
	{"resync", "external commit in place of its own old leaf"},
	{"self_remove", "SelfRemove"},
	{"load", "goes on after reading its state back"},
	{"reinit", "ReInit and the group that follows"},
	{"branch", "branch"},
}

func allFeatures() []string {
	var keys []string
	for _, f := range features {
		keys = append(keys, f.key)
	}
	return keys
}
