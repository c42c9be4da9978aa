// What is said to people: rows in columns, lines broken between words, numbers with their units.
// In a pipe or a file a fact of a report is one line, however long.

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// columns writes what has tabs between as columns, when it is flushed.
func columns(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 4, 2, ' ', 0) }

// report is rows of a label and a fact, with a tab between.
type report struct {
	io.Writer
	label string // of the row above
}

// row writes a fact; a label that stands above already is not repeated.
func (r *report) row(label, format string, args ...any) {
	shown := label
	if r.label == label {
		shown = ""
	}
	r.label = label
	fmt.Fprintf(r, "%s\t%s\n", shown, fmt.Sprintf(format, args...))
}

// writeJSON writes a report as one JSON object that a person can read too.
func writeJSON(w io.Writer, report any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

// count is a number of things, in words: "1 core", "2 cores".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func digits(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func gb(n int64) float64 { return float64(n) / 1e9 }

// gigabytes is a number of bytes, as much of it as a plan needs.
func gigabytes(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", gb(n))
}

func size(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", gb(n))
}

func minutes(seconds float64) string {
	if seconds < 90 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return fmt.Sprintf("%.0f min", seconds/60)
}

func brief(d time.Duration) string {
	if d < time.Hour {
		return max(d, 0).Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// reportWidth is that of the narrowest usual terminal, in columns.
const reportWidth = 80

// folded breaks each line of a text before it is wider than width. The rest of a line stands under
// its second column, or under its words where it has no first column.
func folded(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if i := strings.Index(line, "  "); i > 0 {
			indent = i + len(line[i:]) - len(strings.TrimLeft(line[i:], " "))
		}
		b.WriteString(line[:indent])
		writeWords(&b, line[indent:], indent, indent+2, width)
	}
	return b.String()
}

// writeWords ends a line with the words of text: from column on, and from indent on in each further
// line, of which none is wider than width.
func writeWords(b *strings.Builder, text string, column, indent, width int) {
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
}
