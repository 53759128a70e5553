package main

// The exit codes. They answer what a script does next.
const (
	exitOK      = 0
	exitFailed  = 1   // a fault of this machine or program
	exitUsage   = 2   // change the command, or what it is about
	exitOffline = 3   // not now: nothing is lost, again later
	exitRefused = 4   // again does not help
	exitStopped = 130 // interrupted, as shells have it
)

const exitHelp = `Exit codes: 0 done; 2 wrong usage: change the command; 3 offline or not now:
nothing is lost, try again later; 4 refused: trying again does not help;
1 a fault of this machine; 130 interrupted.`
