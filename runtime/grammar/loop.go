// The detector of verbatim loops: a model that writes the same tokens over and over would do so
// until its limit.

package grammar

const (
	loopPeriods = 256 // the longest repeated piece that is seen, in tokens
	loopTokens  = 512 // tokens that repeat what stood a period before, at least
	loopRounds  = 8   // rounds of the period, at least
	loopEvery   = 32  // tokens from one look to the next
	loopMemory  = loopPeriods * (loopRounds + 1)
)

// Loop watches the tokens of a turn. It fires when the text has said the same piece of up to 256
// tokens again and again for 512 tokens and eight rounds: long enough that no table or rule of
// dashes is taken for a loop. It looks back every 32 tokens. The zero value is ready to use.
type Loop struct {
	recent []int32
	count  int
}

// Push takes the next token and tells whether the text loops.
func (l *Loop) Push(id int32) bool {
	if len(l.recent) == 2*loopMemory {
		l.recent = append(l.recent[:0], l.recent[loopMemory:]...)
	}
	l.recent = append(l.recent, id)
	if l.count++; l.count%loopEvery != 0 {
		return false
	}
	for p := 1; p <= loopPeriods; p++ {
		need := max(loopTokens, loopRounds*p)
		last := len(l.recent) - 1
		if last < need+p-1 {
			break
		}
		run := 0
		for run < need && l.recent[last-run] == l.recent[last-run-p] {
			run++
		}
		if run == need {
			return true
		}
	}
	return false
}
