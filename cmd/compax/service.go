package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/node"
	"github.com/askucher/compax-core/sdk/local"
)

// serviceFlags are the flags of up and server.
type serviceFlags struct {
	dir, listen, metrics, config string
}

func (f *serviceFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", "", "`FOLDER` where the data lies (default ./compax-data)")
	flags.StringVar(&f.listen, "listen", "", "where to serve, `HOST:PORT` (default 127.0.0.1:8080)")
	flags.StringVar(&f.metrics, "metrics-listen", "", "where to serve metrics, `HOST:PORT`, or \"off\" (default 127.0.0.1:9091)")
	flags.StringVar(&f.config, "config", "", configUsage)
	must(cmd.MarkFlagDirname("dir"))
	must(cmd.MarkFlagFilename("config", "json", "toml"))
}

// load reads the configuration; flags count more than the file.
func (f *serviceFlags) load(a *app) (node.Config, error) {
	c, err := node.Load(a.configEnv(f.config))
	if err != nil {
		return c, usage("%s", err)
	}
	for _, flag := range []struct {
		given string
		field *string
	}{{f.dir, &c.Dir}, {f.listen, &c.Listen}, {f.metrics, &c.MetricsListen}} {
		if flag.given != "" {
			*flag.field = flag.given
		}
	}
	if c.Dir == "" {
		c.Dir = "compax-data"
	}
	c.Version = version()
	return c, nil
}

// configEnv is the environment with a configuration file that a flag names.
func (a *app) configEnv(file string) func(string) string {
	return func(name string) string {
		if name == node.EnvConfig && file != "" {
			return file
		}
		return a.env(name)
	}
}

func (a *app) upCommand() *cobra.Command {
	var f serviceFlags
	cmd := command("up", "Start everything in one process, with embedded defaults", args(), nil)
	cmd.Long = `Starts a whole service: a SQLite file, blobs on disk, the API on 127.0.0.1:8080 and
metrics on 127.0.0.1:9091, everything under ./compax-data. It needs no flags and no
configuration, and stops at Ctrl-C.`
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := f.load(a)
		if err != nil {
			return err
		}
		c.Log = slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
		_, err = os.Stat(filepath.Join(c.Dir, "server"))
		first := errors.Is(err, os.ErrNotExist)
		if first {
			a.say("Making a new home in %s …", c.Dir)
		} else {
			a.say("Opening %s …", c.Dir)
		}
		return a.serve(cmd.Context(), c, a.welcome)
	}
	return cmd
}

func (a *app) serverCommand() *cobra.Command {
	var f serviceFlags
	cmd := command("server", "Run the delivery service alone, configured by a file", args(), nil)
	cmd.Long = `Runs the delivery service for a deployment: configured by a file and the
environment, with a log of one JSON object a line on standard error. compax check
looks at the file without starting anything.`
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := f.load(a)
		if err != nil {
			return err
		}
		c.Log = slog.New(slog.NewJSONHandler(a.err, nil))
		return a.serve(cmd.Context(), c, func(c node.Config, n *node.Node, took time.Duration) error {
			c.Log.Info("serving", "url", n.URL(), "metrics", n.MetricsURL(), "home", n.Home().String(), "dir", c.Dir,
				"version", c.Version, "config", c.Digest, "took", took.Round(time.Millisecond).String())
			return nil
		})
	}
	return cmd
}

// serve opens a node, says so, and runs it until it is told to stop.
func (a *app) serve(ctx context.Context, c node.Config, ready func(node.Config, *node.Node, time.Duration) error) error {
	began := a.now()
	n, err := node.New(ctx, c)
	if err != nil {
		return startFault(c, err)
	}
	if err := ready(c, n, a.now().Sub(began)); err != nil {
		return err
	}
	return n.Run(ctx)
}

// startFault says what to do about a service that does not start.
func startFault(c node.Config, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, delivery.ErrFull) {
		return &local.Error{Code: "disk_full", Exit: exitOffline, Detail: fmt.Sprintf("the service in %s does not start: the disk is full", c.Dir),
			Hint: "make room there and start again: nothing is lost"}
	}
	var todo []string
	for _, known := range []struct {
		errs []error
		do   string
	}{
		{[]error{node.ErrInUse}, "another compax serves this folder: stop that one, or give this one a folder of its own (--dir)"},
		{[]error{syscall.EADDRINUSE}, "another program listens there: choose other ports with --listen and --metrics-listen (127.0.0.1:0 takes any)"},
		{[]error{syscall.EACCES, syscall.EPERM}, "this user may not do that: choose another folder (--dir) or a port above 1023 (--listen)"},
		{[]error{syscall.EADDRNOTAVAIL}, "this machine does not have that address: see --listen and --metrics-listen"},
	} {
		if slices.ContainsFunc(known.errs, func(e error) bool { return errors.Is(err, e) }) {
			todo = append(todo, known.do)
		}
	}
	fault := usage("the service in %s does not start: %s", c.Dir, strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
	if len(todo) == 0 {
		return fault
	}
	return hint(fault, "%s", strings.Join(todo, "\n  "))
}

// welcome says where everything is, and how to begin.
func (a *app) welcome(c node.Config, n *node.Node, took time.Duration) error {
	if a.json {
		return a.emit(map[string]any{"url": n.URL(), "metrics": n.MetricsURL(), "metrics_token_file": tokenFile(c, n), "home": n.Home(), "dir": c.Dir, "took_ms": took.Milliseconds()})
	}
	b := func(text string) string { return a.paint(a.outTTY, bold, text) }
	soft := func(text string) string { return a.paint(a.outTTY, dim, text) }
	var t table
	t.add("  Service", b(n.URL())+soft("  home "+n.Home().String()))
	t.add("  Data", c.Dir)
	if n.MetricsURL() != "" {
		t.add("  Metrics", n.MetricsURL())
		t.add("", soft(tokenAdvice(c, n)))
	}
	fmt.Fprintf(a.out, "\n%s is up %s\n\n", b("Compax"), soft(fmt.Sprintf("(%.1f s, Ctrl-C stops it)", took.Seconds())))
	if err := t.write(a.out, func(_ int, cell string) string { return cell }); err != nil {
		return err
	}
	_, err := fmt.Fprint(a.out, a.nextSteps(n.URL()))
	return err
}

// nextSteps says how to begin, or to who has begun how to go on. It names the
// program as it was started, so that each line can be copied: a shell that finds
// compax only by its path would not find it by its name.
func (a *app) nextSteps(url string) string {
	compax := asStarted(os.Args[0])
	if have, err := a.profiles(); err == nil && len(have) > 0 { // else the start says nothing of them
		return fmt.Sprintf(`
In another terminal, with a profile of this machine (%s):

  %[4]s chats --profile %[2]s
  %[4]s listen --profile %[2]s

A further account: %[4]s account new --profile NAME --server %[3]s \
      --name NAME

`, short(strings.Join(have, ", "), 40), have[0], url, compax)
	}
	return fmt.Sprintf(`
In another terminal, make two accounts, and let one write to the other:

  %[2]s account new --profile ada --server %[1]s \
      --name "Ada" --username ada
  %[2]s account new --profile bob --server %[1]s \
      --name "Bob" --username bob
  %[2]s room new --profile ada --direct @bob
  %[2]s send --profile ada @bob "Hello"
  %[2]s chats --profile bob

`, url, compax)
}

// asStarted is how a shell in the same folder starts this program again: by the
// path that it was started by, or by its name alone when that was enough.
func asStarted(path string) string {
	if strings.ContainsAny(path, " \t'\"\\$`") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// tokenAdvice says where the metrics' token is.
func tokenAdvice(c node.Config, n *node.Node) string {
	if file := tokenFile(c, n); file != "" {
		return "bearer token in " + file
	}
	return "with the bearer token of the configuration"
}

// tokenFile is where the metrics' token was put, empty when it was configured.
func tokenFile(c node.Config, n *node.Node) string {
	if c.MetricsToken != "" || n.MetricsURL() == "" {
		return ""
	}
	return filepath.Join(c.Dir, "metrics.token")
}
