// Package engine is the seam between a gpt-oss checkpoint and the machine that runs it.
//
// forward.go writes the model down once, as a Program: about a dozen operations over named buffers.
// A Device compiles a Program into a Step and runs it whole, so nothing crosses a language or a
// queue per operation. An Engine joins the two: it lays out the memory, uploads the weights,
// records one Program per batch bucket and feeds batches to the matching Step.
//
//	checkpoint.Checkpoint ─┐
//	Settings ──────────────┴─> Record ──> Program ──> Device.Compile ──> Step.Forward(Batch)
//	                                                                        ──> logits
//
// What must stay true: a row's result depends on its own sequence only, never on the other rows of
// the batch, on how a prompt was cut into chunks, or on which pages the cache was given. enginetest
// checks this on every Device, bit for bit where the device promises it.
package engine
