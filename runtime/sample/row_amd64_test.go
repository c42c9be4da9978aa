package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The assembly gives the bits of the Go loops: for every cut in a block, at any spread of logits,
// with the bans and extremes that a block can hold.
func TestAssemblyEqualsGo(t *testing.T) {
	if !avx2 {
		t.Skip("no AVX2 on this machine")
	}
	rng := rand.New(rand.NewPCG(11, 12))
	var v [blockTokens]float32
	for range 20000 {
		spread := []float64{0, 1e-3, 1, 10, 100, 1e30}[rng.IntN(6)]
		for i := range v {
			switch v[i] = float32(rng.NormFloat64() * spread); rng.IntN(50) {
			case 0:
				v[i] = float32(math.Inf(-1))
			case 1:
				v[i] = -math.MaxFloat32
			case 2:
				v[i] = v[0]
			}
		}
		highest := float64(slices.Max(v[:]))
		if math.IsInf(highest, 0) {
			continue
		}
		temperature := []float64{1e-30, 0.1, 1, 2, 1e38}[rng.IntN(5)]
		least := float32(max(highest-floorNats*temperature, -math.MaxFloat32))
		if rng.IntN(2) == 0 {
			least = max(least, v[rng.IntN(blockTokens)])
		}
		w := weights{highest, expScale / temperature}
		if a, b := denseMassAVX2(&v, least, w.highest, w.scale), denseMassGo(&v, least, w.highest,
			w.scale); a != b || math.IsNaN(a) {
			t.Fatalf("mass %v, in Go %v: least %v of %v", a, b, least, v)
		}
	}
}

func TestScanAssemblyEqualsGo(t *testing.T) {
	if !avx2 {
		t.Skip("no AVX2 on this machine")
	}
	rng := rand.New(rand.NewPCG(13, 14))
	logits := make([]float32, 4*blockTokens)
	var a, b [4]float32
	for at := range logits {
		for _, x := range []float64{1e9, -1e9, math.MaxFloat32, -math.MaxFloat32, math.NaN(),
			math.Inf(1), math.Inf(-1), 1e-45} {
			for i := range logits {
				logits[i] = float32(rng.NormFloat64())
			}
			logits[at] = float32(x)
			finite := scanBlocks(logits, a[:])
			if want := scanBlocksGo(logits, b[:]); finite != want || finite && a != b {
				t.Fatalf("%v at %d: %v %v, in Go %v %v", x, at, finite, a, want, b)
			}
			if finite != (logits[at]-logits[at] == 0) {
				t.Fatalf("%v at %d: finite %v", x, at, finite)
			}
		}
	}
}

func TestKeepAssemblyEqualsGo(t *testing.T) {
	if !avx2 {
		t.Skip("no AVX2 on this machine")
	}
	rng := rand.New(rand.NewPCG(15, 16))
	var v, a, b [blockTokens]float32
	for range 5000 {
		for i := range v {
			if v[i] = float32(rng.NormFloat64()); rng.IntN(40) == 0 {
				v[i] = float32(math.Inf(-1))
			}
		}
		word := rng.Uint64() & rng.Uint64()
		switch rng.IntN(4) {
		case 0:
			word = 1 << rng.IntN(blockTokens)
		case 1:
			word = ^word
		}
		x, y := keepAVX2(&a, &v, word), keepGo(&b, &v, word)
		if x != y || a != b {
			t.Fatalf("%#x: %v %v, in Go %v %v", word, x, a, y, b)
		}
		for i := range v {
			if want := word>>i&1 == 1; want && a[i] != v[i] || !want && !math.IsInf(float64(a[i]),
				-1) {
				t.Fatalf("%#x: %v became %v at %d", word, v[i], a[i], i)
			}
		}
	}
}

func BenchmarkPasses(b *testing.B) {
	logits := modelLogits()
	maxima := make([]float32, blocks(len(logits)))
	sums := 0.0
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(4 * len(logits)))
			for b.Loop() {
				f()
			}
		})
	}
	mass := func(f func(*[blockTokens]float32, float32, float64, float64) float64) func() {
		return func() {
			for i := 0; i < len(logits); i += blockTokens {
				sums += f((*[blockTokens]float32)(logits[i:]), -30, 18, expScale)
			}
		}
	}
	run("scan/go", func() { scanBlocksGo(logits, maxima) })
	run("mass/go", mass(denseMassGo))
	if avx2 {
		run("scan/avx2", func() { scanBlocks(logits, maxima) })
		run("mass/avx2", mass(denseMassAVX2))
	}
}
