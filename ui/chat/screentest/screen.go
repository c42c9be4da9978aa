// Package screentest is a terminal without a window, for tests: it interprets a program's output
// and holds the visible screen. The README's picture is drawn from it too.
//
// It understands what Bubble Tea sends: text, SGR styles, cursor moves, erasing, modes. Unknown
// sequences are skipped. Characters are as wide as on an old terminal, without joining emoji: a
// layout that is intact here is intact everywhere.
package screentest

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// A Cell is one position of the screen. The second half of a wide character has no text.
type Cell struct {
	Text  string // "" is a blank, or the second half of a wide character
	Style Style
}

// A Style is what SGR sequences set. Colours are 0 for the terminal's own, else 1 to 8 for the
// eight, 9 to 16 bright.
type Style struct {
	Foreground, Background                        uint8
	Bold, Dim, Italic, Underline, Strike, Reverse bool
}

// A Screen is the visible part of the terminal. It is not safe for use by several goroutines.
type Screen struct {
	width, height int
	rows          [][]Cell
	x, y          int // x may be width: the next character goes to the next row
	style         Style
	// enabled private modes: "1049" is the alternate screen, "25" the cursor
	modes map[string]bool
	// an incomplete sequence or character
	held    []byte
	unknown []string // skipped sequences
}

var columns = &runewidth.Condition{StrictEmojiNeutral: true}

// New returns an empty screen.
func New(width, height int) *Screen {
	s := &Screen{modes: map[string]bool{}}
	s.Resize(width, height)
	return s
}

// Resize cuts or extends the screen at its right and its bottom.
func (s *Screen) Resize(width, height int) {
	rows := make([][]Cell, height)
	for y := range rows {
		rows[y] = make([]Cell, width)
		if y < len(s.rows) {
			copy(rows[y], s.rows[y])
		}
	}
	s.rows, s.width, s.height = rows, width, height
	s.x, s.y = min(s.x, width), min(s.y, height-1)
}

// Mode reports whether a private mode such as "1049" is on.
func (s *Screen) Mode(name string) bool { return s.modes[name] }

// Unknown lists the sequences that were skipped.
func (s *Screen) Unknown() []string { return s.unknown }

// Cursor is the position of the next character, from 0.
func (s *Screen) Cursor() (x, y int) { return min(s.x, s.width-1), s.y }

// Rows are the cells of the screen, which still owns them.
func (s *Screen) Rows() [][]Cell { return s.rows }

// String is the text of the screen, without blanks at the ends of rows.
func (s *Screen) String() string {
	var b strings.Builder
	for _, row := range s.rows {
		var line strings.Builder
		for x := 0; x < len(row); x++ {
			text := row[x].Text
			if text == "" {
				text = " "
			}
			line.WriteString(text)
			if r, _ := utf8.DecodeRuneInString(text); columns.RuneWidth(r) == 2 {
				x++
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// Write interprets a program's output. It never fails.
func (s *Screen) Write(p []byte) (int, error) {
	data := append(s.held, p...)
	for len(data) > 0 {
		n := s.step(data)
		if n == 0 {
			break
		}
		data = data[n:]
	}
	s.held = append([]byte(nil), data...)
	return len(p), nil
}

// step interprets one character or sequence and returns its length, 0 if incomplete.
func (s *Screen) step(data []byte) int {
	switch c := data[0]; {
	case c == 0x1b:
		return s.escape(data)
	case c == '\r':
		s.x = 0
	case c == '\n':
		s.lineFeed()
	case c == '\b':
		s.x = max(s.x-1, 0)
	case c == '\t':
		s.x = min((s.x/8+1)*8, s.width-1)
	case c < 0x20 || c == 0x7f:
	default:
		if !utf8.FullRune(data) {
			return 0
		}
		r, n := utf8.DecodeRune(data)
		s.put(r)
		return n
	}
	return 1
}

func (s *Screen) put(r rune) {
	w := columns.RuneWidth(r)
	if w == 0 {
		if x := min(s.x, s.width) - 1; x >= 0 {
			if s.rows[s.y][x].Text == "" && x > 0 {
				x--
			}
			s.rows[s.y][x].Text += string(r)
		}
		return
	}
	if s.x+w > s.width {
		s.x = 0
		s.lineFeed()
	}
	s.rows[s.y][s.x] = Cell{string(r), s.style}
	if w == 2 && s.x+1 < s.width {
		s.rows[s.y][s.x+1] = Cell{"", s.style}
	}
	s.x += w
}

func (s *Screen) lineFeed() {
	if s.y < s.height-1 {
		s.y++
		return
	}
	copy(s.rows, s.rows[1:])
	s.rows[s.height-1] = make([]Cell, s.width)
}

// escape interprets a sequence that begins with ESC.
func (s *Screen) escape(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '[':
		for i := 2; i < len(data); i++ {
			if c := data[i]; c >= 0x40 && c <= 0x7e {
				s.control(string(data[2:i]), c)
				return i + 1
			}
		}
		return 0
	case ']', 'P', '_', '^': // ends with BEL or ESC \
		for i := 2; i < len(data); i++ {
			if data[i] == 7 {
				return i + 1
			}
			if data[i] == 0x1b && i+1 < len(data) && data[i+1] == '\\' {
				return i + 2
			}
		}
		return 0
	}
	return 2
}

func (s *Screen) control(params string, final byte) {
	n := 1
	if params != "" && strings.Contains("<>", params[:1]) { // keyboard protocols
		s.modes[params+string(final)] = true
		return
	}
	first, second, _ := strings.Cut(params, ";")
	if v, err := strconv.Atoi(first); err == nil {
		n = v
	}
	switch final {
	case 'A':
		s.y = max(s.y-max(n, 1), 0)
	case 'B':
		s.y = min(s.y+max(n, 1), s.height-1)
	case 'C':
		s.x = min(s.x+max(n, 1), s.width-1)
	case 'D':
		s.x = max(min(s.x, s.width-1)-max(n, 1), 0)
	case 'G':
		s.x = min(max(n, 1), s.width) - 1
	case 'H', 'f':
		column, err := strconv.Atoi(second)
		if err != nil {
			column = 1
		}
		s.y, s.x = min(max(n, 1), s.height)-1, min(max(column, 1), s.width)-1
	case 'J':
		if params == "2" || params == "3" {
			s.erase(0, 0, s.height)
			return
		}
		s.erase(s.y, min(s.x, s.width), s.height)
	case 'K':
		from := min(s.x, s.width)
		if params == "2" {
			from = 0
		}
		s.erase(s.y, from, s.y+1)
	case 'm':
		s.sgr(params)
	case 'h', 'l':
		for mode := range strings.SplitSeq(strings.TrimPrefix(params, "?"), ";") {
			s.modes[mode] = final == 'h'
			if mode == "1049" {
				s.erase(0, 0, s.height)
			}
		}
	default:
		s.unknown = append(s.unknown, params+string(final))
	}
}

// erase blanks from column x of row y up to the row before end.
func (s *Screen) erase(y, x, end int) {
	for ; y < end; y++ {
		clear(s.rows[y][x:])
		x = 0
	}
}

func (s *Screen) sgr(params string) {
	for p := range strings.SplitSeq(params, ";") {
		n, _ := strconv.Atoi(p)
		switch {
		case n == 0:
			s.style = Style{}
		case n == 1:
			s.style.Bold = true
		case n == 2:
			s.style.Dim = true
		case n == 3:
			s.style.Italic = true
		case n == 4:
			s.style.Underline = true
		case n == 7:
			s.style.Reverse = true
		case n == 9:
			s.style.Strike = true
		case n >= 30 && n <= 37:
			s.style.Foreground = uint8(n - 29)
		case n == 39:
			s.style.Foreground = 0
		case n >= 40 && n <= 47:
			s.style.Background = uint8(n - 39)
		case n == 49:
			s.style.Background = 0
		case n >= 90 && n <= 97:
			s.style.Foreground = uint8(n - 81)
		default:
			s.unknown = append(s.unknown, p+"m")
		}
	}
}
