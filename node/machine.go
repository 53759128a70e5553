package node

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machine reads what this process runs on.
type machine struct{}

// Load is the load average of the last minute for each processor, where the
// system has a /proc.
func (machine) Load() (float64, bool) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(b), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, false
	}
	return load / float64(runtime.NumCPU()), true
}
