//go:build !amd64

// The passes over every logit on platforms without assembly.

package sample

func denseMass(v *[blockTokens]float32, least float32, highest, scale float64) float64 {
	return denseMassGo(v, least, highest, scale)
}

func scanBlocks(logits, maxima []float32) (finite bool) { return scanBlocksGo(logits, maxima) }

func keep(out, v *[blockTokens]float32, word uint64) float32 { return keepGo(out, v, word) }
