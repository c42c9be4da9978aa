//go:build !unix

// Systems whose files have no user's number.

package process

import "os"

// Owns is true: the folders of a user's profile are that user's.
func Owns(os.FileInfo) bool { return true }
