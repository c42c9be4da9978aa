package checkpoint

// AheadPart is a file that ReadAhead reads, and the ranges that it skips.
type AheadPart struct {
	Path    string
	Without [][2]int64
}

// Ahead is the input of ReadAhead, and the memory that it needs.
func (f Model) Ahead(replaced Replaced) (list []AheadPart, need int64, err error) {
	parts, need, err := f.partsToRead(replaced)
	for _, p := range parts {
		part := AheadPart{Path: p.path}
		for _, s := range p.without {
			part.Without = append(part.Without, [2]int64{s.Begin, s.End})
		}
		list = append(list, part)
	}
	return list, need, err
}

// Bytes is the size of the opened tensors.
func (c *Checkpoint) Bytes() int64 { return c.bytes }
