//go:build race

package sample

// raceEnabled: the race detector allocates where the code does not.
const raceEnabled = true
