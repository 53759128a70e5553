package sdk

import (
	"cmp"
	"slices"
)

// Span is a range of seqs, both ends included.
type Span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// spans are ranges of seqs, ascending and apart from each other.
type spans []Span

// with adds ranges.
func (s spans) with(more ...Span) spans {
	all := slices.Concat(s, spans(more))
	slices.SortFunc(all, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	var out spans
	for _, x := range all {
		if x.From > x.To {
			continue
		}
		if n := len(out); n > 0 && x.From <= out[n-1].To+1 {
			out[n-1].To = max(out[n-1].To, x.To)
			continue
		}
		out = append(out, x)
	}
	return out
}

// without is what is left of s when others are taken out.
func (s spans) without(others ...Span) spans {
	out := slices.Clone(s)
	for _, o := range others {
		var left spans
		for _, x := range out {
			if o.To < x.From || o.From > x.To {
				left = append(left, x)
				continue
			}
			if x.From < o.From {
				left = append(left, Span{x.From, o.From - 1})
			}
			if x.To > o.To {
				left = append(left, Span{o.To + 1, x.To})
			}
		}
		out = left
	}
	return out
}

// within is what of s lies between two seqs.
func (s spans) within(from, to uint64) spans {
	var out spans
	for _, x := range s {
		if x = (Span{max(x.From, from), min(x.To, to)}); x.From <= x.To {
			out = append(out, x)
		}
	}
	return out
}

// widest is what is left of s when it may have so many ranges: the widest.
func (s spans) widest(n int) spans {
	if len(s) <= n {
		return s
	}
	by := slices.Clone(s)
	slices.SortFunc(by, func(a, b Span) int { return cmp.Compare(b.To-b.From, a.To-a.From) })
	return spans{}.with(by[:n]...)
}

func (s spans) has(seq uint64) bool {
	return slices.ContainsFunc(s, func(x Span) bool { return x.From <= seq && seq <= x.To })
}

// covers reports whether all of x is in s.
func (s spans) covers(x Span) bool {
	return slices.ContainsFunc(s, func(y Span) bool { return y.From <= x.From && x.To <= y.To })
}
