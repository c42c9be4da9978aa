package store

import "io/fs"

// occupied is the disk space of a file.
func occupied(info fs.FileInfo) int64 { return info.Size() }
