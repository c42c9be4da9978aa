package checkpoint

// Linux says which pages of a mapped file are in memory, and reads a stretch of it without a copy.
// Several read(2) readers of one file share its readahead state, and they fill its page cache at
// half the speed of one reader, or less; populating the mapping has neither problem.

import (
	"slices"

	"github.com/ossrun/ossrun/models/mapping"
)

// missing leaves out what is in memory.
func missing(list []span) []span {
	return slices.DeleteFunc(list, func(s span) bool { return mapping.InMemory(s.data) })
}

func (s span) read() error {
	given, err := mapping.Read(s.file, s.begin, s.data, true)
	if err != nil {
		return err
	}
	given()
	return nil
}
