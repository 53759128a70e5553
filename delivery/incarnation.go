package delivery

import "encoding/binary"

// Marker is what the bytes of a KindIncarnation entry say of the restore.
type Marker struct {
	// Jump is how far every room's next seq moved: an entry that would have stood at
	// n stands at n + Jump + 1. It is at least IncarnationJump.
	Jump uint64
	// BackupMS is the last that the backup knows of anything, Unix milliseconds: what
	// is newer was lost by the restore. 0 = unknown.
	BackupMS int64
}

const markerSize = 16

// seqsPerMS is how far the jump grows with the age of the backup: more than any room
// ever takes. So two restores of one backup, a moment apart, give no seq twice, and
// the later one's are the higher ones. A week makes 4 * 10^10.
const seqsPerMS = 64

// NewMarker is a restore, at nowMS, of a backup that knows of nothing after backupMS.
func NewMarker(backupMS, nowMS int64) Marker {
	return Marker{IncarnationJump + seqsPerMS*uint64(max(nowMS-backupMS, 0)), backupMS}
}

// First is the seq of the entry with this marker in a room that would have given next.
func (m Marker) First(next uint64) uint64 { return next + m.Jump }

// Bytes are jump and backup, 64 bits each, big-endian.
func (m Marker) Bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, m.Jump), uint64(m.BackupMS))
}

// MarkerOf reads the marker of a KindIncarnation entry. One without, or with a jump
// that cannot be, has the least one.
func MarkerOf(e Entry) Marker {
	if len(e.Bytes) != markerSize {
		return Marker{Jump: min(IncarnationJump, max(e.Seq, 1)-1)}
	}
	m := Marker{binary.BigEndian.Uint64(e.Bytes), int64(binary.BigEndian.Uint64(e.Bytes[8:]))}
	if m.Jump < IncarnationJump || m.Jump >= e.Seq || m.BackupMS < 0 {
		return Marker{Jump: min(IncarnationJump, max(e.Seq, 1)-1)}
	}
	return m
}
