package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/node"
	"github.com/askucher/compax-core/sdk/local"
)

// placeFlags say where a service's data is, for the operator's tools.
type placeFlags struct{ dir, config string }

func (f *placeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", "", "`FOLDER` where the service's data lies (default ./compax-data)")
	flags.StringVar(&f.config, "config", "", configUsage)
	must(cmd.MarkFlagDirname("dir"))
	must(cmd.MarkFlagFilename("config", "json", "toml"))
}

const configUsage = "configuration `FILE`, JSON or TOML (default $" + node.EnvConfig + ", else ./server.json if it is there)"

func (f *placeFlags) load(a *app) (node.Config, error) {
	return (&serviceFlags{dir: f.dir, config: f.config}).load(a)
}

func (a *app) backupCommand() *cobra.Command {
	var place placeFlags
	var out string
	var without bool
	cmd := command("backup -o FILE", "Write a backup of a service, running or not", args(), nil)
	cmd.Long = `Writes everything that a service in a data directory keeps into one file: its
database as it is at this moment, its keys, and the bytes of the files that people
sent. The service may run and goes on serving.

The file holds the keys of the home, as the data directory does: keep it as secret
(its mode is 0600). The configuration file is not in it. compax restore reads it.

A service on PostgreSQL is backed up with the database's own tools, pg_dump or a
base backup, and afterwards the folder of its blobs with any tool that copies files:
they never change once they are whole.`
	cmd.Example = example("compax backup --dir compax-data -o compax-$(date +%F).tar",
		"compax backup -o - | age -r RECIPIENT > compax.tar.age")
	place.add(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&out, "output", "o", "", "the `FILE` to write, which must not exist; - is standard output")
	flags.BoolVar(&without, "without-blobs", false, "leave the bytes of people's files out (copy <dir>/server/blobs yourself, after this)")
	must(cmd.MarkFlagFilename("output", "tar"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := place.load(a)
		if err != nil {
			return err
		}
		switch {
		case out == "":
			return usage("where to? -o FILE")
		case c.Database != "":
			return hint(usage("this service keeps its data in PostgreSQL, which its own tools back up"),
				"pg_dump --format=custom, then copy %s; after pg_restore: compax restore --incarnation", filepath.Join(c.Dir, "server", "blobs"))
		case out == "-" && a.json:
			return usage("-o - writes the backup to standard output, where --json would write too: name a file")
		case out == "-" && a.outTTY:
			return usage("a backup is no text for a terminal: -o FILE, or pipe it on")
		}
		return a.backup(cmd.Context(), c, out, without)
	}
	return cmd
}

// backupResult is what backup did, with --json.
type backupResult struct {
	File    string    `json:"file"`
	Home    string    `json:"home"`
	Made    time.Time `json:"made"`
	Files   int64     `json:"files"`
	Bytes   int64     `json:"bytes"`
	Blobs   int64     `json:"blobs"`
	Missing int64     `json:"missing"`
	SHA256  string    `json:"sha256"`
	TookMS  int64     `json:"took_ms"`
}

func (a *app) backup(ctx context.Context, c node.Config, out string, without bool) error {
	began := a.now()
	o := node.BackupOptions{Dir: c.Dir, Scratch: filepath.Dir(out), WithoutBlobs: without, Program: version(), Now: began}
	var end func()
	o.Progress, end = a.stages()
	write := func(w io.Writer) (node.Manifest, node.BackupEnd, error) {
		buffered := bufio.NewWriterSize(w, 1<<20)
		m, sum, err := node.Backup(ctx, buffered, o)
		return m, sum, errors.Join(err, buffered.Flush())
	}
	var m node.Manifest
	var sum node.BackupEnd
	var err error
	if out == "-" {
		o.Scratch = os.TempDir()
		m, sum, err = write(a.out)
	} else {
		err = newFile(out, func(f *os.File) (err error) {
			m, sum, err = write(f)
			return err
		})
	}
	end()
	if err != nil {
		return placeFault(c.Dir, err)
	}
	took := a.now().Sub(began)
	if sum.Missing > 0 {
		a.say("%s %d of %d files that people sent are not on this disk any more and so not in the backup: compax doctor names them",
			a.paint(a.errTTY, red, "note:"), sum.Missing, m.Blobs)
	}
	text := fmt.Sprintf("%s: home %s as of %s, %s in %d files (%.1f s)\nIt holds the home's keys: keep it as secret as %s. It is read by compax restore.",
		out, m.Home, m.Made.Format(time.RFC3339), humanize.IBytes(uint64(sum.Bytes)), sum.Files, took.Seconds(), c.Dir)
	if out == "-" {
		a.say("%s", text)
		return nil
	}
	return a.result(backupResult{out, m.Home, m.Made, sum.Files, sum.Bytes, m.Blobs, sum.Missing, sum.SHA256, took.Milliseconds()}, text)
}

// newFile writes a file that must not exist: aside and whole, with mode 0600.
func newFile(path string, write func(*os.File) error) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return hint(usage("%s exists", path), "name another file: a backup never replaces one")
	}
	f, err := os.OpenFile(path+".part", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return hint(usage("%s.part exists: another backup is writing it, or was cut off", path), "delete it when none is running")
	}
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(path+".part"))
	}
	// Link, not rename: it fails when the name was taken meanwhile.
	if err := os.Link(path+".part", path); err != nil {
		if err = os.Rename(path+".part", path); err != nil { // a file system without links
			return err
		}
		return nil
	}
	return os.Remove(path + ".part")
}

// stages shows a bar for each stage of a long task, and gives what ends it.
func (a *app) stages() (show func(what string, done, total int64), end func()) {
	var now *bar
	show = func(what string, done, total int64) {
		if now == nil || now.name != what {
			if now != nil {
				now.end()
			}
			now = a.bar(what)
		}
		_ = now.show(local.Progress{Done: done, Total: total}) // a bar that cannot be drawn costs nothing
	}
	return show, func() {
		if now != nil {
			now.end()
		}
	}
}

func (a *app) restoreCommand() *cobra.Command {
	var place placeFlags
	var incarnation bool
	cmd := command("restore FILE", "Put a backup into an empty data directory", args("[FILE]"), nil)
	cmd.Long = `Reads a backup of compax backup into a data directory that is empty or not there,
verifies all of it, and starts a new incarnation of the home: everybody logs in
anew, and rooms wait for their members, who put back what they kept since the
backup. Make sure that the old service does not run any more: two services with
one home part ways for good.

Data that other tools put back (pg_restore, a snapshot of a disk) needs the
incarnation too, before the service starts again: compax restore --incarnation.`
	cmd.Example = example("compax restore compax-2026-12-02.tar --dir compax-data",
		"age -d compax.tar.age | compax restore - --dir compax-data",
		"DATABASE_URL=postgres://… compax restore --incarnation")
	place.add(cmd)
	cmd.ValidArgsFunction = completeFiles
	cmd.Flags().BoolVar(&incarnation, "incarnation", false, "start the incarnation of data that other tools put back; reads no file")
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		c, err := place.load(a)
		switch {
		case err != nil:
			return err
		case incarnation && len(given) > 0:
			return usage("--incarnation is for data that is back already: it reads no FILE")
		case incarnation:
			return a.startIncarnation(cmd.Context(), c)
		case len(given) == 0:
			return usage("which backup? compax restore FILE --dir DIR")
		case c.Database != "":
			return hint(usage("this service keeps its data in PostgreSQL"), "pg_restore puts it back; then compax restore --incarnation")
		}
		return a.restore(cmd.Context(), c, given[0])
	}
	return cmd
}

// restoreResult is what restore did, with --json.
type restoreResult struct {
	Dir         string    `json:"dir"`
	Home        string    `json:"home,omitempty"`
	Made        time.Time `json:"made,omitzero"`
	Rooms       int64     `json:"rooms"`
	Files       int64     `json:"files"`
	Bytes       int64     `json:"bytes"`
	Incarnation uint32    `json:"incarnation"`
	Blobs       bool      `json:"blobs"`
}

func (a *app) restore(ctx context.Context, c node.Config, from string) error {
	in := a.in
	if from != "-" {
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	progress, end := a.stages()
	r, err := node.Restore(ctx, bufio.NewReaderSize(in, 1<<20), node.RestoreOptions{Dir: c.Dir, Now: a.now(), Progress: progress})
	end()
	if err != nil {
		return placeFault(c.Dir, err)
	}
	blobs := ""
	if !r.Manifest.WithBlobs {
		blobs = fmt.Sprintf("\nThe bytes of people's files are not in this backup: copy them to %s before you start it.", filepath.Join(c.Dir, "server", "blobs"))
	}
	return a.result(restoreResult{c.Dir, r.Manifest.Home, r.Manifest.Made, r.Rooms, r.End.Files, r.End.Bytes, r.Incarnation, r.Manifest.WithBlobs},
		fmt.Sprintf("%s: home %s as of %s, %d rooms, %s in %d files%s\n\n%s", c.Dir, r.Manifest.Home, r.Manifest.Made.Format(time.RFC3339), r.Rooms,
			humanize.IBytes(uint64(r.End.Bytes)), r.End.Files, blobs, whatNext("compax up --dir "+c.Dir)))
}

func (a *app) startIncarnation(ctx context.Context, c node.Config) error {
	n, err := node.StartIncarnation(ctx, c)
	if err != nil {
		return placeFault(c.Dir, err)
	}
	return a.result(restoreResult{Dir: c.Dir, Incarnation: n, Blobs: true}, fmt.Sprintf("incarnation %d\n\n%s", n, whatNext("it now")))
}

// whatNext says what a restore means for the service's users.
func whatNext(start string) string {
	return `Start ` + start + `, under the same address as before. What happens then:
  - Everybody is logged out; their apps log in by themselves.
  - Each chat waits up to 15 minutes for its members' devices, which put back what
    they kept since the backup. Messages written meanwhile are kept and sent after.
  - What no device kept is lost; files that were sent since the backup are, too.
The old service must not run again: two with one home part ways for good.`
}

// placeFault says what to do about data that cannot be backed up, restored or
// looked at.
func placeFault(dir string, err error) error {
	switch {
	case errors.Is(err, node.ErrNoData):
		return hint(usage("there is no service's data in %s", dir), "--dir says where it is: the folder that compax up was given")
	case errors.Is(err, node.ErrNotEmpty):
		return hint(usage("%s is not empty: nothing was changed", dir), "a restore never overwrites: name another --dir, or move that one away")
	case errors.Is(err, node.ErrHalfRestored):
		return hint(usage("a restore into %s was cut off", dir), "delete that folder and restore again")
	case errors.Is(err, node.ErrNotBackup):
		return hint(usage("%s", tidy(err.Error())), "nothing was restored, %s is as it was: try another copy of the backup", dir)
	case errors.Is(err, node.ErrInUse):
		return hint(usage("%s is in use: a service runs there", dir), "stop it first")
	case errors.Is(err, node.ErrNewer):
		return hint(usage("the data in %s is of a newer version", dir), "use that version of compax")
	case errors.Is(err, node.ErrCorrupt):
		return hint(usage("the database in %s is damaged or none", dir), "compax doctor says more; compax restore brings a backup back into another folder")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, delivery.ErrFull):
		return &local.Error{Code: "disk_full", Exit: exitOffline, Detail: "the disk is full", Hint: "nothing was changed: make room and try again"}
	}
	return err
}
