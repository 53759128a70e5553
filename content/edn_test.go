package content

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// ednToCBOR turns the extended diagnostic notation of the draft's examples into
// deterministic CBOR. It shares nothing with the decoder but the head encoding.
func ednToCBOR(t *testing.T, text string) []byte {
	t.Helper()
	p := &ednParser{s: text}
	b, err := p.value()
	if err != nil {
		t.Fatalf("%v near %q", err, p.s[max(0, p.i-20):min(len(p.s), p.i+20)])
	}
	p.space()
	if p.i != len(p.s) {
		t.Fatalf("something follows: %q", p.s[p.i:])
	}
	return b
}

type ednParser struct {
	s string
	i int
}

// space skips white space, commas and both kinds of comment.
func (p *ednParser) space() {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == ' ' || c == '\n' || c == '\t' || c == ',':
			p.i++
		case c == '#':
			for p.i < len(p.s) && p.s[p.i] != '\n' {
				p.i++
			}
		case c == '/':
			p.i += 2 + strings.IndexByte(p.s[p.i+1:], '/')
		default:
			return
		}
	}
}

func (p *ednParser) value() ([]byte, error) {
	p.space()
	rest := p.s[p.i:]
	switch {
	case strings.HasPrefix(rest, "null"):
		p.i += 4
		return []byte{simpleNull}, nil
	case strings.HasPrefix(rest, "false"):
		p.i += 5
		return []byte{simpleFalse}, nil
	case strings.HasPrefix(rest, "true"):
		p.i += 4
		return []byte{simpleTrue}, nil
	case rest[0] == '[':
		return p.sequence(']', majorArray, 1)
	case rest[0] == '{':
		return p.sequence('}', majorMap, 2)
	case strings.HasPrefix(rest, "h'"):
		p.i++
		raw, err := p.quoted('\'')
		if err != nil {
			return nil, err
		}
		digits := strings.Map(func(r rune) rune {
			if r == ' ' || r == '\n' {
				return -1
			}
			return r
		}, stripComments(raw))
		b, err := hex.DecodeString(digits)
		return appendBytes(nil, b), err
	case rest[0] == '\'':
		s, err := p.concatenated('\'')
		return appendBytes(nil, []byte(s)), err
	case rest[0] == '"':
		s, err := p.concatenated('"')
		return appendText(nil, s), err
	case rest[0] >= '0' && rest[0] <= '9':
		j := p.i
		for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
			p.i++
		}
		n, err := strconv.ParseUint(p.s[j:p.i], 10, 64)
		return appendUint(nil, n), err
	}
	return nil, fmt.Errorf("unexpected %q", rest[:1])
}

// stripComments removes # comments inside a hex string.
func stripComments(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i], _, _ = strings.Cut(l, "#")
	}
	return strings.Join(lines, "\n")
}

func (p *ednParser) sequence(end byte, major byte, per int) ([]byte, error) {
	p.i++
	var body []byte
	n := 0
	for {
		p.space()
		if p.i < len(p.s) && p.s[p.i] == end {
			p.i++
			return append(appendHead(nil, major, uint64(n/per)), body...), nil
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		body = append(body, v...)
		n++
		p.space()
		if p.i < len(p.s) && p.s[p.i] == ':' {
			p.i++
		}
	}
}

// concatenated reads strings joined by +.
func (p *ednParser) concatenated(quote byte) (string, error) {
	var out string
	for {
		s, err := p.quoted(quote)
		if err != nil {
			return "", err
		}
		out += s
		p.space()
		if p.i >= len(p.s) || p.s[p.i] != '+' {
			return out, nil
		}
		p.i++
		p.space()
	}
}

func (p *ednParser) quoted(quote byte) (string, error) {
	p.i++
	var out []byte
	for p.i < len(p.s) && p.s[p.i] != quote {
		if p.s[p.i] == '\\' {
			p.i++
			if p.s[p.i] == 'n' {
				out = append(out, '\n')
				p.i++
				continue
			}
		}
		out = append(out, p.s[p.i])
		p.i++
	}
	if p.i >= len(p.s) {
		return "", fmt.Errorf("a string does not end")
	}
	p.i++
	return string(out), nil
}
