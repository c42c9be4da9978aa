//go:build !linux

package mapping

import "os"

// Read does nothing: pages are read on access, and evicted by the system.
func Read(*os.File, int64, []byte, bool) (release func(), err error) { return func() {}, nil }

// The others do nothing either: only Linux supports them.

func PreferHugePages([]byte) {}

func KeepSmallPages([]byte) {}

func Release([]byte) bool { return false }

func PageOut([]byte) {}
