// Where a later prompt is likely to leave this one: behind every message that is not the
// assistant's. The reasoning of a finished turn is left out of the next prompt, so that one shares
// everything up to the end of the last user message; a tool loop shares everything up to its last
// result; another conversation the system and developer messages.

package session

import (
	"slices"

	"github.com/ossrun/ossrun/harmony/token"
)

// cuts are the lengths of prompt, a rendered conversation, at which its pages are kept.
func cuts(prompt []int32) (at []int) {
	assistant := assistantStart()
	others := false // the message that begins last is not the assistant's
	for i, id := range prompt {
		if id != token.Start {
			continue
		}
		if others {
			at = append(at, i)
		}
		end := min(len(prompt), i+len(assistant))
		others = !slices.Equal(prompt[i:end], assistant)
	}
	return at
}
