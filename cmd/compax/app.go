package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// app is what every command stands on: the streams, the clock, and the flags
// that all commands have.
type app struct {
	in       io.Reader
	out, err io.Writer
	outFile  *os.File // what out writes to, when that may be a file
	env      func(string) string
	now      func() time.Time

	inTTY, outTTY, errTTY bool
	dumb                  bool                                // a terminal that knows no escape sequences
	width                 int                                 // of the terminal, columns
	errWidth              func() int                          // of the terminal on standard error now, 0 = unknown; nil = width
	readHidden            func(prompt string) ([]byte, error) // asks on the terminal, unseen

	json     bool
	progress bool
	home     string
	profile  string
	engines  engines
	slot     func(path string) (slot, error) // opens a page of the notebook
	began    bool                            // a command's own code runs: what fails now is not its usage

	screen sync.Mutex // held while standard error is written to; guards drawn
	drawn  bool       // its last line is one that changes
	behind behind
}

func newApp() *app {
	a := &app{in: os.Stdin, out: os.Stdout, outFile: os.Stdout, err: os.Stderr, env: os.Getenv, now: time.Now, width: 80, engines: onDisk, slot: openSlot}
	a.inTTY, a.outTTY, a.errTTY = isatty.IsTerminal(os.Stdin.Fd()), isatty.IsTerminal(os.Stdout.Fd()), isatty.IsTerminal(os.Stderr.Fd())
	a.dumb = os.Getenv("TERM") == "dumb"
	a.errWidth = func() int { return terminalWidth(os.Stderr) }
	for _, f := range []*os.File{os.Stderr, os.Stdout} { // the last one known counts
		if w := terminalWidth(f); w > 0 {
			a.width = w
		}
	}
	a.readHidden = func(prompt string) ([]byte, error) {
		fmt.Fprint(os.Stderr, prompt)
		defer fmt.Fprintln(os.Stderr)
		return term.ReadPassword(int(os.Stdin.Fd()))
	}
	return a
}

// terminalWidth is how many columns a terminal has, 0 when f is none.
func terminalWidth(f *os.File) int {
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// errColumns is how wide the terminal on standard error is now: people drag windows
// while a long transfer runs.
func (a *app) errColumns() int {
	if a.errWidth != nil {
		if w := a.errWidth(); w > 0 {
			return w
		}
	}
	return cmp.Or(a.width, helpColumns)
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, a *app, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	a.json = slices.Contains(args, "--json") // for errors before the flags are read
	defer a.wipe()
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if !a.began {
		err = &usageError{text: err.Error(), cmd: cmd}
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitStopped
	}
	var shown *reported
	if errors.As(err, &shown) {
		return shown.exit
	}
	return a.fail(err)
}

// root is the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "compax",
		Short: "End-to-end encrypted messenger: the service and a client, in one program",
		Long: `Compax is an end-to-end encrypted messenger. "compax up" starts a service on
this machine; the other commands talk through it, or through anybody else's.

A first conversation takes three commands:

  compax account new --profile me --server http://127.0.0.1:8080 \
      --name "Ada" --username ada
  compax room new --profile me --direct @bob
  compax send --profile me CHAT "Hello"

Every command takes --json: one JSON object a line, errors too.

` + exitHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			a.began = true
			a.json = flagBool(cmd, "json")
		},
	}
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.SetVersionTemplate("compax {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "one JSON object a line on standard output, errors too")
	flags.BoolVar(&a.progress, "progress", false, "show progress even when standard error is no terminal")
	flags.StringVar(&a.home, "home", "", "`FOLDER` of the profiles (default $COMPAX_HOME, else "+defaultHome+")")
	flags.StringVarP(&a.profile, "profile", "p", "", "whose account to use, by the `NAME` of its profile (default $COMPAX_PROFILE, else the only one)")
	must(root.RegisterFlagCompletionFunc("profile", a.completeProfiles))
	must(root.MarkPersistentFlagDirname("home"))

	root.AddGroup(
		&cobra.Group{ID: groupService, Title: "Service:"},
		&cobra.Group{ID: groupTalk, Title: "Talk:"},
		&cobra.Group{ID: groupAccount, Title: "Account:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupService, a.upCommand(), a.serverCommand(), a.checkCommand(), a.backupCommand(), a.restoreCommand())
	add(groupTalk, a.chatsCommand(), a.roomCommand(), a.sendCommand(), a.outboxCommand(), a.listenCommand(), a.historyCommand(), a.searchCommand(),
		a.membersCommand(), a.editCommand(), a.deleteCommand(), a.reactCommand(), a.getCommand(), a.typingCommand())
	add(groupAccount, a.accountCommand(), a.devicesCommand(), a.verifyCommand(), a.settingsCommand())
	root.AddCommand(a.versionCommand(), a.manCommand())
	for _, c := range all(root) {
		c.Long = wrap(c.Long, helpColumns)
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpColumns)))
	return root
}

// flagError says what a flag wants that got something else.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	f := invalid.GetFlag()
	want := "a number of at most 18 digits"
	switch f.Value.Type() {
	case "bool":
		want = "true or false"
	case "duration":
		want = "a time such as 90s or 5m"
	}
	return fmt.Errorf("--%s: %q is not %s", f.Name, invalid.GetValue(), want)
}

const (
	groupService = "service"
	groupTalk    = "talk"
	groupAccount = "account"
)

// all is a command and everything below it.
func all(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		out = append(out, all(sub)...)
	}
	return out
}

func flagBool(cmd *cobra.Command, name string) bool {
	v, err := cmd.Flags().GetBool(name)
	return err == nil && v
}

// must is for what only a mistake in this program's own tables can break.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// args checks how many arguments a command got, and names the missing one.
// names are those of the command's usage; the last of them, in brackets, are
// optional.
func args(names ...string) cobra.PositionalArgs {
	need := 0
	for _, n := range names {
		if !strings.HasPrefix(n, "[") {
			need++
		}
	}
	return func(_ *cobra.Command, given []string) error {
		switch {
		case len(given) < need:
			return fmt.Errorf("%s is missing", names[len(given)])
		case len(given) > len(names):
			return fmt.Errorf("%q is one argument too many (a text of several words goes in quotes)", given[len(names)])
		}
		return nil
	}
}
