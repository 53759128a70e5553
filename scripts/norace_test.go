//go:build !race

package scripts

func raceFlags() ([]string, error) { return nil, nil }
