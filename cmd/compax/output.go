package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// say talks to the person, on standard error.
func (a *app) say(format string, args ...any) {
	a.screen.Lock()
	defer a.screen.Unlock()
	a.wiped()
	fmt.Fprintf(a.err, format+"\n", args...)
}

// emit writes one JSON object on a line of its own.
func (a *app) emit(v any) error {
	_, err := a.out.Write(encode(v))
	return err
}

// encode is one JSON object on a line of its own. What commands print can be
// encoded: it has no channels, functions or circles.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	must(enc.Encode(v))
	return b.Bytes()
}

// result is what a command did: the object with --json, else text, and nothing
// when that is empty.
func (a *app) result(v any, text string) error {
	if a.json {
		return a.emit(v)
	}
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}

// fail shows an error and returns its exit code.
func (a *app) fail(err error) int {
	e := explain(err)
	a.wipe()
	if a.json {
		if a.emit(e) == nil {
			return e.Exit
		}
	}
	detail := a.indented("compax: "+clean(e.Detail), "  ")
	a.say("%s%s", a.paint(a.errTTY, red, "compax:"), strings.TrimPrefix(detail, "compax:"))
	if e.Hint != "" {
		a.say("  %s", a.indented(clean(e.Hint), "  "))
	}
	var misused *usageError
	if errors.As(err, &misused) && misused.cmd != nil {
		a.say("\nusage: %s\n%s --help says more", misused.cmd.UseLine(), misused.cmd.CommandPath())
	}
	return e.Exit
}

// indented breaks a text where a terminal on standard error ends, and begins its
// further lines with indent. For a file or a pipe each line stays one.
func (a *app) indented(text, indent string) string {
	if !a.errTTY {
		return text
	}
	limit := max(a.errColumns()-2*len(indent), 10)
	var lines []string
	for part := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.Split(wrap(strings.TrimSpace(part), limit), "\n")...)
	}
	return strings.Join(lines, "\n"+indent)
}

// table aligns columns: cells are printed with two spaces between, the last one
// as it is.
type table struct {
	rows  [][]string
	under map[int][]string // lines below a row, by the row's number
	width int              // columns there are: what is longer is cut; 0 = any
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// below adds lines under the last row. They are not cut: an id is of use whole.
func (t *table) below(lines ...string) {
	if t.under == nil {
		t.under = map[int][]string{}
	}
	t.under[len(t.rows)-1] = append(t.under[len(t.rows)-1], lines...)
}

// write prints the rows. Columns at which no row has anything are left out, and
// what goes beyond the width is cut in the last one. style paints a cell; it is
// called with its column, the lines below a row with -1.
func (t *table) write(w io.Writer, style func(column int, cell string) string) error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	var b strings.Builder
	for n, row := range t.rows {
		line, used := "", 0
		for i, cell := range row {
			if widths[i] == 0 {
				continue
			}
			if left := t.width - used; t.width > 0 && i == len(row)-1 {
				cell = short(cell, max(left, 1))
			}
			used += widths[i] + 2
			pad := max(0, widths[i]-columns(cell))
			line += style(i, cell) + strings.Repeat(" ", pad+2)
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
		for _, line := range t.under[n] {
			b.WriteString("    " + style(-1, line) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// example indents a command's examples as cobra shows them.
func example(lines ...string) string {
	return "  " + strings.Join(lines, "\n  ")
}

// command makes a command whose Run gets its arguments.
func command(use, short string, check cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: check, RunE: run}
}
