// Numbers as written: an automaton that compares digits with the bounds as they are read.
//
// The form is a plain decimal: a minus sign (never before zero), at most 40 digits without leading
// zeros, and except for integers a fraction of at most 20 digits. A number without bounds may have
// an exponent of at most two digits. All of them are finite in every reader.

package automaton

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"
	"sync"
)

const (
	maxDigits   = 40
	maxFraction = 20
)

// Numbers is the numbers between two bounds; nil: no bound.
type Numbers struct {
	Integer         bool
	Fraction        bool // not an integer
	Low, High       *big.Rat
	LowOpen, HiOpen bool     // the bound itself is excluded
	multiple        *big.Int // nil: any
	places          int      // decimal places of the multiple
}

func (s Numbers) key() string {
	text := func(r *big.Rat) string {
		if r == nil {
			return "none"
		}
		return r.String()
	}
	return fmt.Sprint(s.Integer, s.Fraction,
		text(s.Low), s.LowOpen, text(s.High), s.HiOpen, s.multiple, s.places)
}

// Holds reports whether a number is one of them.
func (s Numbers) Holds(r *big.Rat) bool {
	switch {
	case s.Integer && !r.IsInt() || s.Fraction && r.IsInt():
		return false
	case s.Low != nil && (r.Cmp(s.Low) < 0 || s.LowOpen && r.Cmp(s.Low) == 0):
		return false
	case s.High != nil && (r.Cmp(s.High) > 0 || s.HiOpen && r.Cmp(s.High) == 0):
		return false
	}
	return s.multiple == nil || new(big.Rat).Quo(new(big.Rat).Mul(r, power(s.places)),
		new(big.Rat).SetInt(s.multiple)).IsInt()
}

func power(n int) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
}

// scaled returns a number times ten to the places as an integer; nil if it has too many places.
func scaled(r *big.Rat) (n *big.Int, places int) {
	for ; places <= maxFraction; places++ {
		if x := new(big.Rat).Mul(r, power(places)); x.IsInt() {
			return x.Num(), places
		}
	}
	return nil, 0
}

// MultipleOf also requires a multiple of r, and reports whether that is supported: up to 4095 in
// its last place.
func (s *Numbers) MultipleOf(r *big.Rat) bool {
	n, places := scaled(r)
	if n == nil || n.BitLen() > 12 {
		return false
	}
	if s.multiple == nil {
		s.multiple, s.places = n, places
		return true
	}
	most := max(s.places, places)
	a := new(big.Int).Mul(s.multiple, power(most-s.places).Num())
	b := new(big.Int).Mul(n, power(most-places).Num())
	common := new(big.Int).GCD(nil, nil, a, b)
	s.multiple, s.places = a.Mul(a, b.Div(b, common)), most
	return true
}

var numbers = Cache[string, *DFA]{Most: MaxCached}

// anyNumbers are the automata of all numbers and of all integers (true).
var anyNumbers = map[bool]func() *DFA{false: freeNumbers(false), true: freeNumbers(true)}

func freeNumbers(integer bool) func() *DFA {
	return sync.OnceValue(func() *DFA {
		d, err := numberDFA(Numbers{Integer: integer})
		if err != nil {
			panic("automaton: " + err.Error()) // it has no inputs
		}
		return d
	})
}

func AnyNumber() *DFA { return anyNumbers[false]() }

// DFA returns the possibly cached automaton of the numbers.
func (s Numbers) DFA() (*DFA, error) {
	if s.Low == nil && s.High == nil && s.multiple == nil && !s.Fraction {
		return anyNumbers[s.Integer](), nil
	}
	return numbers.Get(s.key(), func() (*DFA, error) { return numberDFA(s) })
}

// bound is the digits of a bound, with which a magnitude is compared digit by digit. The order is
// -1 while the magnitude is below the bound, 0 while it is equal and 1 above.
type bound struct {
	integral, fraction string // without leading or trailing zeros; "0" for an empty whole part
	open               bool
	none               bool // there is no bound
}

func newBound(r *big.Rat, open bool) (bound, error) {
	if r == nil {
		return bound{none: true}, nil
	}
	integral, fraction, _ := strings.Cut(r.FloatString(400), ".")
	fraction = strings.TrimRight(fraction, "0")
	if exact, _ := new(big.Rat).SetString(integral + "." + fraction + "0"); exact.Cmp(r) != 0 {
		return bound{}, ErrTooLarge
	}
	return bound{integral: integral, fraction: fraction, open: open}, nil
}

// digit is the order after n digits before the point; c is the last of them.
func (b *bound) digit(order int8, n int8, c byte) int8 {
	if b.none || int(n) > len(b.integral) {
		return 0 // not used by settle
	}
	if order != 0 {
		return order
	}
	return int8(cmp.Compare(c, b.integral[n-1]))
}

// settle is the order once the part before the point has ended after n digits.
func (b *bound) settle(order int8, n int8) int8 {
	if b.none || int(n) == len(b.integral) {
		return order
	}
	return int8(cmp.Compare(int(n), len(b.integral)))
}

// fractionDigit is the order after the digit c at place k after the point.
func (b *bound) fractionDigit(order int8, k int8, c byte) int8 {
	if b.none || order != 0 {
		return order
	}
	if int(k) < len(b.fraction) {
		return int8(cmp.Compare(c, b.fraction[k]))
	}
	return int8(cmp.Compare(c, '0'))
}

// holds reports whether a number with k digits after the point is on the right side of the bound: 1
// is above and -1 below.
func (b *bound) holds(order int8, k int8, side int8) bool {
	if order == 0 && int(k) < len(b.fraction) {
		order = -1
	}
	return b.none || order == side || order == 0 && !b.open
}

// bounds are those of a magnitude.
type bounds struct{ low, high bound }

// magnitudes are the bounds of numbers of one sign; strict: without zero.
func magnitudes(low, high *big.Rat, lowOpen, highOpen, strict bool) (b bounds, err error) {
	if high != nil && high.Sign() < 0 { // no such number
		return bounds{low: bound{none: true}, high: bound{integral: "0", open: true}}, nil
	}
	if low == nil || low.Sign() < 0 || strict && low.Sign() == 0 {
		low, lowOpen = nil, false
		if strict {
			low, lowOpen = new(big.Rat), true
		}
	}
	if b.low, err = newBound(low, lowOpen); err == nil {
		b.high, err = newBound(high, highOpen)
	}
	return b, err
}

// numberReader reads numbers byte by byte.
type numberReader struct {
	positive, negative bounds
	modulus            int64
	places             int8 // of the modulus, after the point
	divided            bool // there is a modulus
	integer            bool // only integers
	broken             bool // excludes integers
	exponent           bool // an exponent is allowed
}

// numberAt is a position in a number. It has no padding, so that it is hashed at once.
type numberAt struct {
	rest      int32
	part      numberPart
	minus     bool
	zero      bool // the digit before the point is 0
	broken    bool // some digit after the point is not 0
	n         int8 // digits of this part
	low, high int8 // orders against the bounds of the magnitude
}

type numberPart uint16

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

func numberDFA(s Numbers) (*DFA, error) {
	free := s.Low == nil && s.High == nil
	if s.Fraction && (s.Integer || s.multiple != nil && s.places == 0) {
		return nil, ErrEmpty
	}
	integer := s.Integer || s.multiple != nil && s.places == 0
	r := numberReader{modulus: 1, divided: s.multiple != nil, integer: integer, broken: s.Fraction,
		exponent: free && s.multiple == nil && !s.Integer && !s.Fraction}
	if s.multiple != nil {
		if !s.multiple.IsInt64() || s.multiple.Int64() <= 0 || s.multiple.Int64() > 4096 {
			return nil, ErrTooLarge
		}
		r.modulus, r.places = s.multiple.Int64(), int8(s.places)
	}
	negated := func(r *big.Rat) *big.Rat {
		if r == nil {
			return nil
		}
		return new(big.Rat).Neg(r)
	}
	var err error
	if r.positive, err = magnitudes(s.Low, s.High, s.LowOpen, s.HiOpen, false); err != nil {
		return nil, err
	}
	if r.negative, err = magnitudes(negated(s.High), negated(s.Low), s.HiOpen, s.LowOpen,
		true); err != nil {
		return nil, err
	}
	distinct := "0+-.eE" // the digits that are distinguished, and the other bytes of numbers
	for _, b := range []bounds{r.positive, r.negative} {
		distinct += b.low.integral + b.low.fraction + b.high.integral + b.high.fraction
	}
	if r.divided {
		distinct = "0123456789+-.eE"
	}
	var c cuts
	c.add('0', '9')
	for _, b := range []byte(distinct) {
		c.add(b, b)
	}
	d, err := buildDFA(numberAt{}, c, r.step, r.accept)
	if err == nil {
		d.number = true
	}
	return d, err
}

func (r *numberReader) boundsOf(a numberAt) *bounds {
	if a.minus {
		return &r.negative
	}
	return &r.positive
}

// settle compares a number once all digits before its point are read.
func (r *numberReader) settle(a numberAt) numberAt {
	b := r.boundsOf(a)
	a.low, a.high = b.low.settle(a.low, a.n), b.high.settle(a.high, a.n)
	return a
}

// step follows a byte; false if it is not allowed.
func (r *numberReader) step(a numberAt, b byte) (numberAt, bool) {
	digit := b >= '0' && b <= '9'
	exponent := (b == 'e' || b == 'E') && r.exponent
	switch a.part {
	case atSign, atFirst:
		if a.part == atSign && b == '-' {
			return numberAt{part: atFirst, minus: true}, true
		}
		if !digit {
			return a, false
		}
		a.part, a.zero = inWhole, b == '0'
		return r.wholeDigit(a, b)
	case inWhole:
		switch {
		case digit && !a.zero && a.n < maxDigits:
			return r.wholeDigit(a, b)
		case b == '.' && !r.integer:
			a = r.settle(a)
			a.part, a.n, a.zero = atFraction, 0, false
			return a, a.low >= 0 && a.high <= 0
		}
		return numberAt{part: atExponent}, exponent
	case atFraction, inFraction:
		if digit && a.n < maxFraction {
			switch {
			case a.n < r.places:
				a.rest = int32((int64(a.rest)*10 + int64(b-'0')) % r.modulus)
			case r.divided && b != '0':
				return a, false
			}
			limits := r.boundsOf(a)
			a.low = limits.low.fractionDigit(a.low, a.n, b)
			a.high = limits.high.fractionDigit(a.high, a.n, b)
			a.part = inFraction
			a.broken = a.broken || r.broken && b != '0'
			a.n++
			return a, a.low >= 0 && a.high <= 0
		}
		return numberAt{part: atExponent}, exponent && a.part == inFraction
	case atExponent:
		if b == '+' || b == '-' {
			return numberAt{part: atExponentDigit}, true
		}
		return numberAt{part: inExponent, n: 1}, digit
	case atExponentDigit:
		return numberAt{part: inExponent, n: 1}, digit
	}
	return numberAt{part: inExponent, n: 2}, digit && a.n < 2
}

// wholeDigit reads a digit before the point; false if the number is too large.
func (r *numberReader) wholeDigit(a numberAt, b byte) (numberAt, bool) {
	limits := r.boundsOf(a)
	a.n++
	a.low, a.high = limits.low.digit(a.low, a.n, b), limits.high.digit(a.high, a.n, b)
	a.rest = int32((int64(a.rest)*10 + int64(b-'0')) % r.modulus)
	return a, limits.high.settle(a.high, a.n) <= 0
}

func (r *numberReader) accept(a numberAt) bool {
	fraction := int8(0)
	switch a.part {
	case inExponent:
		return true
	case inWhole:
		a = r.settle(a)
	case inFraction:
		fraction = a.n
	default:
		return false
	}
	for n := fraction; n < r.places; n++ {
		a.rest = int32(int64(a.rest) * 10 % r.modulus)
	}
	b := r.boundsOf(a)
	return a.rest == 0 && a.broken == r.broken &&
		b.low.holds(a.low, fraction, 1) && b.high.holds(a.high, fraction, -1)
}
