package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	envHome    = "COMPAX_HOME"
	envProfile = "COMPAX_PROFILE"

	defaultHome = "~/.compax"
	storeFile   = "profile.db" // in a profile's folder
	sealFile    = "seal.key"
)

// profileName keeps profiles inside their folder and easy to type.
var profileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// homeDir is the folder of the profiles.
func (a *app) homeDir() (string, error) {
	for _, dir := range []string{a.home, a.env(envHome)} {
		if dir != "" {
			return filepath.Abs(dir)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usage("there is no home folder to keep profiles in: name one with --home or %s", envHome)
	}
	return filepath.Join(home, ".compax"), nil
}

// profiles lists those that exist.
func (a *app) profiles() ([]string, error) {
	dir, err := a.homeDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), storeFile)); err == nil && profileName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// chosen is the name and the folder of the profile that was asked for; with
// create one that need not exist.
func (a *app) chosen(create bool) (name, dir string, err error) {
	home, err := a.homeDir()
	if err != nil {
		return "", "", err
	}
	name = a.profile
	if name == "" {
		name = a.env(envProfile)
	}
	have, err := a.profiles()
	if err != nil {
		return "", "", err
	}
	switch {
	case name == "" && create && len(have) == 0:
		name = "default"
	case name == "" && create:
		return "", "", usage("name the new profile with --profile; there is %s already", strings.Join(have, ", "))
	case name == "" && len(have) == 1:
		name = have[0]
	case name == "" && len(have) == 0:
		return "", "", hint(usage("there is no profile in %s", home), "make one: compax account new --profile me --server URL --name NAME")
	case name == "":
		return "", "", usage("say whose account with --profile: %s", strings.Join(have, ", "))
	}
	if !profileName.MatchString(name) {
		return "", "", usage("%q is no name for a profile: letters, digits, dots, dashes and underscores, at most 64", name)
	}
	if !create && !slices.Contains(have, name) {
		advice := "make it: compax account new --profile " + name + " --server URL --name NAME"
		if len(have) > 0 {
			advice = "there is " + strings.Join(have, ", ") + "; " + advice
		}
		return "", "", hint(usage("there is no profile %q in %s", name, home), "%s", advice)
	}
	return name, filepath.Join(home, name), nil
}

// makeProfileDir makes a profile's folder for its user alone. made is false when
// it was there.
func makeProfileDir(dir string) (made bool, err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return false, fmt.Errorf("make the folder of the profiles: %w", err)
	}
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return false, os.Chmod(dir, 0o700) //nolint:gosec // a directory needs its x bit
	}
	if err != nil {
		return false, fmt.Errorf("make the profile's folder: %w", err)
	}
	return true, nil
}
