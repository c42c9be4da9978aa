// Latency against throughput: a point for each run, in the terminal and as SVG.

package load

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Plot shows the median time per output token in ms over output tokens a second.
type Plot struct{ Runs []Saved }

const (
	plotX, plotY   = "output_throughput", "median_tpot_ms"
	labelX, labelY = "output tok/s", "median TPOT (ms)"
)

// axis goes from 0 to a round number that holds every value.
type axis struct{ most, step float64 }

func (p Plot) axis(figure string) axis {
	most := 0.0
	for _, r := range p.Runs {
		most = max(most, r.Figures[figure])
	}
	if most == 0 {
		return axis{1, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, divisor := range []float64{5, 2} {
		if most/(step/divisor) <= 6 {
			step /= divisor
			break
		}
	}
	return axis{math.Ceil(most/step) * step, step}
}

func (a axis) marks() (list []float64) {
	for i := 0; float64(i)*a.step <= a.most*1.0001; i++ {
		list = append(list, float64(i)*a.step)
	}
	return list
}

// mark is a run's sign: 1 to 9, then letters, then *.
func mark(i int) byte {
	const signs = "123456789abcdefghijklmnopqrstuvwxyz"
	if i < len(signs) {
		return signs[i]
	}
	return '*'
}

// Text draws in characters, width x height of them between the axes.
func (p Plot) Text(w io.Writer, width, height int) error {
	x, y := p.axis(plotX), p.axis(plotY)
	field := make([][]byte, height)
	for i := range field {
		field[i] = []byte(strings.Repeat(" ", width))
	}
	for i, r := range p.Runs {
		column := int(math.Round(r.Figures[plotX] / x.most * float64(width-1)))
		row := height - 1 - int(math.Round(r.Figures[plotY]/y.most*float64(height-1)))
		field[row][column] = mark(i)
	}
	labels := map[int]string{}
	for _, v := range y.marks() {
		labels[height-1-int(math.Round(v/y.most*float64(height-1)))] = number(v)
	}
	var b strings.Builder
	b.WriteString(labelY + "\n")
	for i, row := range field {
		fmt.Fprintf(&b, "%9s |%s\n", labels[i], strings.TrimRight(string(row), " "))
	}
	bottom := []byte(strings.Repeat(" ", width+8))
	for _, v := range x.marks() {
		column := int(math.Round(v / x.most * float64(width-1)))
		copy(bottom[column:], number(v))
	}
	fmt.Fprintf(&b, "%9s +%s\n%11s%s  %s\n", "", strings.Repeat("-", width), "",
		strings.TrimRight(string(bottom), " "), labelX)
	for i, r := range p.Runs {
		fmt.Fprintf(&b, "  %c  %s\n", mark(i), r.Name)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// SVG draws a picture for a report.
func (p Plot) SVG(w io.Writer) error {
	const left, top, width, height = 80.0, 24.0, 640.0, 360.0
	x, y := p.axis(plotX), p.axis(plotY)
	px := func(v float64) float64 { return left + v/x.most*width }
	py := func(v float64) float64 { return top + height - v/y.most*height }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="12">`+"\n", left+width+40,
		top+height+64+18*float64(len(p.Runs)))
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for _, v := range x.marks() {
		fmt.Fprintf(&b, `<path d="M%.1f %g V%g" stroke="#ddd"/><text x="%.1f" y="%g" `+
			`text-anchor="middle">%s</text>`+"\n", px(v), top, top+height, px(v), top+height+16,
			number(v))
	}
	for _, v := range y.marks() {
		fmt.Fprintf(&b, `<path d="M%g %.1f H%g" stroke="#ddd"/><text x="%g" y="%.1f" `+
			`text-anchor="end">%s</text>`+"\n", left, py(v), left+width, left-6, py(v)+4, number(v))
	}
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", left+width/2,
		top+height+36, labelX)
	fmt.Fprintf(&b, `<text transform="translate(18 %g) rotate(-90)" text-anchor="middle">%s</text>`+
		"\n", top+height/2, labelY)
	order := slices.Clone(p.Runs)
	slices.SortStableFunc(order, func(a, b Saved) int {
		return cmp.Compare(a.Figures[plotX], b.Figures[plotX])
	})
	b.WriteString(`<polyline fill="none" stroke="#99b" points="`)
	for _, r := range order {
		fmt.Fprintf(&b, "%.1f,%.1f ", px(r.Figures[plotX]), py(r.Figures[plotY]))
	}
	b.WriteString(`"/>` + "\n")
	for i, r := range p.Runs {
		cx, cy := px(r.Figures[plotX]), py(r.Figures[plotY])
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="4" fill="#447"/><text x="%.1f" y="%.1f">%c`+
			`</text><text x="%g" y="%g">%c  %s</text>`+"\n", cx, cy, cx+6, cy-6, mark(i), left,
			top+height+60+18*float64(i), mark(i), html.EscapeString(r.Name))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
