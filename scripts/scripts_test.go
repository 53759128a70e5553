package scripts

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// raceFlag is what go build gets besides: -race when the test has it.
var raceFlag []string

// binary is the folder that holds the built compax.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "compax-scripts")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	args := append([]string{"build"}, raceFlag...)
	cmd := exec.Command("go", append(args, "-o", filepath.Join(dir, "compax"), "../cmd/compax")...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the binary:", err)
		return 1
	}
	binary = dir
	if err := os.WriteFile(filepath.Join(dir, calmName), []byte(calm), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", binary+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("COMPAX_HOME", filepath.Join(env.WorkDir, "profiles"))
			env.Values[serversKey{}] = servers{}
			env.Values[impostorKey{}] = map[string]*http.Server{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":    cmdServe,
			"crash":    cmdCrash,
			"stop":     cmdStop,
			"garbage":  cmdGarbage,
			"impostor": cmdImpostor,
			"spoiler":  cmdSpoiler,
			"exits":    cmdExits,
			"accounts": cmdAccounts,
			"field":    cmdField,
			"line":     cmdLine,
			"random":   cmdRandom,
			"photo":    cmdPhoto,
			"agree":    cmdAgree,
			"repeat":   cmdRepeat,
		},
	})
}
