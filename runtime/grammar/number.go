// Numbers as they are spelled: an automaton that compares digits with the bounds as they come.
//
// The spelling is a plain decimal: a minus sign (never before zero), at most 40 digits without leading zeros, and unless
// integers are asked for, a fraction of at most 20 digits. A number without bounds may have an exponent of at most two
// digits. All of them are finite in every reader.

package grammar

import (
	"math/big"
	"strings"
)

const (
	mostDigits   = 40
	mostFraction = 20
)

// numberSpec is the numbers between two bounds; nil: no bound.
type numberSpec struct {
	integer         bool
	low, high       *big.Rat
	lowOpen, hiOpen bool     // the bound itself is out
	multiple        *big.Int // of integers; nil: any
}

// bound is the digits of a magnitude.
type bound struct {
	whole, fraction string // without leading or trailing zeros, but "0" for none before the point
	open            bool
	none            bool
}

func newBound(r *big.Rat, open bool) (bound, bool) {
	if r == nil {
		return bound{none: true}, true
	}
	digits := r.FloatString(400)
	whole, fraction, _ := strings.Cut(digits, ".")
	fraction = strings.TrimRight(fraction, "0")
	if exact, _ := new(big.Rat).SetString(whole + "." + fraction + "0"); exact.Cmp(r) != 0 {
		return bound{}, false
	}
	return bound{whole: whole, fraction: fraction, open: open}, true
}

// whole is the order after n digits before the point, the last of them b.
func (b *bound) digit(order int8, n int, c byte) int8 {
	if b.none || order != 0 || n > len(b.whole) {
		return order
	}
	return sign(c, b.whole[n-1])
}

func sign(a, b byte) int8 {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// settle is the order when n digits before the point are all there are.
func (b *bound) settle(order int8, n int) int8 {
	switch {
	case n < len(b.whole):
		return -1
	case n > len(b.whole):
		return 1
	}
	return order
}

// fractionDigit is the order after the digit c at place k behind the point.
func (b *bound) fractionDigit(order int8, k int, c byte) int8 {
	if b.none || order != 0 {
		return order
	}
	if k < len(b.fraction) {
		return sign(c, b.fraction[k])
	}
	return sign(c, '0')
}

// end is the order of a number with k digits behind the point.
func (b *bound) end(order int8, k int) int8 {
	if order == 0 && k < len(b.fraction) {
		return -1
	}
	return order
}

// numberAt is a place in a number.
type numberAt struct {
	part      numberPart
	minus     bool
	zero      bool // the digit before the point is 0
	n         int8 // digits of this part
	low, high int8 // orders against the bounds of the magnitude
	rest      int32
}

type numberPart uint8

const (
	atSign numberPart = iota
	atFirst
	inWhole
	atFraction
	inFraction
	atExponent
	atExponentDigit
	inExponent
)

// numberDFA makes the automaton.
func numberDFA(s numberSpec) (*dfa, error) {
	type bounds struct{ low, high bound }
	var sides [2]bounds // of the magnitude: positive, negative
	impossible := bound{whole: "0", open: true}
	zero := new(big.Rat)
	side := func(low, high *big.Rat, lowOpen, highOpen, strict bool) (bounds, error) {
		if high != nil && high.Sign() < 0 {
			return bounds{high: impossible, low: bound{none: true}}, nil
		}
		if low == nil || low.Sign() < 0 || strict && low.Sign() == 0 {
			low, lowOpen = nil, false
			if strict {
				low, lowOpen = zero, true
			}
		}
		l, ok := newBound(low, lowOpen)
		h, ok2 := newBound(high, highOpen)
		if !ok || !ok2 {
			return bounds{}, errTooLarge
		}
		return bounds{l, h}, nil
	}
	negated := func(r *big.Rat) *big.Rat {
		if r == nil {
			return nil
		}
		return new(big.Rat).Neg(r)
	}
	var err error
	if sides[0], err = side(s.low, s.high, s.lowOpen, s.hiOpen, false); err != nil {
		return nil, err
	}
	if sides[1], err = side(negated(s.high), negated(s.low), s.hiOpen, s.lowOpen, true); err != nil {
		return nil, err
	}
	free := s.low == nil && s.high == nil && s.multiple == nil && !s.integer
	if s.low == nil && s.high == nil {
		sides[1].low = bound{whole: "0", open: true}
	}
	modulus := int64(1)
	if s.multiple != nil {
		if !s.multiple.IsInt64() || s.multiple.Int64() <= 0 || s.multiple.Int64() > 4096 {
			return nil, errTooLarge
		}
		modulus = s.multiple.Int64()
	}
	of := func(a numberAt) *bounds {
		if a.minus {
			return &sides[1]
		}
		return &sides[0]
	}
	settle := func(a numberAt) numberAt {
		b := of(a)
		if !b.low.none {
			a.low = b.low.settle(a.low, int(a.n))
		}
		if !b.high.none {
			a.high = b.high.settle(a.high, int(a.n))
		}
		return a
	}
	var c cuts
	for b := byte('0'); b <= '9'; b++ {
		c.at(b, b)
	}
	for _, b := range []byte("+-.eE") {
		c.at(b, b)
	}
	step := func(a numberAt, b byte) (numberAt, bool) {
		digit := b >= '0' && b <= '9'
		switch a.part {
		case atSign, atFirst:
			if a.part == atSign && b == '-' {
				return numberAt{part: atFirst, minus: true}, true
			}
			if !digit {
				return a, false
			}
			a.part, a.zero, a.n = inWhole, b == '0', 1
			a.low, a.high = of(a).low.digit(0, 1, b), of(a).high.digit(0, 1, b)
			a.rest = int32(int64(b-'0') % modulus)
			return a, true
		case inWhole:
			switch {
			case digit && !a.zero && a.n < mostDigits:
				a.n++
				a.low, a.high = of(a).low.digit(a.low, int(a.n), b), of(a).high.digit(a.high, int(a.n), b)
				a.rest = int32((int64(a.rest)*10 + int64(b-'0')) % modulus)
				return a, true
			case b == '.' && !s.integer && s.multiple == nil:
				a = settle(a)
				a.part, a.n, a.zero = atFraction, 0, false
				return a, true
			case (b == 'e' || b == 'E') && free:
				return numberAt{part: atExponent}, true
			}
		case atFraction, inFraction:
			if digit && a.n < mostFraction {
				a.low, a.high = of(a).low.fractionDigit(a.low, int(a.n), b), of(a).high.fractionDigit(a.high, int(a.n), b)
				a.part = inFraction
				a.n++
				return a, true
			}
			if (b == 'e' || b == 'E') && free && a.part == inFraction {
				return numberAt{part: atExponent}, true
			}
		case atExponent:
			if b == '+' || b == '-' {
				return numberAt{part: atExponentDigit}, true
			}
			if digit {
				return numberAt{part: inExponent, n: 1}, true
			}
		case atExponentDigit:
			if digit {
				return numberAt{part: inExponent, n: 1}, true
			}
		case inExponent:
			if digit && a.n < 2 {
				return numberAt{part: inExponent, n: 2}, true
			}
		}
		return a, false
	}
	accept := func(a numberAt) bool {
		k := 0
		switch a.part {
		case inWhole:
			a = settle(a)
		case inFraction:
			k = int(a.n)
		case inExponent:
			return true
		default:
			return false
		}
		if a.rest != 0 {
			return false
		}
		b := of(a)
		if !b.low.none {
			if o := b.low.end(a.low, k); o < 0 || o == 0 && b.low.open {
				return false
			}
		}
		if !b.high.none {
			if o := b.high.end(a.high, k); o > 0 || o == 0 && b.high.open {
				return false
			}
		}
		return true
	}
	return buildDFA(numberAt{}, c, step, accept)
}
