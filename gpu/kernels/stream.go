package kernels

import "fmt"

// The launches of stream_experts.cu and stream_wgmma.cu: experts of up to some hundred rows.

const (
	StreamTokens  = 32  // the most of an expert, in the mean, that these kernels are meant for
	WeightsBehind = 512 // bytes past a matrix that they may read
	streamRows    = 32  // of a matrix that a unit of work has
)

// streamResident is how many blocks the source leaves registers for.
func streamResident(columns int) int { return min(residentMany, 32/columns) }

// streamMemory is a block's shared memory for rows of k and tiles of so many columns, one for each
// term of a token: what the launch asks for, and all of it.
func (t Target) streamMemory(columns, k int) (dynamic, all int) {
	dynamic = 16 * columns * (16*divideUp(k/32, 4) + 4)
	return dynamic, dynamic + threads/t.Warp*columns*(streamRows+1)*4
}

// Streams tells whether StreamExperts can do both matrices of a model's experts.
func (t Target) Streams(width, inner int) bool {
	_, all := t.streamMemory(8, max(width, inner))
	return width%32 == 0 && inner%32 == 0 && all <= t.Shared
}

// StreamExperts is GateUp or Down on rows in OneTerm or TwoTerms, as it leaves h. A row has one
// result in steps of any size.
func (t Target) StreamExperts(e Experts, f Form) Launch {
	n, columns := e.N<<min(e.Top, 1), t.streamColumns(e, f) // a gate and an up
	dynamic, all := t.streamMemory(columns, e.K)
	// all blocks at once: each stages its tokens
	fit := t.Processors * t.fits(streamResident(columns), all)
	tiles := divideUp(e.Slots*int(f), columns) + min(e.Slots, e.Experts)
	name := fmt.Sprintf("stream_%s_%d", e.name(), columns)
	if f == TwoTerms {
		name += "_2"
	}
	return launch(name, grid(min(fit, tiles*n/streamRows)), block(threads), dynamic, e.args()...)
}

// streamColumns is the smallest tile for 1.5 times an expert's tokens, or the largest that fits.
func (t Target) streamColumns(e Experts, f Form) int {
	columns := 8
	for f == OneTerm && columns < 32 && 3*e.Slots > 2*columns*e.Experts {
		if _, all := t.streamMemory(2*columns, e.K); all > t.Shared {
			break
		}
		columns *= 2
	}
	return columns
}

// StreamWarpgroups is GateUp or Down by sm_90a's warpgroups on rows InShares, as it leaves h, in
// tiles of 16, 24 or 32 columns, as streamColumns.
func (t Target) StreamWarpgroups(e Experts) Launch {
	column := 128 * divideUp(e.K, 64)
	fit := (t.Shared - blockReserve - wgmmaSlack) / column
	columns := max(16, 8*min(4, fit/8, divideUp(3*e.Slots, 16*e.Experts)))
	tiles := divideUp(e.Slots, columns) + min(e.Slots, e.Experts)
	return launch(fmt.Sprintf("stream_%s_wgmma_%d", e.name(), columns),
		grid(min(t.Processors, tiles*divideUp(e.N<<min(e.Top, 1), 256))), block(512),
		wgmmaSlack+columns*column, e.args()...)
}
