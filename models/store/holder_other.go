//go:build !linux

// Systems that do not report the holder of a lock.

package store

// Holder names the process that holds the lock at path; "" here, as it is unknown.
func Holder(string) string { return "" }
