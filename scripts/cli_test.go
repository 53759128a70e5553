package scripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/sdk/local"
)

// fields are those of a table of docs/cli.md: name → always there.
type fields map[string]bool

// manual is docs/cli.md: what its tables say, by heading.
type manual struct {
	tables map[string]fields
	links  map[string][]string // headings of other tables that a section says it prints
	kinds  []string            // of rows
}

var (
	tableRow  = regexp.MustCompile("^\\| `([a-z0-9_]+)` \\| ([^|]*) \\|(.*)\\|$")
	tableLink = regexp.MustCompile(`\]\(#([a-z-]+)\)`)
	inQuotes  = regexp.MustCompile("`([^`]+)`")
)

func readManual(t *testing.T) manual {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := manual{tables: map[string]fields{}, links: map[string][]string{}}
	heading, anchors := "", map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			heading = strings.ToLower(strings.Trim(title, "# "))
			m.tables[heading] = fields{}
			anchors[strings.ReplaceAll(heading, " ", "-")] = heading
		}
		for _, l := range tableLink.FindAllStringSubmatch(line, -1) {
			m.links[heading] = append(m.links[heading], l[1])
		}
		if row := tableRow.FindStringSubmatch(line); row != nil {
			m.tables[heading][row[1]] = row[2] == "always"
			if heading == "a row" && row[1] == "kind" {
				for _, k := range inQuotes.FindAllStringSubmatch(row[3], -1) {
					m.kinds = append(m.kinds, k[1])
				}
			}
		}
	}
	for heading, links := range m.links {
		for i, anchor := range links {
			if links[i] = anchors[anchor]; links[i] == "" {
				t.Errorf("%s names #%s, which there is not", heading, anchor)
			}
		}
	}
	return m
}

// of is what a command prints: its own table and those that it names.
func (m manual) of(command string) fields {
	out := maps.Clone(m.tables["compax "+command])
	for _, other := range m.links["compax "+command] {
		if other != "errors" {
			maps.Copy(out, m.tables[other])
		}
	}
	return out
}

// proof holds what commands print against the manual.
type proof struct {
	*world
	manual
	seen map[string]fields // what was printed, by command or "errors"
}

// command is which section an invocation belongs to.
func (r *proof) command(args []string) string {
	for n := min(2, len(args)); n > 0; n-- {
		name := strings.Join(args[:n], " ")
		if _, ok := r.tables["compax "+name]; ok {
			return name
		}
	}
	r.t.Fatalf("docs/cli.md says nothing of compax %s", strings.Join(args, " "))
	return ""
}

// says runs a command with --json, wants its exit code, and compares each line of what
// it prints with the manual. It gives the last line.
func (r *proof) says(code int, stdin string, args ...string) (last map[string]any) {
	r.t.Helper()
	cmd := r.world.command(r.t.Context(), append(args, "--json")...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	got := 0
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			r.t.Fatal(err)
		}
		got = exit.ExitCode()
	}
	if got != code {
		r.t.Fatalf("compax %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &stdout, &stderr)
	}
	for line := range strings.Lines(stdout.String()) {
		last = map[string]any{}
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			r.t.Fatalf("compax %s: %v: %q", strings.Join(args, " "), err, line)
		}
		r.read(r.command(args), last)
	}
	if _, refused := last["exit"]; refused != (code != 0) {
		r.t.Errorf("compax %s ends with %d, and its last line is %v", strings.Join(args, " "), code, last)
	}
	return last
}

// read compares one object with the manual.
func (r *proof) read(command string, line map[string]any) {
	r.t.Helper()
	table, name := r.of(command), command
	_, refused := line["exit"]
	switch {
	case refused && command == "check":
		table = maps.Clone(table)
		maps.Copy(table, r.tables["errors"])
	case refused:
		table, name = r.tables["errors"], "errors"
	case command == "account link" && line["offer"] != nil:
		table = r.tables["compax account link"]
	case strings.HasPrefix(command, "outbox ") && len(line) == 1 && line["failed"] == 0.0:
		return
	}
	if r.seen[name] == nil {
		r.seen[name] = fields{}
	}
	for field := range line {
		r.seen[name][field] = true
		if _, told := table[field]; !told {
			r.t.Errorf("compax %s prints %q, of which docs/cli.md says nothing: %v", command, field, line)
		}
	}
	for field, always := range table {
		if _, there := line[field]; always && !there {
			r.t.Errorf("compax %s does not print %q, which docs/cli.md says is always there: %v", command, field, line)
		}
	}
	if kind, ok := line["kind"].(string); ok && table["epoch"] && !slices.Contains(r.kinds, kind) {
		r.t.Errorf("compax %s prints a row of kind %q, which docs/cli.md does not know", command, kind)
	}
}

// shapes are the types whose fields are not all seen in one short story: what the manual
// says of them is all that they have.
var shapes = map[string]reflect.Type{
	"errors": reflect.TypeFor[local.Error](), "a row": reflect.TypeFor[local.Row](), "an account": reflect.TypeFor[local.Self](),
	"compax chats": reflect.TypeFor[local.Chat](), "compax members": reflect.TypeFor[local.Member](), "compax devices": reflect.TypeFor[local.Device](),
}

func TestCommandsPrintWhatTheManualSays(t *testing.T) {
	r := &proof{world: newWorld(t), manual: readManual(t), seen: map[string]fields{}}
	for heading, shape := range shapes {
		var has []string
		for i := range shape.NumField() {
			if tag, _, _ := strings.Cut(shape.Field(i).Tag.Get("json"), ","); tag != "" {
				has = append(has, tag)
			}
		}
		slices.Sort(has)
		if told := slices.Sorted(maps.Keys(r.tables[heading])); !slices.Equal(has, told) {
			t.Errorf("docs/cli.md gives %s the fields %q, and it has %q", heading, told, has)
		}
	}
	r.everyCommandIsTold()
	r.story()

	for heading, table := range r.tables {
		command, isCommand := strings.CutPrefix(heading, "compax ")
		if !isCommand || heading == "compax server" {
			continue
		}
		if len(r.seen[command]) == 0 {
			t.Errorf("the story does not run compax %s to a line", command)
		}
		if shapes[heading] != nil {
			continue
		}
		for field := range table {
			if !r.seen[command][field] {
				t.Errorf("compax %s never printed %q, of which docs/cli.md tells", command, field)
			}
		}
	}
}

// everyCommandIsTold: the program has no command that the manual leaves out.
func (r *proof) everyCommandIsTold() {
	r.t.Helper()
	dir := r.t.TempDir()
	r.says(0, "", "man", dir)
	pages, err := os.ReadDir(dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, page := range pages {
		name := strings.ReplaceAll(strings.TrimSuffix(page.Name(), ".1"), "-", " ")
		switch {
		case name == "compax", name == "compax account", name == "compax room", strings.HasPrefix(name, "compax completion"), name == "compax help":
			continue // they print a help, or a script
		}
		if _, ok := r.tables[name]; !ok {
			r.t.Errorf("docs/cli.md says nothing of %s", name)
		}
	}
}

// story runs every command, and most of what it can say.
func (r *proof) story() {
	r.t.Helper()
	ok := func(args ...string) map[string]any { r.t.Helper(); return r.says(0, "", args...) }
	text := func(line map[string]any, field string) string { s, _ := line[field].(string); return s }
	seq := func(line map[string]any) string { return string(encoded(line["seq"])) }
	file := filepath.Join(r.dir, "photo.txt")
	if err := os.WriteFile(file, []byte("a photo"), 0o600); err != nil {
		r.t.Fatal(err)
	}

	ok("version")
	ok("check")
	wrong := filepath.Join(r.dir, "wrong.toml")
	if err := os.WriteFile(wrong, []byte("retention_days = \"many\"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.says(2, "", "check", "--config", wrong)
	phrase := text(ok("account", "new", "-p", "ada", "--server", r.url, "--name", "Ada", "--username", "ada"), "phrase")
	ok("account", "new", "-p", "bob", "--server", r.url, "--name", "Bob", "--username", "bob")
	ok("account", "new", "-p", "carl", "--server", r.url, "--name", "Carl", "--username", "carl")
	ok("account", "edit", "-p", "ada", "--about", "Tea")
	ok("account", "show", "-p", "ada")
	ok("account", "list")
	ok("settings", "-p", "ada", "presence", "on")

	tea := text(ok("room", "new", "-p", "ada", "--title", "Tea"), "chat")
	ok("room", "rename", "-p", "ada", tea, "Tea time")
	ok("room", "add", "-p", "ada", tea, "@bob", "@carl")
	ok("chats", "-p", "bob")
	ok("room", "accept", "-p", "bob", tea)
	ok("room", "decline", "-p", "carl", tea)
	first := ok("send", "-p", "ada", tea, "Tea at five?")
	ok("send", "-p", "bob", tea, "Yes", "--reply", seq(first))
	ok("edit", "-p", "ada", tea, seq(first), "Tea at six?")
	ok("react", "-p", "bob", tea, seq(first), "👍")
	photo := ok("send", "-p", "ada", tea, "--file", file)
	slip := ok("send", "-p", "ada", tea, "a slip")
	ok("delete", "-p", "ada", tea, seq(slip))
	ok("get", "-p", "bob", tea, seq(photo), "-o", filepath.Join(r.dir, "got.txt"))
	ok("typing", "-p", "bob", tea)
	r.says(3, "", "listen", "-p", "bob", "--events", "--count", "1000", "--timeout", "2s")
	ok("listen", "-p", "bob", "--chat", tea, "--since", "0", "--count", "2", "--timeout", "60s")
	ok("history", "-p", "bob", tea, "--events")
	ok("search", "-p", "bob", "six")
	ok("members", "-p", "bob", tea)
	ok("chats", "-p", "bob")
	ok("verify", "-p", "bob", "@ada", "--confirm")
	ok("room", "remove", "-p", "ada", tea, "@carl")
	ok("room", "leave", "-p", "bob", text(ok("room", "new", "-p", "bob", "--title", "Alone"), "chat"))

	notes := text(ok("room", "new", "-p", "carl", "--title", "Notes"), "chat")
	list := text(ok("room", "new", "-p", "ada", "--title", "Rum"), "chat")
	ok("room", "publish", "-p", "ada", list, "--about", "Everything about rum")
	ok("room", "find", "-p", "carl", "rum")
	ok("room", "ask", "-p", "carl", list, "--note", "May I?")
	ok("room", "unpublish", "-p", "ada", list)
	ok("room", "upgrade", "-p", "ada", tea, "--suite", "3")

	ticket := text(ok("devices", "ticket", "-p", "ada"), "ticket")
	offer := text(r.linkOffer(ticket), "offer")
	ok("devices", "approve", "-p", "ada", offer)
	ok("account", "link", "-p", "tablet", ticket)
	ok("account", "archive", "-p", "ada")
	again := r.says(0, phrase+"\n", "account", "restore", "-p", "again", "--server", r.url)
	ok("devices", "revoke", "-p", "ada", text(again, "device"))
	ok("devices", "-p", "ada")

	r.server.kill()
	backup := filepath.Join(r.dir, "backup.tar")
	ok("backup", "--dir", filepath.Join(r.dir, "home"), "-o", backup)
	ok("restore", backup, "--dir", filepath.Join(r.dir, "home2"))
	for _, words := range []string{"one", "two"} {
		r.says(3, "", "send", "-p", "carl", notes, words)
	}
	waits := ok("outbox", "-p", "carl")
	ok("outbox", "drop", "-p", "carl", text(waits, "id"))
	rest := ok("outbox", "-p", "carl")
	r.start(r.server.addr)
	ok("outbox", "resend", "-p", "carl", text(rest, "id"))
	r.up()
}

// linkOffer is what a new device shows, which is not approved yet.
func (r *proof) linkOffer(ticket string) map[string]any {
	r.t.Helper()
	cmd := r.world.command(r.t.Context(), "account", "link", "-p", "tablet", ticket, "--wait=false", "--json")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		r.t.Fatalf("linking ends with %v: %s", err, out)
	}
	first, rest, _ := strings.Cut(string(out), "\n")
	for _, line := range []string{first, rest} {
		var object map[string]any
		r.decode(line, &object)
		r.read("account link", object)
	}
	var offer map[string]any
	r.decode(first, &offer)
	return offer
}

// up starts a service of its own to its first line.
func (r *proof) up() {
	r.t.Helper()
	cmd := r.world.command(r.t.Context(), "up", "--dir", filepath.Join(r.dir, "other"), "--listen", "127.0.0.1:0", "--metrics-listen", "off", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	late := time.AfterFunc(startup, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var line map[string]any
	err = json.NewDecoder(out).Decode(&line)
	_ = cmd.Process.Kill() // it has said what it has to say
	_ = cmd.Wait()
	if err != nil {
		r.t.Fatal(err)
	}
	r.read("up", line)
}

func encoded(v any) []byte {
	b, _ := json.Marshal(v) // a number
	return b
}
