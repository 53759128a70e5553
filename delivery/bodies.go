package delivery

// CreateRoomRequest makes a room: POST /v1/rooms. The GroupInfo is an
// MLSMessage signed by the creator's leaf, without ratchet_tree extension; the
// tree comes beside it. The group id is the room id and its home label must be
// the service's own.
type CreateRoomRequest struct {
	GroupInfo []byte
	Tree      []byte
}

// AppendRequest adds one entry to a room: POST /v1/rooms/{id}/append.
// GroupInfo is required with a commit; Welcome when the commit adds by
// KeyPackage. Both are MLSMessages.
type AppendRequest struct {
	Entry     []byte // MLSMessage: PrivateMessage, or PublicMessage with a proposal or commit
	Welcome   []byte
	GroupInfo []byte
	Blobs     []BlobID // ≤ MaxAppendBlobs
}

// LogPage is a part of a room's log: GET /v1/rooms/{id}/log.
type LogPage struct {
	Head    uint64 // the room's last seq when the page was read
	First   uint64 // first seq still kept
	Entries []Entry
}

// KeptEntry is an entry as a device kept it, with the blobs that it refers to.
type KeptEntry struct {
	Entry
	Blobs []BlobID // ≤ MaxAppendBlobs
}

// HealRequest offers kept entries of a healing room in the order of their seqs,
// which are those that they had before the restore: POST /v1/rooms/{id}/heal.
// An offer without entries says that the device holds nothing newer.
type HealRequest struct {
	Entries   []KeptEntry
	GroupInfo []byte // of the offering device's epoch: what the last commit led to; may be empty
	// Founding is the CreateRoomRequest that the room was made by. It makes the
	// room again when the service has lost it, and counts from its creator only.
	Founding []byte
	More     bool // further pieces of the offer follow
}

// HealResponse says what the room took.
type HealResponse struct {
	// Taken is how many of the entries, from the first on, are dealt with. The
	// next one is behind an entry that the room does not have yet: offer it again
	// when others have brought theirs.
	Taken   int        `json:"taken"`
	Dropped int        `json:"dropped,omitempty"` // of Taken: those that fit nowhere any more
	Missing int        `json:"missing,omitempty"` // blobs that the entries refer to and whose bytes are gone
	Head    uint64     `json:"head,string"`
	Epoch   uint64     `json:"epoch,string"`
	Status  RoomStatus `json:"status"`
}
