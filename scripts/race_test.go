//go:build race && scripts

package scripts

func init() { raceFlag = []string{"-race"} }
