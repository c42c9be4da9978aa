package checkpoint

// Linux says which pages of a mapped file are in memory, and reads a stretch of it without a copy.
// Readers of one file that call read(2) share what it knows of their readahead, and several of them
// insert into its page cache at half the speed of one, or less; populating the mapping has neither
// trouble.

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
