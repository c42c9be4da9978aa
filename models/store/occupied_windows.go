package store

import "io/fs"

// occupied is the room that a file takes on the disk.
func occupied(info fs.FileInfo) int64 { return info.Size() }
