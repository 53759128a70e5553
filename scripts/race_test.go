//go:build race

package scripts

func init() { raceFlag = []string{"-race"} }
