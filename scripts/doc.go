// Package scripts tests the binary as people run it. Each file of testdata is
// one story told in commands (testscript, a text archive): people with
// profiles, a server that is killed, a stranger who attacks. The binary is built
// once, with the race detector when the test has it, and runs as processes of
// its own, so that killing one is real.
//
// It never looks inside: what a story needs to know it reads from the output,
// under the command line's contract (one JSON object a line, exit codes 0, 2
// usage, 3 offline, 4 refused).
//
// Beside the stories stand tests that run long and kill at random: a large file, an
// absence, a soak. They have a short form here and a long one under make soak.
//
// Start reading at testdata/conversation.txtar, then scripts_test.go, which
// says what the commands beyond testscript's own do.
package scripts
