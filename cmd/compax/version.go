package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the module's version, or the commit that this was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "devel"
}

func (a *app) versionCommand() *cobra.Command {
	return command("version", "Say which build this is", args(), func(*cobra.Command, []string) error {
		v := struct {
			Version string `json:"version"`
			Go      string `json:"go"`
			System  string `json:"system"`
		}{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		return a.result(v, "compax "+v.Version+", "+v.Go+", "+v.System)
	})
}
