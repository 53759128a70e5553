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

// HealRequest offers kept entries of a healing room, in their old order:
// POST /v1/rooms/{id}/heal. GroupInfos stand for commits by index in Entries;
// only the last commit needs one. An empty offer says that the member holds
// nothing newer.
type HealRequest struct {
	Entries   []Entry
	GroupInfo []byte // of the epoch after the last offered commit; empty when none was offered
}

// HealResponse says what the room took.
type HealResponse struct {
	Taken  int        `json:"taken"`
	Head   uint64     `json:"head,string"`
	Epoch  uint64     `json:"epoch,string"`
	Status RoomStatus `json:"status"`
}
