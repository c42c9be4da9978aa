// Shells, and the two kinds of files that have shell lines in them: Dockerfiles and makefiles.

package highlight

import "strings"

// inCommand is the mode in which a command may begin in a line that the backslash of the one before carries on.
const inCommand uint8 = 1

// shellStep takes the next piece of a command line.
func (s *scanner) shellStep() {
	l, c := s.lang, s.line[s.at]
	switch {
	case blank(c):
		if s.set {
			s.set, s.command = false, true
		}
		s.take(Text, s.blanksEnd(s.at))
	case s.first(s.at) && s.at < 8 && (s.has("$ ") || s.has("% ") || s.has("> ")):
		s.take(Comment, s.at+1) // a prompt
	case l.opens[c] && s.opened():
		s.command = false
	case c == '$':
		s.shellVariable()
	case c == '\\':
		s.take(Text, s.at+2)
		if s.joined = s.at == len(s.line) && s.line[len(s.line)-1] == '\\'; s.joined && s.command {
			s.mode = inCommand
		}
	case l.starts(c) || digit(c) || strings.IndexByte("-./~+", c) >= 0:
		s.shellWord()
	default:
		redirects := c == '&' && (s.byteAt(s.at-1) == '>' || s.byteAt(s.at-1) == '<')
		s.command = strings.IndexByte("|&;({`!@", c) >= 0 && !redirects || c == ')' && s.command
		s.set = false
		s.sums = s.sums || c == '(' && s.byteAt(s.at+1) == '('
		s.operator(c)
	}
}

// shellWord takes a word: a command, an option, an argument.
func (s *scanner) shellWord() {
	end := s.at + 1
	for end < len(s.line) && (wordByte(s.line[end]) || strings.IndexByte("-./~+%@:", s.line[end]) >= 0) {
		end++
	}
	word := s.line[s.at:end]
	kind, expected := s.lang.word(word), s.expect
	command, next := s.command, s.byteAt(end)
	s.command, s.expect = false, Text
	switch {
	case s.lang.has(instructions) && s.first(s.at) && command:
		if kind = Text; s.instruction(word) {
			kind, s.command = Keyword, listed("run env cmd entrypoint", strings.ToLower(word))
		}
	case expected != Text:
		kind = expected
	case command && kind == Text && (next == '=' || next == '+' && s.byteAt(end+1) == '=') && !strings.ContainsAny(word, "-./~+%@:"):
		s.take(Variable, end)
		s.take(Text, end+1)
		s.set = true
		return
	case kind == Keyword && (command || word == "in" || word == "do" || word == "AS" || word == "as"):
		s.command = !listed("for case select in AS as", word)
		s.expect = s.lang.next[word]
	case command && (word[0] == '-' || word[0] == '+'):
		s.command = true // the options of a word like sudo
		kind = Text
	case allDigits(word):
		kind = Number
	case command && kind == Text:
		kind = Function
	case command:
		s.command = word == "sudo" || word == "exec" || word == "command" || word == "env" || word == "nohup"
	default:
		kind = Text
	}
	s.take(kind, end)
}

// instruction reports a word that begins a line of a Dockerfile.
func (s *scanner) instruction(word string) bool {
	return len(word) <= 16 && s.lang.words[strings.ToUpper(word)] == Keyword
}

func allDigits(w string) bool {
	for i := range len(w) {
		if !digit(w[i]) {
			return false
		}
	}
	return true
}

// shellVariable takes $name, ${...}, $1 and, in a makefile, $(name); $( alone opens a command.
func (s *scanner) shellVariable() {
	end, next := s.at+1, s.byteAt(s.at+1)
	switch {
	case next == '{' || next == '(' && s.lang.shape == makefile:
		depth := 0
		for ; end < len(s.line); end++ {
			if c := s.line[end]; c == next {
				depth++
			} else if c == mirror(next) {
				if depth--; depth == 0 {
					end++
					break
				}
			}
		}
	case next == '(':
		s.take(Text, end)
		return
	case s.lang.starts(next):
		for end++; end < len(s.line) && wordByte(s.line[end]); end++ {
		}
	case next > ' ' && next < 0x7f && next != '"' && next != '\'':
		end++
	}
	s.take(Variable, end)
	s.command = false
}

// makefile takes a line of a makefile: a recipe's is a shell's.
func (s *scanner) makefile() {
	if s.joined || s.indent > 0 || s.line == "" || s.here || s.depth > 0 {
		s.code()
		return
	}
	colon := strings.IndexByte(s.line, ':')
	equals := strings.IndexByte(s.line, '=')
	word := s.wordEnd(0)
	switch {
	case s.line[0] == '#':
		s.rest(Comment)
	case s.lang.words[s.line[:word]] == Keyword && s.line[0] != '.':
		s.take(Keyword, word)
		s.words()
	case equals > 0 && (colon < 0 || colon+1 >= equals || s.line[equals-1] == '?'):
		end := strings.IndexAny(s.line, " \t:?+!=")
		s.take(Variable, end)
		s.words()
	case colon > 0:
		s.take(Function, colon)
		s.words()
	default:
		s.words()
	}
	s.endLine()
}

// words takes the rest of a makefile's own line: words, variables and a comment.
func (s *scanner) words() {
	for s.at < len(s.line) {
		switch c := s.line[s.at]; {
		case c == '$':
			s.shellVariable()
		case c == '#':
			s.rest(Comment)
		default:
			end := s.at + 1
			for end < len(s.line) && s.line[end] != '$' && s.line[end] != '#' {
				end++
			}
			s.take(Text, end)
		}
	}
}
