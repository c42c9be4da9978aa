// JSON numbers, as they appear in the default values of a tool's parameters.
//
// Integers of 64 bits keep their text. All others become float64 and are printed again, so that
// 1e+30 is 1e30, 10.50 is 10.5 and 1.0 stays 1.0. The library that made the models' prompts reads a
// float by one multiplication or division, which may miss the nearest float64 by one; so does this,
// because the digits are part of the prompt.

package jsondoc

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
)

var errNumberRange = errors.New("the number is too large")

// number reads a number at p.pos, which is at a digit or a minus sign, and returns it printed.
func (p *parser) number() (string, error) {
	negative := p.s[p.pos] == '-'
	if negative {
		p.pos++
	}
	if !p.digit() {
		return "", errors.New("a digit is expected")
	}
	var significand uint64
	exponent := 0
	if p.s[p.pos] == '0' {
		if p.pos++; p.digit() {
			return "", errors.New("a number has a leading zero")
		}
	}
	// no more digits fit; further ones raise the exponent before the point and are dropped after it
	full := false
	for ; p.digit(); p.pos++ {
		if full = full || !appendDigit(&significand, p.s[p.pos]); full {
			exponent++
		}
	}
	float := full
	if p.pos < len(p.s) && p.s[p.pos] == '.' {
		float = true
		if p.pos++; !p.digit() {
			return "", errors.New("a digit is expected after the point")
		}
		// A long integer part may have stopped at a digit that does not fit, although a smaller one
		// would; the fraction tries again, as OpenAI's library does.
		for full = false; p.digit(); p.pos++ {
			if full = full || !appendDigit(&significand, p.s[p.pos]); !full {
				exponent--
			}
		}
	}
	if p.pos < len(p.s) && (p.s[p.pos] == 'e' || p.s[p.pos] == 'E') {
		float = true
		shift, err := p.exponent()
		if err != nil {
			return "", err
		}
		exponent += shift
	}
	if !float {
		if text, ok := integerText(significand, negative); ok {
			return text, nil
		}
	}
	f, err := scale(significand, exponent)
	if err != nil {
		return "", err
	}
	if negative {
		f = -f
	}
	return printFloat(f), nil
}

func (p *parser) digit() bool {
	return p.pos < len(p.s) && p.s[p.pos] >= '0' && p.s[p.pos] <= '9'
}

// appendDigit appends a digit to the significand, if it stays below 1<<64.
func appendDigit(significand *uint64, c byte) bool {
	d := uint64(c - '0')
	if *significand > (math.MaxUint64-d)/10 {
		return false
	}
	*significand = *significand*10 + d
	return true
}

// exponent reads an exponent at its letter. Above a million its value makes no difference.
func (p *parser) exponent() (int, error) {
	p.pos++
	sign := 1
	if p.pos < len(p.s) && (p.s[p.pos] == '+' || p.s[p.pos] == '-') {
		if p.s[p.pos] == '-' {
			sign = -1
		}
		p.pos++
	}
	if !p.digit() {
		return 0, errors.New("a digit is expected in the exponent")
	}
	n := 0
	for ; p.digit(); p.pos++ {
		n = min(n*10+int(p.s[p.pos]-'0'), math.MaxInt32)
	}
	return sign * n, nil
}

// integerText prints a number without point and exponent, if it is a 64 bit integer.
func integerText(n uint64, negative bool) (string, bool) {
	switch {
	case !negative:
		return strconv.FormatUint(n, 10), true
	case n == 0 || n > 1<<63: // -0 is a float
		return "", false
	}
	return "-" + strconv.FormatUint(n, 10), true
}

const maxPower = 308 // of ten in a float64

var powersOfTen = sync.OnceValue(func() (p [maxPower + 1]float64) {
	for i := range p {
		p[i], _ = strconv.ParseFloat("1e"+strconv.Itoa(i), 64)
	}
	return p
})

// scale is significand times ten to the exponent.
func scale(significand uint64, exponent int) (float64, error) {
	f := float64(significand)
	powers := powersOfTen()
	for f != 0 && exponent < -maxPower {
		f /= powers[maxPower]
		exponent += maxPower
	}
	switch {
	case f == 0:
		return 0, nil
	case exponent > maxPower:
		return 0, errNumberRange
	case exponent < 0:
		return f / powers[-exponent], nil
	}
	if f *= powers[exponent]; math.IsInf(f, 0) {
		return 0, errNumberRange
	}
	return f, nil
}

// printFloat prints the shortest digits for f: as a decimal from 1e-5 to below 1e16, else with an
// exponent.
func printFloat(f float64) string {
	if f == 0 {
		if math.Signbit(f) {
			return "-0.0"
		}
		return "0.0"
	}
	if a := math.Abs(f); a >= 1e-5 && a < 1e16 {
		text := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	sign := ""
	if exponent[0] == '-' {
		sign = "-"
	}
	return mantissa + "e" + sign + strings.TrimLeft(exponent[1:], "0")
}
