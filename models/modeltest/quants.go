package modeltest

// Quantised blocks in the format of llama.cpp's files, made with plain arithmetic on single values
// and without its search for better scales: only their reader is tested.

import (
	"encoding/binary"
	"math"
)

// halfOf is the half-precision number closest to v towards zero.
func halfOf(v float64) uint16 {
	sign := uint16(0)
	if math.Signbit(v) {
		sign, v = 1<<15, -v
	}
	fraction, exponent := math.Frexp(v)
	if v == 0 || exponent < -13 { // subnormal
		return sign | uint16(v*0x1p24)
	}
	return sign | uint16(exponent+14)<<10 | uint16((2*fraction-1)*1024)
}

// ofHalf is the value of a half-precision number.
func ofHalf(h uint16) float64 {
	v := math.Ldexp(float64(h&0x3ff), -24)
	if e := int(h >> 10 & 31); e > 0 {
		v = math.Ldexp(1+float64(h&0x3ff)/1024, e-15)
	}
	if h>>15 == 1 {
		return -v
	}
	return v
}

var iq4Values = [16]float64{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89,
	113}

// quant is a block type: a code's value is scale*step(code) - lowest.
type quant struct {
	kind          uint32
	values, group int // of a block, of a part with a scale of its own
	codes         int
	below         float64 // code 0 of a type without minima, in steps; 0: it has minima
	scales        int     // the largest code of a part's scale; 0: one scale per block
	iq4           bool
}

var quantTypes = map[string]quant{
	"Q4_0": {2, 32, 32, 16, 8, 0, false}, "Q4_1": {3, 32, 32, 16, 0, 0, false},
	"Q5_0": {6, 32, 32, 32, 16, 0, false}, "Q5_1": {7, 32, 32, 32, 0, 0, false},
	"IQ4_NL": {20, 32, 32, 16, 0, 0, true}, "IQ4_XS": {23, 256, 32, 16, 0, 31, true},
	"Q2_K": {10, 256, 16, 4, 0, 15, false}, "Q3_K": {11, 256, 16, 8, 4, 31, false},
	"Q4_K": {12, 256, 32, 16, 0, 63, false}, "Q5_K": {13, 256, 32, 32, 0, 63, false},
	"Q6_K": {14, 256, 16, 64, 32, 127, false},
}

// step is a code's value in scales.
func (q quant) step(code int) float64 {
	if q.iq4 {
		return iq4Values[code]
	}
	return float64(code) - q.below
}

// ranges returns the scale and the minimum for a part's values.
func (q quant) ranges(values []float32) (scale, low float64) {
	least, most := 0.0, 0.0
	for _, v := range values {
		least, most = math.Min(least, float64(v)), math.Max(most, float64(v))
	}
	switch size := math.Max(-least, most); {
	case q.iq4:
		return size / 113, 0
	case q.below > 0:
		return size / (q.below - 1), 0
	}
	return (most - least) / float64(q.codes-1), -least
}

// encode encodes values as blocks.
func (q quant) encode(values []float32) (out []byte) {
	for ; len(values) > 0; values = values[q.values:] {
		parts := q.values / q.group
		scales, lows := make([]float64, parts), make([]float64, parts)
		var d, dmin float64
		for i := range parts {
			scales[i], lows[i] = q.ranges(values[i*q.group:][:q.group])
			d, dmin = math.Max(d, scales[i]), math.Max(dmin, lows[i])
		}
		if q.scales > 0 {
			d, dmin = d/float64(q.scales), dmin/float64(q.scales)
		}
		halfD, halfMin := halfOf(d), halfOf(dmin)
		d, dmin = ofHalf(halfD), ofHalf(halfMin)
		scaleCodes, lowCodes := make([]byte, parts), make([]byte, parts)
		codes := make([]byte, q.values)
		for i := range parts {
			scale, low := d, dmin
			if q.scales > 0 {
				scaleCodes[i] = share(scales[i], d, q.scales)
				lowCodes[i] = share(lows[i], dmin, q.scales)
				scale, low = d*float64(scaleCodes[i]), dmin*float64(lowCodes[i])
			}
			for j := i * q.group; j < (i+1)*q.group; j++ {
				codes[j] = q.nearest(float64(values[j])+low, scale)
			}
		}
		out = append(out, q.lay(halfD, halfMin, scaleCodes, lowCodes, codes)...)
	}
	return out
}

// share is v in multiples of unit, rounded up as far as most allows.
func share(v, unit float64, most int) byte {
	if unit == 0 {
		return 0
	}
	return byte(math.Min(math.Ceil(v/unit), float64(most)))
}

// nearest is the code whose step times scale is closest to v.
func (q quant) nearest(v, scale float64) byte {
	if !q.iq4 {
		if scale == 0 {
			return byte(q.below)
		}
		return byte(min(max(math.Round(v/scale)+q.below, 0), float64(q.codes-1)))
	}
	best, off := 0, math.Inf(1)
	for code := range q.codes {
		if d := math.Abs(scale*q.step(code) - v); d < off {
			best, off = code, d
		}
	}
	return byte(best)
}

// lay arranges the parts of a block in the type's order.
func (q quant) lay(d, dmin uint16, scales, lows, codes []byte) []byte {
	var out []byte
	half := binary.LittleEndian.AppendUint16
	pairs := func(codes []byte, distance int) (list []byte) { // in nibbles
		for ; len(codes) > 0; codes = codes[2*distance:] {
			for j := range distance {
				list = append(list, codes[j]&15|codes[j+distance]&15<<4)
			}
		}
		return list
	}
	switch q.values {
	case 32:
		out = half(out, d)
		if q.below == 0 && !q.iq4 {
			out = half(out, dmin^1<<15) // added, and negative
		}
		if q.codes == 32 {
			upper := uint32(0)
			for i, c := range codes {
				upper |= uint32(c>>4) << i
			}
			out = binary.LittleEndian.AppendUint32(out, upper)
		}
		return append(out, pairs(codes, 16)...)
	}
	switch {
	case q.iq4:
		var upper uint16
		low := make([]byte, 4)
		for i, s := range scales { // stored with 32 added
			low[i/2] |= (s + 32) & 15 << (4 * (i % 2))
			upper |= uint16((s+32)>>4) << (2 * i)
		}
		return append(append(half(half(nil, d), upper), low...), pairs(codes, 16)...)
	case q.codes == 4:
		for i, s := range scales {
			out = append(out, s|lows[i]<<4)
		}
		return half(half(append(out, crumbs(codes)...), d), dmin)
	case q.codes == 8:
		upper, packed := make([]byte, 32), make([]byte, 12)
		for i, c := range codes {
			upper[i%32] |= c >> 2 << (i / 32)
		}
		for i, s := range scales { // stored with 32 added
			s += 32
			packed[i%8] |= s & 15 << (i / 8 * 4)
			packed[8+i%4] |= s >> 4 << (i / 4 * 2)
		}
		return half(append(append(upper, crumbs(codes)...), packed...), d)
	case q.codes == 64:
		upper := make([]byte, 64)
		for half := range 2 {
			out = append(out, pairs(codes[128*half:][:128], 64)...)
			for j, c := range codes[128*half:][:128] {
				upper[32*half+j%32] |= c >> 4 << (j / 32 * 2)
			}
		}
		return half(append(append(out, upper...), scales...), d)
	}
	packed, upper := make([]byte, 12), make([]byte, 32)
	for i := range 8 {
		s, m := scales[i], lows[i]
		if i < 4 {
			packed[i], packed[i+4] = packed[i]|s, packed[i+4]|m
			continue
		}
		packed[i+4] = s&15 | m&15<<4
		packed[i-4] |= s >> 4 << 6
		packed[i] |= m >> 4 << 6
	}
	out = append(half(half(nil, d), dmin), packed...)
	if q.codes == 32 {
		for i, c := range codes {
			upper[i%32] |= c >> 4 << (i / 32)
		}
		out = append(out, upper...)
	}
	return append(out, pairs(codes, 32)...)
}

// crumbs are codes' lower two bits, four values 32 apart in a byte.
func crumbs(codes []byte) []byte {
	out := make([]byte, 64)
	for i, c := range codes {
		out[i/128*32+i%32] |= c & 3 << (i % 128 / 32 * 2)
	}
	return out
}
