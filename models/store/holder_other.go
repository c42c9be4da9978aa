//go:build !linux

// Systems that do not tell who holds a lock.

package store

// Holder names the process that holds the lock at path; "" here, where it is not known.
func Holder(string) string { return "" }
