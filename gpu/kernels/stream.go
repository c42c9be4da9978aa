package kernels

import "fmt"

// The launches of stream_experts.cu and strip_experts.cu: experts of up to some hundred rows.

const (
	StreamTokens  = 32  // the most of an expert, in the mean, that these kernels are meant for
	WeightsBehind = 512 // bytes past a matrix that they may read

	Split Terms = 2 // two bf16 terms, which keep 16 bits of an activation

	streamRows = 32 // of a matrix that a unit of work has; a strip has half of them or all
)

// streamBlock is a block's threads, of streams or strips, and how many blocks the source leaves
// registers for.
func (t Target) streamBlock(columns int, strips bool) (size, resident int) {
	switch {
	case strips && columns == 8 && t.Shared > 200<<10:
		return threads, 3
	case strips && columns > 8:
		return 384, 32 / columns
	}
	return threads, min(residentMany, 32/columns)
}

// streamMemory is a block's shared memory for rows of k and tiles of so many columns, one for each
// term of a token: what the launch asks for, and all of it.
func (t Target) streamMemory(columns, k int, strips bool) (dynamic, all int) {
	size, _ := t.streamBlock(columns, strips)
	sums := streamRows + 1 // of a column
	if strips {
		sums = streamRows/2 + 1
	}
	dynamic = 16 * columns * (16*divideUp(k/32, 4) + 4)
	return dynamic, dynamic + size/t.Warp*columns*sums*4
}

// Streams tells whether StreamExperts can do both matrices of a model's experts.
func (t Target) Streams(width, inner int) bool {
	_, all := t.streamMemory(8, max(width, inner), false)
	return width%32 == 0 && inner%32 == 0 && all <= t.Shared
}

// StreamExperts is GateUp or Down on float32, cut into one term or Split, by streams or strips. A
// row has the same bits in steps of any size.
func (t Target) StreamExperts(e Experts, terms Terms, strips bool) Launch {
	n, name := e.N<<min(e.Top, 1), "stream_" // rows of a gate and an up
	columns := t.streamColumns(e, terms, strips)
	if strips {
		name = "strip_"
	}
	dynamic, all := t.streamMemory(columns, e.K, strips)
	size, resident := t.streamBlock(columns, strips)
	// all blocks at once: each stages its tokens
	fit := t.Processors * t.fits(resident, all)
	tiles := divideUp(e.Slots*int(terms), columns) + min(e.Slots, e.Experts)
	name += fmt.Sprintf("%s_%d", e.name(), columns)
	if terms == Split {
		name += "_2"
	}
	return launch(name, grid(min(fit, tiles*n/streamRows)), block(size), dynamic, e.args()...)
}

// streamColumns is the smallest tile for 1.5 times an expert's tokens, or the largest that fits.
func (t Target) streamColumns(e Experts, terms Terms, strips bool) int {
	columns := 8
	for terms == Rounded && columns < 32 && 3*e.Slots > 2*columns*e.Experts {
		if _, all := t.streamMemory(2*columns, e.K, strips); all > t.Shared {
			break
		}
		columns *= 2
	}
	return columns
}
