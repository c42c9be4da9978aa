package engine

import "github.com/ossrun/ossrun/models"

// The KV pool's layout. A page holds K and V of PageTokens positions of one sequence, for all
// layers of one kind: the windowed layers or the full ones. Both kinds use the same pool, so a page
// is as large as the larger kind needs (they are equal in the published models).
//
//	page = [layers of the kind][KV heads]{ K [PageTokens][head dim], V [PageTokens][head dim] }
//
// With KVFP8 a number of a full layer takes one byte and one of a window layer two, so 32 positions
// of the window layers need two pages: the one that the block table names has the first half of
// these layers, its twin (Batch.Twins) the others. Whoever hands out pages takes two for each entry
// of Window then (WindowPages).

// PageBytes is the size of one KV page with elements of type kv ("f32", "bf16" or KVFP8).
func PageBytes(s models.Spec, kv string) int64 {
	sliding := slidingLayers(s)
	layers, element := max(sliding, s.Layers-sliding), Settings{KVCacheDtype: kv}.kvType().Size()
	if kv == KVFP8 {
		layers = max(2*twinFrom(s), s.Layers-sliding)
	}
	return int64(layers) * int64(s.KVHeads) * 2 * PageTokens * int64(s.HeadDim) * element
}

// WindowPages is how many pages of the pool PageTokens positions of the window layers take.
func WindowPages(kv string) int {
	if kv == KVFP8 {
		return 2
	}
	return 1
}

func slidingLayers(s models.Spec) (n int) {
	for layer := range s.Layers {
		if s.Sliding(layer) {
			n++
		}
	}
	return n
}

// twinFrom is how many window layers the page named by the table has where there are twins.
func twinFrom(s models.Spec) int { return (slidingLayers(s) + 1) / 2 }

// cachePlace is where a layer lies in its page: among those of its kind, in the page itself or in
// its twin.
func cachePlace(s models.Spec, kv string, layer int) (place int, twin bool) {
	for i := range layer {
		if s.Sliding(i) == s.Sliding(layer) {
			place++
		}
	}
	if half := twinFrom(s); kv == KVFP8 && s.Sliding(layer) && place >= half {
		return place - half, true
	}
	return place, false
}

// ReceptiveField is how many positions back from a cut the window layers' keys and values of its
// last Window-1 positions depend on, where the full layers' are kept: each windowed layer reaches
// Window-1 positions below the one above it. 1,524 for the 20b, 2,286 for the 120b.
//
// Computed again from position cut-ReceptiveField on, the windowed layer number j (from 0) is exact
// j*(Window-1) positions later, so that all are from cut-(Window-1) on: what a query at cut sees.
func ReceptiveField(s models.Spec) int {
	return slidingLayers(s) * (s.Window - 1)
}
