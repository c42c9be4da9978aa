// The detector of verbatim loops: a model that repeats the same tokens would do so until its limit.

package grammar

const (
	loopPeriods = 256 // the longest detected piece, in tokens
	loopTokens  = 512 // minimum of tokens equal to those a period earlier
	loopRounds  = 8   // minimum of repetitions
	loopEvery   = 32  // tokens between two checks
	loopMemory  = loopPeriods * (loopRounds + 1)
)

// Loop watches the tokens of a turn. It fires when the text has repeated the same piece of up to
// 256 tokens for 512 tokens and eight rounds, so that no table or rule of dashes counts as a loop.
// It checks every 32 tokens. The zero value is ready to use.
type Loop struct {
	recent []int32
	count  int
}

// Push adds a token and reports whether the text loops.
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
