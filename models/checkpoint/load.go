package checkpoint

// When weights come into memory. Those of mapped files come by themselves, page by page; those of a
// GGUF file have to be put in order first, all at once for an engine that works on them where they
// lie, or one tensor after the other for a card that takes a copy of each.

import "context"

// Load brings into memory all weights that are not there and do not come by themselves. progress is
// called with the bytes done and the total, several times a second, by one goroutine; it may be
// nil. free is the memory available for this; if there is room for the files beside the weights,
// they stay in the page cache for the next time. Tensors that are left out come when they are asked
// for; without may be nil. The error is ctx's cause where ctx ends first.
func (c *Checkpoint) Load(ctx context.Context, free int64, without func(tensor string) bool,
	progress func(done, total int64)) error {
	if c.gguf == nil {
		return nil
	}
	return c.gguf.Load(ctx, free, without, progress)
}

// Fetch brings one tensor into memory as Load does, and its error says why that failed. It does
// nothing for a name that is no tensor's.
func (c *Checkpoint) Fetch(name string) error {
	if c.gguf == nil {
		return nil
	}
	return c.gguf.Fetch(name)
}

// Release gives the memory of a tensor back, if it is the checkpoint's own; it is read again when
// it is asked for again. Nobody may be using its Data. False when there is nothing to give back:
// weights of a mapped file are the system's to keep or to drop.
func (c *Checkpoint) Release(name string) bool { return c.gguf != nil && c.gguf.Release(name) }
