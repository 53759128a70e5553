package node

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Fault is one thing that is wrong with a configuration.
type Fault struct {
	File    string `json:"file,omitempty"` // empty: from the environment, a flag, or nowhere
	Line    int    `json:"line,omitempty"` // from 1
	Setting string `json:"setting,omitempty"`
	Text    string `json:"error"`
}

func (f Fault) String() string {
	text := f.Text
	if f.Setting != "" {
		text = f.Setting + ": " + text
	}
	if f.File != "" {
		text = fmt.Sprintf("%s:%d: %s", f.File, f.Line, text)
	}
	return text
}

// Faults is everything that is wrong with a configuration, as an error.
type Faults []Fault

func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i := range f {
		texts[i] = f[i].String()
	}
	return "configuration:\n" + strings.Join(texts, "\n")
}

// err is nil when nothing is wrong, else the faults in order.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	slices.SortFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Setting, b.Setting), cmp.Compare(a.Text, b.Text))
	})
	return f
}

// lines says in which line a file sets what, by the dotted name.
type lines map[string]int

// of finds a setting's line, or that of the section it is in.
func (l lines) of(setting string) (int, bool) {
	for {
		if n, known := l[setting]; known {
			return n, true
		}
		i := strings.LastIndexByte(setting, '.')
		if i < 0 {
			return 0, false
		}
		setting = setting[:i]
	}
}

// parse reads a file by its name. Settings that do not exist or are of another
// kind are faults, all of them; where is nil when the file cannot be read as
// its language at all, with one fault that says in which line.
func parse(path string, raw []byte, into *file) (where lines, faults Faults) {
	tree, where, bad := map[string]any{}, lines{}, (*Fault)(nil)
	if strings.EqualFold(filepath.Ext(path), ".toml") {
		bad = readTOML(raw, tree, where)
	} else {
		bad = readJSON(raw, tree, where)
	}
	if bad != nil {
		bad.File = path
		return nil, Faults{*bad}
	}
	// Each setting is decoded by itself, so that one that is wrong hides no other.
	for _, name := range leaves("", tree) {
		if text := wrong(name, tree); text != "" {
			line, _ := where.of(name)
			faults = append(faults, Fault{File: path, Line: line, Setting: name, Text: text})
			drop(tree, name)
		}
	}
	whole, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(whole, into)
	}
	if err != nil {
		faults = append(faults, Fault{File: path, Line: 1, Text: err.Error()})
	}
	return where, faults
}

// leaves are the dotted names of what is set.
func leaves(prefix string, tree map[string]any) (names []string) {
	for name, v := range tree {
		if prefix != "" {
			name = prefix + "." + name
		}
		if below, ok := v.(map[string]any); ok && len(below) > 0 {
			names = append(names, leaves(name, below)...)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// wrong says why one setting cannot be taken; empty when it can.
func wrong(name string, tree map[string]any) string {
	path := strings.Split(name, ".")
	var v any = tree
	for _, key := range path {
		below, _ := v.(map[string]any)
		v = below[key]
	}
	for _, key := range slices.Backward(path) {
		v = map[string]any{key: v}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "its value cannot be taken"
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(new(file))
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &kind):
		return fmt.Sprintf("a %s stands where %s belongs", kind.Value, kindName(kind.Type))
	case knownSetting(path, reflect.TypeFor[file]()):
		return err.Error() // a value that its own type refuses
	}
	return "there is no such setting"
}

// knownSetting reports whether a dotted name is a field of the file.
func knownSetting(path []string, t reflect.Type) bool {
	for _, key := range path {
		switch t.Kind() {
		case reflect.Map:
			t = t.Elem()
			continue
		case reflect.Struct:
		default:
			return false
		}
		field, ok := t.FieldByNameFunc(func(name string) bool {
			f, _ := t.FieldByName(name)
			return f.Tag.Get("json") == key
		})
		if !ok {
			return false
		}
		t = field.Type
	}
	return true
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a section"
	}
	return "a whole number"
}

func drop(tree map[string]any, name string) {
	section, key, nested := strings.Cut(name, ".")
	if !nested {
		delete(tree, name)
		return
	}
	if below, ok := tree[section].(map[string]any); ok {
		drop(below, key)
	}
}

func lineAt(raw []byte, offset int64) int {
	return 1 + bytes.Count(raw[:min(offset, int64(len(raw)))], []byte("\n"))
}

// readJSON reads one JSON object and notes where its names stand.
func readJSON(raw []byte, into map[string]any, where lines) *Fault {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err := d.Decode(&into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return noteJSON(raw, where)
		}
		err = errors.New("something follows the object")
	}
	offset := d.InputOffset()
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset, err = kind.Offset, errors.New("it is no JSON object")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		offset, err = int64(len(raw)), errors.New("it ends early")
	}
	return &Fault{Line: lineAt(raw, offset), Text: err.Error()}
}

// noteJSON walks over an object that was read already. A name that stands
// twice is a fault: which one counts is nothing to guess.
func noteJSON(raw []byte, where lines) *Fault {
	d := json.NewDecoder(bytes.NewReader(raw))
	var walk func(prefix string) *Fault
	walk = func(prefix string) *Fault {
		t, err := d.Token()
		if err != nil {
			return &Fault{Line: 1, Text: err.Error()}
		}
		delim, _ := t.(json.Delim)
		if delim != '{' && delim != '[' {
			return nil
		}
		for d.More() {
			name := prefix
			if delim == '{' {
				key, err := d.Token()
				if err != nil {
					return &Fault{Line: 1, Text: err.Error()}
				}
				name = strings.TrimPrefix(fmt.Sprintf("%s.%v", prefix, key), ".")
				line := lineAt(raw, d.InputOffset())
				if first, twice := where[name]; twice {
					return &Fault{Line: line, Setting: name, Text: fmt.Sprintf("it is set in line %d already", first)}
				}
				where[name] = line
			}
			if bad := walk(name); bad != nil {
				return bad
			}
		}
		_, err = d.Token() // the closing one
		if err != nil {
			return &Fault{Line: 1, Text: err.Error()}
		}
		return nil
	}
	return walk("")
}

var (
	tomlSection = regexp.MustCompile(`^\s*\[\s*([A-Za-z0-9_."-]+)\s*\]`)
	tomlSetting = regexp.MustCompile(`^\s*([A-Za-z0-9_."-]+)\s*=`)
)

// readTOML reads TOML and notes where its names stand.
func readTOML(raw []byte, into map[string]any, where lines) *Fault {
	_, err := toml.Decode(string(raw), &into)
	var at toml.ParseError
	if errors.As(err, &at) {
		return &Fault{Line: at.Position.Line, Text: at.Message}
	}
	if err != nil {
		return &Fault{Line: 1, Text: err.Error()}
	}
	section := ""
	for i, line := range strings.Split(string(raw), "\n") {
		if m := tomlSection.FindStringSubmatch(line); m != nil {
			section = strings.ReplaceAll(m[1], `"`, "")
			where[section] = i + 1
		} else if m := tomlSetting.FindStringSubmatch(line); m != nil {
			where[strings.TrimPrefix(section+"."+strings.ReplaceAll(m[1], `"`, ""), ".")] = i + 1
		}
	}
	return nil
}
