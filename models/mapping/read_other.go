//go:build !linux

package mapping

import "os"

// Read has nothing to do: pages come as they are read, and leave when the system wants their room.
func Read(*os.File, int64, []byte, bool) (given func(), err error) { return func() {}, nil }

// PreferHugePages has nothing to do: only Linux gives huge pages for the asking.
func PreferHugePages([]byte) {}
