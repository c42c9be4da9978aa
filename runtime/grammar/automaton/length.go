// Lengths of strings with a pattern: characters are counted beside the automaton of the pattern, so
// that a bound of 4,000 does not make 4,000 times its states.
//
// What must stay true: whatever was read, the string can still be closed.

package automaton

import "unicode/utf8"

// distancesToEnd is the fewest characters that a text still needs, from each state, before it may
// end. Inside a character only the characters after it count.
func (d *DFA) distancesToEnd() []int32 {
	pick := d.pick
	back := d.back(nil)
	ends := make([]int32, len(d.accept))
	var near, next []int32 // states that are n, and n+1, characters from an end
	for state, accept := range d.accept {
		if ends[state] = -1; accept {
			near = append(near, int32(state))
		}
	}
	for n := int32(0); len(near) > 0; n++ {
		next = nil
		for i := 0; i < len(near); i++ {
			if ends[near[i]] >= 0 {
				continue
			}
			ends[near[i]] = n
			for _, e := range back.to(near[i]) {
				from, first := e/int32(d.classes), utf8.RuneStart(pick[int(e)%d.classes])
				if ends[from] < 0 && !first {
					near = append(near, from)
				} else if ends[from] < 0 {
					next = append(next, from)
				}
			}
		}
		near = next
	}
	return ends
}

// Bounded is the texts of an automaton with least to most characters (most < 0: no bound). The
// error is ErrEmpty if there are none, ErrTooLarge if texts end at some lengths only: then a count
// does not tell which texts can be finished.
func Bounded(d *DFA, least, most int) (*String, error) {
	s := &String{Text: d, Min: least, Max: most, ends: d.distancesToEnd()}
	if most >= 0 && int(s.ends[0]) > most {
		return nil, ErrEmpty
	}
	pick := d.pick
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

// fits tells whether a text of count characters can still be finished from a state.
func (s *String) fits(count int32, state int32) bool {
	if s.Max < 0 {
		return true
	}
	if s.ends != nil {
		count += s.ends[state]
	}
	return int(count) <= s.Max
}

// room is how many more characters the bound allows, whichever they are, up to most.
func (s *String) room(count int32, most int) int {
	if s.Max < 0 {
		return most
	}
	return min(most, s.Max-int(count)-s.slack)
}
