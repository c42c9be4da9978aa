// The flags of vLLM's parser, so that any of them is passed on and none is taken for a typing
// error.
//
// What must stay true: flags.txt is written by .ci/vllm and never by hand; a flag that it lacks is
// passed on too, for vLLM may be newer.

package vllm

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed flags.txt
var flagLines string

// Values is what follows a flag.
type Values uint8

const (
	NoValue Values = iota
	OneValue
	ManyValues
	AnyValue // unknown: what does not look like a flag
)

// FlagValues returns what follows a flag of vLLM, as it was written; ok: the list has it.
func FlagValues(written string) (v Values, ok bool) {
	name, _, _ := strings.Cut(strings.ReplaceAll(written, "_", "-"), "=")
	if !strings.HasPrefix(name, "--") && len(name) > 2 && name[1] <= 'Z' {
		return NoValue, name[:2] == "-O" // -O3
	}
	outer, _, dotted := strings.Cut(name, ".")
	for line := range strings.Lines(flagLines) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" || !slices.Contains(words, name) &&
			!(dotted && slices.Contains(words, outer)) {
			continue
		}
		switch words[len(words)-1] {
		case "=":
			return OneValue, true
		case "*":
			return ManyValues, true
		}
		return NoValue, true
	}
	return AnyValue, false
}
