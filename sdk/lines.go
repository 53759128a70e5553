package sdk

import (
	"iter"

	"github.com/askucher/compax-core/delivery"
)

// linePage is how many lines are in memory at once where a room is gone through.
const linePage = segmentSeqs

// eachLine goes through the lines of a room from one seq to another, however many
// they are, with a page of them in memory: linePage, or all of one seq where more
// share it. The transaction may be used meanwhile.
func eachLine(tx Tx, id delivery.RoomID, from, to uint64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		after, limit := max(from, 1)-1, linePage
		for after < to {
			page, err := tx.Lines(LineQuery{Room: id, After: after, Upto: to, Limit: limit})
			if err != nil {
				yield(Line{}, err)
				return
			}
			full := len(page) >= limit
			if full {
				// The rest of the last seq may lie behind the page.
				after = page[len(page)-1].Seq - 1
				if page[0].Seq > after {
					limit *= 2
					continue
				}
				limit = linePage
			}
			for _, l := range page {
				if full && l.Seq > after {
					break
				}
				if !yield(l, nil) {
					return
				}
			}
			if !full {
				return
			}
		}
	}
}
