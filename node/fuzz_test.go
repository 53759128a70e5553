package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// FuzzConfig: whatever stands in a configuration file, it is taken or each fault
// names a line that the file has.
func FuzzConfig(f *testing.F) {
	for _, toml := range []bool{false, true} {
		f.Add(toml, []byte(`{"listen": "127.0.0.1:1", "metrics": {"bind": 7}, "buckets": {"enrol": {"burst": -1}}, "nobody": [[{}]]}`))
		f.Add(toml, []byte("listen = \"x\"\n[metrics]\nbind = 7\n[buckets.enrol]\nburst = 1\n[[pow]]\nstep = 1.5\n"))
		f.Add(toml, []byte(`{"a": {"a": 1, "a": 2}}`))
		f.Add(toml, []byte("a.b.c = 1979-05-27T07:32:00Z\nd = nan\n"))
	}
	f.Fuzz(func(t *testing.T, toml bool, raw []byte) {
		path := "server.json"
		if toml {
			path = "server.toml"
		}
		var into file
		where, faults := parse(path, raw, &into)
		if where == nil && len(faults) != 1 {
			t.Errorf("a file that cannot be read has %d faults", len(faults))
		}
		lines := 1 + bytes.Count(raw, []byte("\n"))
		for _, fault := range faults {
			if fault.Line < 0 || fault.Line > lines || fault.Text == "" {
				t.Errorf("%+v of %d lines", fault, lines)
			}
		}
		if len(faults) == 0 {
			_ = into.config()
		}
	})
}

// FuzzBackup: whatever stands in a backup, only the names that a backup has become
// files below the directory, no longer than what was read.
func FuzzBackup(f *testing.F) {
	add := func(headers ...tar.Header) {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		body := []byte(`{"format":1,"with_blobs":true}`)
		for _, h := range headers {
			if h.Typeflag == tar.TypeReg {
				h.Size = int64(len(body))
			}
			if err := w.WriteHeader(&h); err != nil {
				f.Fatal(err)
			}
			if h.Typeflag == tar.TypeReg {
				if _, err := w.Write(body); err != nil {
					f.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(out.Bytes())
	}
	reg := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	add(reg(manifestName), reg(databaseName), reg(endName))
	add(reg(manifestName), reg(blobsName+"/01/01000000000000000000000000000000"), reg(tokenName), reg(endName))
	add(reg(manifestName), reg("../evil"))
	add(reg(manifestName), tar.Header{Name: tokenName, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		x := &extraction{r: tar.NewReader(bytes.NewReader(raw)), dir: filepath.Join(dir, "into"), sum: sha256.New()}
		if err := x.run(t.Context()); err != nil && !errors.Is(err, ErrNotBackup) {
			t.Errorf("error of another kind: %v", err)
		}
		total := int64(0)
		check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(x.dir, path)
			check(t, err)
			if !known(filepath.ToSlash(name)) || !d.Type().IsRegular() {
				t.Errorf("%s was made", path)
			}
			info, err := os.Lstat(path)
			check(t, err)
			total += info.Size()
			return nil
		}))
		if total > int64(len(raw)) {
			t.Errorf("%d bytes became %d", len(raw), total)
		}
	})
}
