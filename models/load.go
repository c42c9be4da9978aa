package models

// When weights come into memory. Those of mapped files come by themselves, page by page; those of a GGUF file have to be put in order first, all at once
// for an engine that works on them where they lie, or one tensor after the other for a card that takes a copy of each.

import "context"

// Load brings all weights into memory that are not there and do not come by themselves, and tells how far it is: progress is called with bytes done and
// bytes in all, several times a second, by one goroutine; it may be nil. free is the memory that is there for it; where there is room for the files
// beside the weights, they stay in the page cache for the next time. Tensors that are left out come when they are asked for; without may be nil. The error is
// ctx's cause where ctx ends first.
func (c *Checkpoint) Load(ctx context.Context, free int64, without func(tensor string) bool, progress func(done, total int64)) error {
	if c.repack == nil {
		return nil
	}
	c.repack.keepFor(free)
	var all []int
	for i, w := range c.repack.rewrites {
		if without == nil || !without(w.to.Name) {
			all = append(all, i)
		}
	}
	return c.repack.fill(ctx, all, progress)
}

// Fetch brings one tensor into memory as Load does, and says why it cannot be had. A name that is no tensor's is nothing to do.
func (c *Checkpoint) Fetch(name string) error {
	if c.repack == nil {
		return nil
	}
	i, ok := c.repack.of[name]
	if !ok {
		return nil
	}
	return c.repack.fill(context.Background(), []int{i}, nil)
}

// Release gives the memory of a tensor back, if it is the checkpoint's own; it is read again when it is asked for again. Nobody may be using its Data. False
// when there is nothing to give back: weights of a mapped file are the system's to keep or to drop.
func (c *Checkpoint) Release(name string) bool {
	if c.repack == nil {
		return false
	}
	i, ok := c.repack.of[name]
	if !ok {
		return false
	}
	r := c.repack
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.rewrites[i]
	for _, part := range []string{w.to.Name, w.scales} {
		if part != "" && !r.memory.GiveBack(r.tensors[part].Data) {
			return true // it stays where it is, and is right
		}
	}
	r.there[i] = false
	return true
}
