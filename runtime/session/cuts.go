// Where a later prompt will probably differ from this one: after each message that is not the
// assistant's. The next prompt leaves out the reasoning of the finished turn, so it is the same up
// to the end of the last user message. The next prompt of a tool loop is the same up to the last
// result. Another conversation has the same system and developer messages.

package session

import (
	"slices"

	"github.com/ossrun/ossrun/harmony/token"
)

// cuts returns the lengths of a rendered prompt at which its KV pages are kept longest.
func cuts(prompt []int32) (at []int) {
	assistant := assistantStart()
	others := false // the latest message is not the assistant's
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
