package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) manCommand() *cobra.Command {
	cmd := command("man [DIR]", "Write the manual: pages into DIR, or compax(1) to standard output", args("[DIR]"), nil)
	cmd.Example = example(`compax man ~/.local/share/man/man1`, `compax man | man -l -`)
	cmd.ValidArgsFunction = completeFiles
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		root := cmd.Root()
		if len(args) == 0 {
			return manPage(a.out, root)
		}
		if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // manuals are for everybody
			return err
		}
		for _, c := range all(root) {
			if c.Hidden || !c.IsAvailableCommand() && c != root {
				continue
			}
			path := filepath.Join(args[0], manName(c)+".1")
			if err := writeManPage(path, c); err != nil {
				return err
			}
			if err := a.result(map[string]string{"file": path}, path); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func writeManPage(path string, c *cobra.Command) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := manPage(f, c); err != nil {
		_ = f.Close() // the page is incomplete anyhow
		return err
	}
	return f.Close()
}

// manPage writes the page of a command in the man macros (man(7)).
func manPage(w io.Writer, c *cobra.Command) error {
	b := bufio.NewWriter(w)
	name := manName(c)
	fmt.Fprintf(b, ".TH %s 1 \"\" %s \"Compax manual\"\n.nh\n", roff(strings.ToUpper(name)), roff(version()))
	fmt.Fprintf(b, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	fmt.Fprintf(b, ".SH SYNOPSIS\n.B %s\n", roff(c.UseLine()))
	fmt.Fprintf(b, ".SH DESCRIPTION\n")
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	roffText(b, text)
	roffFlags(b, "OPTIONS", c.NonInheritedFlags())
	roffFlags(b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.HasExample() {
		fmt.Fprintf(b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	var others []string
	if c.HasParent() {
		others = append(others, manName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			others = append(others, manName(sub))
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(b, ".SH SEE ALSO\n")
		for i, other := range others {
			comma := ","
			if i == len(others)-1 {
				comma = ""
			}
			fmt.Fprintf(b, ".BR %s (1)%s\n", roff(other), comma)
		}
	}
	return b.Flush()
}

// roffText writes paragraphs; indented lines stay as they are.
func roffText(w io.Writer, text string) {
	literal := false
	for l := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(l, "  ")
		if indented != literal && l != "" {
			literal = indented
			fmt.Fprintln(w, map[bool]string{true: ".nf", false: ".fi"}[literal])
		}
		if l == "" {
			l = ".PP"
		} else {
			l = roff(l)
		}
		fmt.Fprintln(w, l)
	}
	if literal {
		fmt.Fprintln(w, ".fi")
	}
}

func roffFlags(w io.Writer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(w, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, help := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(name), roff(help))
	})
}

// roff escapes text: backslashes, hyphens that must be copied, and lines that
// would be taken for requests.
func roff(text string) string {
	text = strings.ReplaceAll(text, `\`, `\e`)
	text = strings.ReplaceAll(text, "-", `\-`)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
