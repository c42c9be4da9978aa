// The canonical spelling of a JSON value: compact, every character as the automaton writes it,
// numbers as plain decimals.

package schema

import (
	"math/big"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// rational reads a number; nil if its exponent is absurdly large.
func rational(text string) *big.Rat {
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(text)-i > 5 {
		return nil
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}

func plainNumber(text string) string {
	if r := rational(text); r != nil {
		return decimal(r)
	}
	return text
}

// decimal writes a number that was read from a decimal.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(1100), "0")
}

// canonical is the canonical spelling; sorted sorts members by name, so that equal values have
// equal spellings.
func canonical(v *jsondoc.Value, sorted bool) string {
	return string(v.Append(nil, jsondoc.Spelling{Sorted: sorted, Number: plainNumber}))
}
