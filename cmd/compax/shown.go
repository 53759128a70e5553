package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/askucher/compax-core/sdk/local"
)

// shownFolder is where a profile's notebook lies, in its folder.
const shownFolder = "shown"

// A notebook keeps, for each chat, the last row that a listener has printed, so
// that one which was killed between printing a row and moving the profile's place
// past it does not print the row again. It is written with one write to the
// system's memory before a row is printed and one after, without waiting for the
// disk: a process that is killed loses neither; a machine that loses its power may,
// and then the profile's place counts, which is durable.
//
// A row about which the notebook says "about to be printed" is looked for in the
// output when that is a file. In a pipe or on a terminal nobody can look: it is
// printed again and says so (Row.Again).
type notebook struct {
	dir    string
	out    *os.File // the output when it may be a file, nil when it is none
	open   func(path string) (slot, error)
	pages  map[string]*page
	folder bool // it is there
}

// slot is one page of the notebook on disk.
type slot interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// page is what the notebook holds of one chat.
type page struct {
	slot   slot
	last   note // what an earlier listener left
	passed bool // the rows that it printed are passed
}

// note is the last row of a chat.
type note struct {
	seq     uint64
	row     [16]byte // names the row
	printed bool     // else it was about to be
	place   place    // where in the output
	length  uint64   // of its line, bytes
	line    [16]byte // hash of its line
}

// place is a position in a file; the zero place is in none.
type place struct{ device, file, offset uint64 }

const (
	noteMagic = "compax-shown-v1\x00"
	noteSize  = 16 + 8 + 16 + 8 + 3*8 + 8 + 16 + 16
)

func (n note) bytes() []byte {
	b := append(make([]byte, 0, noteSize), noteMagic...)
	b = binary.BigEndian.AppendUint64(b, n.seq)
	b = append(b, n.row[:]...)
	printed := uint64(0)
	if n.printed {
		printed = 1
	}
	for _, v := range []uint64{printed, n.place.device, n.place.file, n.place.offset, n.length} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, n.line[:]...)
	sum := sha256.Sum256(b)
	return append(b, sum[:16]...)
}

// parseNote reads a note; one that is damaged is none, which shows a row once more
// at worst.
func parseNote(b []byte) (n note) {
	if len(b) != noteSize || string(b[:16]) != noteMagic {
		return n
	}
	if sum := sha256.Sum256(b[:noteSize-16]); !bytes.Equal(sum[:16], b[noteSize-16:]) {
		return n
	}
	next := func() (v uint64) { v, b = binary.BigEndian.Uint64(b), b[8:]; return v }
	b = b[16:]
	n.seq = next()
	n.row, b = [16]byte(b), b[16:]
	n.printed = next() == 1
	n.place = place{next(), next(), next()}
	n.length = next()
	n.line = [16]byte(b[:16])
	return n
}

func hash16(b []byte) [16]byte {
	sum := sha256.Sum256(b)
	return [16]byte(sum[:])
}

func rowName(r local.Row) [16]byte {
	return hash16([]byte(r.Kind + "\x00" + r.ID + "\x00" + r.From.String()))
}

// notebook is that of the chosen profile, nil for listening that does not begin at
// the profile's own place.
func (a *app) notebook(req local.ListenRequest) (*notebook, error) {
	if req.Since != nil {
		return nil, nil
	}
	_, dir, err := a.chosen(false)
	if err != nil {
		return nil, err
	}
	return &notebook{dir: filepath.Join(dir, shownFolder), out: a.outFile, open: a.slot, pages: map[string]*page{}}, nil
}

func openSlot(path string) (slot, error) { return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) }

// pageOf opens the page of a row's chat, which a listener does once. A row that has
// no place in its chat, because it is no entry of the log, has a page of its own.
func (n *notebook) pageOf(r local.Row) (*page, error) {
	name := r.Chat.String()
	if r.Seq == 0 {
		name = fmt.Sprintf("%x", rowName(r))
	}
	if p := n.pages[name]; p != nil {
		return p, nil
	}
	if !n.folder {
		if err := os.Mkdir(n.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		n.folder = true
	}
	s, err := n.open(filepath.Join(n.dir, name))
	if err != nil {
		return nil, err
	}
	b := make([]byte, noteSize+1)
	size, err := s.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, s.Close())
	}
	p := &page{slot: s, last: parseNote(b[:size])}
	n.pages[name] = p
	return p, nil
}

// verdict is what to do with a row.
type verdict int

const (
	rowFresh  verdict = iota // print it
	rowTorn                  // print it on a new line: the end of the output is a part of it
	rowAgain                 // print it, and say that it may have been printed
	rowPassed                // it was printed
)

// judge says what to do with a row, in the order in which rows come.
func (n *notebook) judge(r local.Row) (verdict, error) {
	p, err := n.pageOf(r)
	switch {
	case err != nil:
		return rowFresh, err
	case p.passed || r.Seq > p.last.seq || p.last.row == [16]byte{}:
		p.passed = true
		return rowFresh, nil
	case r.Seq < p.last.seq || rowName(r) != p.last.row:
		return rowPassed, nil
	}
	p.passed = true
	if p.last.printed {
		return rowPassed, nil
	}
	return n.lookUp(p.last), nil
}

// maxLooked bounds how much of an output is searched, in bytes.
const maxLooked = 4 << 20

// lookUp looks for a row that was about to be printed in the output.
func (n *notebook) lookUp(last note) verdict {
	here, regular := placeOf(n.out)
	if !regular || last.place == (place{}) || here.device != last.place.device || here.file != last.place.file {
		return rowAgain
	}
	f, err := os.Open(n.out.Name()) // the same file, for reading
	if err != nil {
		return rowAgain
	}
	defer f.Close()
	if again, ok := placeOf(f); !ok || again.device != here.device || again.file != here.file {
		return rowAgain
	}
	text, err := io.ReadAll(io.NewSectionReader(f, int64(last.place.offset), maxLooked))
	if err != nil {
		return rowAgain
	}
	for at := 0; at+int(last.length) <= len(text); {
		if hash16(text[at:at+int(last.length)]) == last.line {
			return rowPassed
		}
		next := bytes.IndexByte(text[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	switch {
	case len(text) == maxLooked:
		return rowAgain
	case len(text) > 0 && text[len(text)-1] != '\n':
		return rowTorn
	}
	return rowFresh
}

// print prints the line of a row between two notes about it.
func (n *notebook) print(r local.Row, line []byte, write func([]byte) error) error {
	p, err := n.pageOf(r)
	if err != nil {
		return err
	}
	at, _ := placeOf(n.out)
	what := note{seq: r.Seq, row: rowName(r), place: at, length: uint64(len(line)), line: hash16(line)}
	if _, err := p.slot.WriteAt(what.bytes(), 0); err != nil {
		return err
	}
	if err := write(line); err != nil {
		return err
	}
	what.printed = true
	_, err = p.slot.WriteAt(what.bytes(), 0)
	return err
}

func (n *notebook) close() (err error) {
	if n == nil {
		return nil
	}
	for _, p := range n.pages {
		err = errors.Join(err, p.slot.Close())
	}
	return err
}
