package phrase

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"sort"
	"strings"
	"sync"
)

// english is the list of BIP-39: 2048 words, sorted, one a line.
//
//go:embed english.txt
var english string

const listSize = 2048

var list = sync.OnceValue(func() []string { return strings.Fields(english) })

// indexOf finds a word in the list.
func indexOf(word string) (int, bool) {
	words := list()
	i := sort.SearchStrings(words, word)
	return i, i < len(words) && words[i] == word
}

// lookUp returns the indices of words, or a *WordError of all unknown ones.
func lookUp(words []string) ([]int, error) {
	indices := make([]int, len(words))
	var unknown []UnknownWord
	for i, w := range words {
		index, ok := indexOf(w)
		if !ok {
			unknown = append(unknown, UnknownWord{Position: i + 1, Nearest: nearest(w)})
		}
		indices[i] = index
	}
	if unknown != nil {
		return nil, &WordError{Count: len(words), Unknown: unknown}
	}
	return indices, nil
}

// encode writes entropy of 16 to 32 bytes as words: 11 bits each, the last ones
// filled up with the first bits of SHA-256 of the entropy.
func encode(entropy []byte) string {
	sum := sha256.Sum256(entropy)
	all := append(append(make([]byte, 0, len(entropy)+1), entropy...), sum[0])
	words := make([]string, (len(entropy)*8+len(entropy)/4)/11)
	for i := range words {
		words[i] = list()[bits11(all, i)]
	}
	clear(all)
	return strings.Join(words, " ")
}

// bits11 returns the i-th group of 11 bits.
func bits11(b []byte, i int) int {
	n := 0
	for bit := i * 11; bit < i*11+11; bit++ {
		n = n<<1 | int(b[bit/8]>>(7-bit%8)&1)
	}
	return n
}

// decode is the inverse of encode: false when the checksum is wrong.
func decode(indices []int) ([]byte, bool) {
	bits := len(indices) * 11
	all := make([]byte, (bits+7)/8)
	for i, index := range indices {
		for k := range 11 {
			bit := i*11 + k
			all[bit/8] |= byte(index>>(10-k)&1) << (7 - bit%8)
		}
	}
	size := len(indices) * 4 / 3 // 32 bits of entropy for each 3 words
	check := bits - size*8
	sum := sha256.Sum256(all[:size])
	if sum[0]>>(8-check) != all[size]>>(8-check) {
		clear(all)
		return nil, false
	}
	return all[:size:size], true
}

// WordError says that a phrase has the wrong number of words, or words that are
// not in the list. Its text names positions only; show Unknown to the owner of
// the phrase and to nobody else.
type WordError struct {
	Count   int           // words found, -1 when the text is far too long
	Unknown []UnknownWord // empty when the number is wrong
}

// UnknownWord is one word that is not in the list.
type UnknownWord struct {
	Position int      // from 1
	Nearest  []string // at most maxSuggestions words of the list, nearest first
}

func (e *WordError) Error() string {
	if e.Count < 0 {
		return fmt.Sprintf("phrase: the text is too long for %d words", WordCount)
	}
	if len(e.Unknown) == 0 {
		return fmt.Sprintf("phrase: %d words, a phrase has %d", e.Count, WordCount)
	}
	positions := make([]string, len(e.Unknown))
	for i, u := range e.Unknown {
		positions[i] = fmt.Sprint(u.Position)
	}
	if len(positions) == 1 {
		return fmt.Sprintf("phrase: word %s is not in the list: check its spelling", positions[0])
	}
	return fmt.Sprintf("phrase: words %s are not in the list: check their spelling", strings.Join(positions, ", "))
}

// ChecksumError says that every word is in the list and that together they are
// no phrase: a word is wrong or two are exchanged. Its text names positions
// only; show Repairs to the owner of the phrase and to nobody else.
type ChecksumError struct {
	Repairs []Repair // likeliest first, at most maxRepairs; empty when nothing near fits
}

// Repair is one small change that makes a phrase of the words. By chance one
// wrong word in 256 passes, so several repairs may be offered and the one that
// opens the account is the right one.
type Repair struct {
	Position int    // from 1
	Word     string // to put there; empty when Position and the next are exchanged
}

func (e *ChecksumError) Error() string {
	if len(e.Repairs) == 0 {
		return "phrase: all words are in the list and the checksum is wrong: compare each word and their order with what was written down"
	}
	seen := map[int]bool{}
	var positions []string
	for _, r := range e.Repairs {
		if !seen[r.Position] {
			seen[r.Position] = true
			positions = append(positions, fmt.Sprint(r.Position))
		}
	}
	return fmt.Sprintf("phrase: all words are in the list and the checksum is wrong: look first at word %s", strings.Join(positions, ", "))
}
