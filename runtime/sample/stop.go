// Stop strings over text that arrives in pieces. A stop string may cross token borders, so text
// that could be the beginning of one is held back until it is known not to be.
//
// What must stay true: emitted text never has a stop string, nor a beginning of the one that is met
// later, and the result does not depend on how the text is cut into pieces.

package sample

// StopMatcher finds the stop string that is complete first; if several end at the same byte, the
// longest.
type StopMatcher struct {
	stops   []stop
	pending []byte // text not yet emitted: the longest suffix that begins a stop string
	met     bool
}

// stop is one string with its Knuth-Morris-Pratt table: fail[n] is the longest proper prefix of
// text that is a suffix of text[:n].
type stop struct {
	text    string
	fail    []int
	matched int // bytes of text that the end of the stream matches
}

// NewStopMatcher looks for any of the strings; empty ones are left out.
func NewStopMatcher(stops []string) *StopMatcher {
	m := &StopMatcher{}
	for _, text := range stops {
		if text == "" {
			continue
		}
		fail := make([]int, len(text)+1)
		for n, k := 1, 0; n < len(text); n++ {
			for k > 0 && text[n] != text[k] {
				k = fail[k]
			}
			if text[n] == text[k] {
				k++
			}
			fail[n+1] = k
		}
		m.stops = append(m.stops, stop{text: text, fail: fail})
	}
	return m
}

// Push takes the next piece and returns the text that may be shown. Once a stop string is met it is
// returned as met, emit is the text before it, and every later Push returns nothing.
func (m *StopMatcher) Push(piece string) (emit, met string) {
	if m.met {
		return "", ""
	}
	if len(m.stops) == 0 {
		return piece, ""
	}
	for i := range len(piece) {
		m.pending = append(m.pending, piece[i])
		for s := range m.stops {
			if t := &m.stops[s]; t.step(piece[i]) && len(t.text) > len(met) {
				met = t.text
			}
		}
		if met != "" {
			emit = string(m.pending[:len(m.pending)-len(met)])
			m.pending, m.met = nil, true
			return emit, met
		}
	}
	keep := 0
	for _, s := range m.stops {
		keep = max(keep, s.matched)
	}
	n := len(m.pending) - keep
	emit = string(m.pending[:n])
	m.pending = append(m.pending[:0], m.pending[n:]...)
	return emit, ""
}

// step takes one byte and tells whether the string is complete.
func (s *stop) step(b byte) bool {
	for s.matched > 0 && s.text[s.matched] != b {
		s.matched = s.fail[s.matched]
	}
	if s.text[s.matched] == b {
		s.matched++
	}
	return s.matched == len(s.text)
}

// Flush returns the text held back, at the end of the text.
func (m *StopMatcher) Flush() string {
	rest := string(m.pending)
	m.pending = m.pending[:0]
	for s := range m.stops {
		m.stops[s].matched = 0
	}
	return rest
}
