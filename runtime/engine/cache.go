package engine

import "github.com/ossrun/ossrun/models"

// The KV pool's layout. A page holds K and V of PageTokens positions of one sequence, for all layers of one kind: the windowed layers or the
// full ones. Both kinds use the same pool, so a page is as large as the larger kind needs (they are equal in the published models).
//
//	page = [layers of the kind][KV heads]{ K [PageTokens][head dim], V [PageTokens][head dim] }

// PageBytes is the size of one KV page with elements of type kv ("f32" or "bf16").
func PageBytes(s models.Spec, kv string) int64 {
	sliding := 0
	for layer := range s.Layers {
		if s.Sliding(layer) {
			sliding++
		}
	}
	element := Options{KV: kv}.kvType().Size()
	return int64(max(sliding, s.Layers-sliding)) * int64(s.KVHeads) * 2 * PageTokens * int64(s.HeadDim) * element
}

// cacheLayer is the place of a layer among those of its kind.
func cacheLayer(s models.Spec, layer int) int {
	n := 0
	for i := range layer {
		if s.Sliding(i) == s.Sliding(layer) {
			n++
		}
	}
	return n
}

// ReceptiveField is how many positions back from a cut the window layers' keys and values of its last Window-1 positions depend on, where the
// full layers' are kept: each windowed layer reaches Window-1 positions below the one above it. 1,524 for the 20b, 2,286 for the 120b.
//
// Computed again from position cut-ReceptiveField on, the windowed layer number j (from 0) is exact j*(Window-1) positions later, so that all are
// from cut-(Window-1) on: what a query at cut sees.
func ReceptiveField(s models.Spec) int {
	sliding := 0
	for layer := range s.Layers {
		if s.Sliding(layer) {
			sliding++
		}
	}
	return sliding * (s.Window - 1)
}
