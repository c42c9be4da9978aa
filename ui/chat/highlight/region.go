// Comments and strings, and code inside of strings.

package highlight

import "strings"

// opened opens a region here, if one begins.
func (s *scanner) opened() bool {
	if s.documentOpens() {
		return true
	}
	for i := range s.lang.regions {
		if end, n, ok := s.opening(&s.lang.regions[i]); ok {
			return s.open(i, end, frame{region: int16(i), n: n})
		}
	}
	return false
}

// opening reports that a region begins here, where its first bytes end, and how many fill bytes there are.
func (s *scanner) opening(r *region) (end int, n int32, ok bool) {
	if !s.has(r.lead) || r.fill != 0 && s.byteAt(s.at-1) == r.fill {
		return 0, 0, false // or it would have opened at the first of the fill bytes
	}
	end = s.at + len(r.lead)
	for r.fill != 0 && end < len(s.line) && s.line[end] == r.fill {
		end++
		n++
	}
	if !strings.HasPrefix(s.line[end:], r.open) {
		return 0, 0, false
	}
	end += len(r.open)
	switch {
	case r.form&atStart != 0 && s.at > 0,
		r.form&atWord != 0 && s.at > 0 && strings.IndexByte(" \t;({", s.line[s.at-1]) < 0,
		r.form&tagged != 0 && s.tag != "":
		return 0, 0, false
	}
	return end, n, true
}

// open opens region i, whose first bytes end there.
func (s *scanner) open(i, end int, f frame) bool {
	r := &s.lang.regions[i]
	s.expect = Text
	if r.kind == String {
		s.value = true
	}
	switch {
	case r.shut == "" && r.form&tagged == 0:
		s.rest(r.kind)
		return true
	case r.form&tagged != 0:
		// the writer's word, of a length that a compiler would take, and the byte that ends it
		last := r.tail[0]
		j := end
		for j < len(s.line) && j-end <= 16 && wordByte(s.line[j]) {
			j++
		}
		if s.byteAt(j) != last {
			return false
		}
		if !s.push(f) {
			return false
		}
		s.tag = r.shut + s.line[end:j] + r.tail[1:]
		s.take(r.kind, j+1)
		return true
	}
	if s.lang.has(keys) && r.kind == String {
		if key := s.keyEnd(r, end); key > 0 {
			s.take(Key, key)
			return true
		}
	}
	if r.form&nests != 0 {
		f.n = 1
	}
	if !s.push(f) {
		return false
	}
	s.take(r.kind, end)
	return true
}

// keyEnd is where the string ends whose first bytes end at i, if a colon follows it, else 0.
func (s *scanner) keyEnd(r *region, i int) int {
	for ; i < len(s.line); i++ {
		if s.line[i] == '\\' {
			i++
		} else if strings.HasPrefix(s.line[i:], r.shut) {
			i += len(r.shut)
			if s.byteAt(s.blanksEnd(i)) == ':' {
				return i
			}
			return 0
		}
	}
	return 0
}

// openPrefixed opens the string behind a prefix that was taken: r takes away escapes, f and t bring holes.
func (s *scanner) openPrefixed(prefix string) {
	prefix = strings.ToLower(prefix)
	for i := range s.lang.regions {
		r := &s.lang.regions[i]
		if r.kind != String {
			continue
		}
		if end, n, ok := s.opening(r); ok {
			s.open(i, end, frame{region: int16(i), n: n,
				raw: strings.Contains(prefix, "r"), holes: strings.ContainsAny(prefix, "ft")})
			return
		}
	}
}

// inside takes the open region up to its end, its next hole, or the end of the line.
func (s *scanner) inside() {
	f := s.top()
	r := &s.lang.regions[f.region]
	s.carried = false
	if r.form&atStart != 0 {
		if s.at == 0 && s.has(r.shut) {
			s.pop()
		}
		s.rest(r.kind)
		return
	}
	if r.form&tagged != 0 {
		if i := strings.Index(s.line[s.at:], s.tag); i >= 0 {
			s.take(r.kind, s.at+i+len(s.tag))
			s.tag = ""
			s.pop()
			s.value = true
			return
		}
		s.rest(r.kind)
		return
	}
	holes := r.hole != "" && (r.hole != "{" || f.holes || r.lead != "")
	for i := s.at; i < len(s.line); i++ {
		c := s.line[i]
		switch {
		case holes && c == r.hole[0] && strings.HasPrefix(s.line[i:], r.hole):
			if r.hole == "{" && s.byteAt(i+1) == '{' {
				i++
				continue
			}
			if int(s.depth)+1 < maxDepth && s.push(frame{region: f.region, hole: true, n: 1}) { // room for a string in it
				s.take(r.kind, i+len(r.hole))
				s.value, s.command = false, true
				return
			}
		case c == '\\' && r.form&escapes != 0 && (!f.raw || s.byteAt(i+1) == r.shut[0]), c == '`' && r.form&backtick != 0:
			i++
			s.carried = i >= len(s.line)
		case r.form&nests != 0 && c == r.open[0] && strings.HasPrefix(s.line[i:], r.open):
			f.n++
			i += len(r.open) - 1
		case c == r.shut[0]:
			end, ok := s.closing(r, f, i)
			if !ok {
				continue
			}
			if r.form&nests != 0 {
				if f.n--; f.n > 0 {
					i = end - 1
					continue
				}
			}
			if r.form&doubles != 0 && strings.HasPrefix(s.line[end:], r.shut) {
				i = end + len(r.shut) - 1
				continue
			}
			s.take(r.kind, end)
			s.pop()
			return
		}
	}
	s.rest(r.kind)
}

// closing reports that the region ends at i, and where its last bytes end.
func (s *scanner) closing(r *region, f *frame, i int) (end int, ok bool) {
	if !strings.HasPrefix(s.line[i:], r.shut) {
		return 0, false
	}
	end = i + len(r.shut)
	if r.fill != 0 {
		n := int32(0)
		for n < f.n && end < len(s.line) && s.line[end] == r.fill {
			end++
			n++
		}
		if n < f.n {
			return 0, false
		}
	}
	if !strings.HasPrefix(s.line[end:], r.tail) {
		return 0, false
	}
	return end + len(r.tail), true
}

// document reads a line of a here document and reports that it is one to its end.
func (s *scanner) document() bool {
	start := s.blanksEnd(0)
	if rest, ok := strings.CutPrefix(s.line[start:], s.tag); ok && (rest == "" || !wordByte(rest[0])) {
		s.take(String, start+len(s.tag))
		s.tag, s.here = "", false
		s.command = false
		return false
	}
	s.rest(String)
	return true
}

// documentOpens takes the mark and the word of a here document, which begins with the next line.
func (s *scanner) documentOpens() bool {
	open := s.lang.documents
	if open == "" || !s.has(open) || s.tag != "" {
		return false
	}
	i := s.at + len(open)
	loose := s.lang.shape == shell || s.lang.shape == makefile
	if s.byteAt(i) == '<' {
		return false // a here string
	}
	certain := loose || open == "<<<"
	if c := s.byteAt(i); c == '-' || c == '~' {
		certain = true
		i++
	}
	if loose {
		i = s.blanksEnd(i)
	}
	quote := s.byteAt(i)
	if quote == '"' || quote == '\'' {
		certain = true
		i++
	}
	end := i
	for end < len(s.line) && end-i <= 64 && wordByte(s.line[end]) {
		end++
	}
	if end == i || end-i > 64 || loose && s.sums || digit(s.line[i]) || !certain && (s.line[i] < 'A' || s.line[i] > 'Z') {
		return false
	}
	s.tag, s.pending = s.line[i:end], true
	if quote == '"' || quote == '\'' {
		if s.byteAt(end) == quote {
			end++
		}
	}
	s.take(String, end)
	s.value = true
	return true
}
