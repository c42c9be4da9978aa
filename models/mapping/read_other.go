//go:build !linux

package mapping

import "os"

// Read has nothing to do: pages come as they are read, and leave when the system wants their room.
func Read(*os.File, int64, []byte, bool) (given func(), err error) { return func() {}, nil }

// The rest has nothing to do either: only Linux can be asked for it.

func PreferHugePages([]byte) {}

func KeepSmallPages([]byte) {}

func GiveBack([]byte) bool { return false }

func PageOut([]byte) {}
