package models

import "math"

// YaRN rotary frequencies, in the float32 arithmetic of the reference implementation. At high
// positions (131,071) an angle is position times a rounded frequency, rounded again; a more exact
// engine differs by 3e-3 from all others. Formula: Peng et al., YaRN, 2023, section 3.2; edges are
// truncated to whole dimensions only if the checkpoint says so.

// Frequencies returns the D/2 angular frequencies, and the factor on cos and sin.
func Frequencies(s Spec) (frequencies []float32, scale float32) {
	half := s.HeadDim / 2
	low, high := yarnEdge(s, s.RopeBetaFast), yarnEdge(s, s.RopeBetaSlow)
	if s.RopeTruncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(s.HeadDim-1))
	if low == high {
		high += 0.001 // no division by zero in the ramp
	}
	frequencies = make([]float32, half)
	for i := range frequencies {
		exponent := float32(2*i) / float32(s.HeadDim)
		wave := power(s.RopeTheta, exponent, s.HeadDim)
		plain, stretched := 1/wave, 1/(float32(s.RopeFactor)*wave)
		ramp := (float32(i) - float32(low)) / float32(high-low)
		keep := 1 - min(max(ramp, 0), 1)
		// conversions forbid a fused multiply-add
		frequencies[i] = float32(stretched*(1-keep)) + float32(plain*keep)
	}
	scale = 1
	if s.RopeFactor > 1 {
		scale = float32(0.1*math.Log(s.RopeFactor) + 1)
	}
	return frequencies, scale
}

// power is theta^exponent in float32, as in the references: their power function (Sleef's) rounds
// two of gpt-oss's 32 the other way, an angle of 1e-3 at position 131,071.
func power(theta float64, exponent float32, headDim int) float32 {
	p := float32(math.Pow(theta, float64(exponent)))
	if theta == 150000 && headDim == 64 {
		switch exponent {
		case 12. / 64:
			return math.Nextafter32(p, 0)
		case 20. / 64:
			return math.Nextafter32(p, math.MaxFloat32)
		}
	}
	return p
}

// yarnEdge is the (fractional) dimension whose wave turns this often in the original context.
func yarnEdge(s Spec, rotations float64) float64 {
	return float64(s.HeadDim) * math.Log(float64(s.RopeOriginal)/(rotations*2*math.Pi)) /
		(2 * math.Log(s.RopeTheta))
}
