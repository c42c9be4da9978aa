// Lengths of strings with a pattern: characters are counted separately from the pattern's
// automaton, so that a bound of 4,000 does not multiply its states by 4,000.
//
// What must stay true: a string can always still be closed.

package automaton

import "unicode/utf8"

// distancesToEnd is the minimum number of characters from each state before a text may end. Inside
// a character only the characters after it count.
func (d *DFA) distancesToEnd() []int32 {
	pick := d.representatives
	back := d.reverseEdges(nil)
	ends := make([]int32, len(d.accept))
	var current, next []int32 // states n, and n+1, characters from an end
	for state, accept := range d.accept {
		if ends[state] = -1; accept {
			current = append(current, int32(state))
		}
	}
	for n := int32(0); len(current) > 0; n++ {
		next = nil
		for i := 0; i < len(current); i++ {
			if ends[current[i]] >= 0 {
				continue
			}
			ends[current[i]] = n
			for _, e := range back.to(current[i]) {
				from, first := e/int32(d.classes), utf8.RuneStart(pick[int(e)%d.classes])
				if ends[from] < 0 && !first {
					current = append(current, from)
				} else if ends[from] < 0 {
					next = append(next, from)
				}
			}
		}
		current = next
	}
	return ends
}

// Bounded is the texts of an automaton with least to most characters (most < 0: no bound). The
// error is ErrEmpty if there are none, ErrTooLarge if texts only end at some lengths: a count is
// then not enough to know which texts can be finished.
func Bounded(d *DFA, least, most int) (*String, error) {
	s := &String{Text: d, Min: least, Max: most, ends: d.distancesToEnd()}
	if most >= 0 && int(s.ends[0]) > most {
		return nil, ErrEmpty
	}
	pick := d.representatives
	for state, end := range s.ends {
		s.slack = max(s.slack, int(end))
		if end != 0 || !d.accept[state] || least <= int(s.ends[0]) {
			continue
		}
		longer := false
		for _, b := range pick {
			to := d.step(int32(state), b)
			longer = longer || utf8.RuneStart(b) && to >= 0 && s.ends[to] == 0
		}
		if !longer {
			return nil, ErrTooLarge
		}
	}
	return s, nil
}

// fits reports whether a text of count characters can still be finished from a state.
func (s *String) fits(count int32, state int32) bool {
	if s.Max < 0 {
		return true
	}
	if s.ends != nil {
		count += s.ends[state]
	}
	return int(count) <= s.Max
}

// room is the number of further characters that the bound allows in any case, up to most.
func (s *String) room(count int32, most int) int {
	if s.Max < 0 {
		return most
	}
	return min(most, s.Max-int(count)-s.slack)
}
