// The detector of verbatim loops: a model that writes the same tokens over and over would do so until its limit.

package grammar

const (
	loopPeriods = 256 // the longest repeated piece that is seen, in tokens
	loopTokens  = 512 // tokens that repeat what stood a period before, at least
	loopRounds  = 8   // rounds of the period, at least
)

// Loop watches the tokens of a turn. It fires when the text has said the same piece of up to 256 tokens again and again
// for 512 tokens and eight rounds: long enough that no table or rule of dashes is taken for a loop. The zero value is
// ready to use. A token costs a pass over 256 counters.
type Loop struct {
	recent [loopPeriods]int32  // the last tokens, the one at count%loopPeriods is the oldest
	runs   [loopPeriods]uint32 // runs[p-1]: how many tokens in a row equal the one p before
	count  int
}

// Push takes the next token and tells whether the text loops.
func (l *Loop) Push(id int32) bool {
	at := l.count % loopPeriods
	loops := false
	for p := 1; p <= min(l.count, loopPeriods); p++ {
		back := at - p
		if back < 0 {
			back += loopPeriods
		}
		if l.recent[back] != id {
			l.runs[p-1] = 0
			continue
		}
		l.runs[p-1]++
		if run := int(l.runs[p-1]); run >= loopTokens && run >= loopRounds*p {
			loops = true
		}
	}
	l.recent[at] = id
	l.count++
	return loops
}
