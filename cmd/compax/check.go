package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/node"
	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) checkCommand() *cobra.Command {
	var config string
	cmd := command("check", "Look at a configuration file without starting anything", args(), func(*cobra.Command, []string) error {
		c, err := node.Load(a.configEnv(config))
		if err != nil && a.json {
			var faults node.Faults
			errors.As(err, &faults) // none when the file cannot be read at all
			e := explain(usage("%s", err))
			return errors.Join(a.emit(struct {
				Valid bool `json:"valid"`
				*local.Error
				Faults node.Faults `json:"faults,omitempty"`
			}{false, e, faults}), &reported{e.Exit})
		}
		if err != nil {
			return usage("%s", err)
		}
		digest := c.Digest
		if digest == "" {
			digest = "no file: defaults"
		}
		return a.result(map[string]any{"valid": true, "digest": c.Digest}, "valid ("+digest+")")
	})
	cmd.Long = `Reads the configuration as compax up and compax server do, and names everything
that is wrong with it at once, with file and line: with --json in one object, "faults". It
starts nothing and changes nothing. Exit code 0 when it is valid, 2 when it is not.`
	cmd.Flags().StringVar(&config, "config", "", configUsage)
	must(cmd.MarkFlagFilename("config", "json", "toml"))
	return cmd
}
