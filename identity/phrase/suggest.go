package phrase

import (
	"cmp"
	"slices"
)

const (
	maxSuggestions = 3
	maxRepairs     = 12
	// maxDistance is how many letters apart a repair may be from what was typed.
	maxDistance = 2
	// maxCompared bounds the letters of a typed word that are compared; the
	// longest word of the list has 8.
	maxCompared = 16
)

type candidate struct {
	index, distance int
}

// nearest returns the words of the list that are closest to a mistyped one.
func nearest(word string) []string {
	all := make([]candidate, listSize)
	for i, w := range list() {
		all[i] = candidate{i, distance(word, w)}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	out := make([]string, 0, maxSuggestions)
	for _, c := range all[:maxSuggestions] {
		if c.distance > all[0].distance+1 {
			break
		}
		out = append(out, list()[c.index])
	}
	return out
}

// repairs looks for one exchange of neighbours or one near word that makes the
// checksum right.
func repairs(indices []int) []Repair {
	type scored struct {
		Repair
		distance int
	}
	var found []scored
	try := slices.Clone(indices)
	fits := func() bool {
		entropy, ok := decode(try)
		clear(entropy)
		return ok
	}
	for i := range try {
		if i+1 < len(try) && try[i] != try[i+1] {
			try[i], try[i+1] = try[i+1], try[i]
			if fits() {
				found = append(found, scored{Repair{Position: i + 1}, 1})
			}
			try[i], try[i+1] = try[i+1], try[i]
		}
		typed := list()[indices[i]]
		for k, w := range list() {
			if k == indices[i] {
				continue
			}
			d := distance(typed, w)
			if d > maxDistance {
				continue
			}
			try[i] = k
			if fits() {
				found = append(found, scored{Repair{i + 1, w}, d})
			}
		}
		try[i] = indices[i]
	}
	clear(try)
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(a.distance, b.distance) })
	out := make([]Repair, 0, maxRepairs)
	for _, f := range found[:min(len(found), maxRepairs)] {
		out = append(out, f.Repair)
	}
	return out
}

// distance is the optimal string alignment distance: insertions, deletions,
// substitutions and exchanges of neighbours, each counting one.
func distance(a, b string) int {
	a, b = a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)]
	var rows [3][maxCompared + 1]int
	before, previous, current := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
