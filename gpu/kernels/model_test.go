package kernels

import (
	flags "flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// A model of a step's time on an H200: instructions counted from machine code (ptxas.sh), the grids
// of this package, efficiencies, and straight lines for what is not experts. It reproduces what was
// measured; docs/gpu-kernels.md has its table. What is done once for a tile's tokens is not
// counted, so streams seem to use fewer issue slots with more columns.

var update = flags.Bool("update", false, "write kernels.md, or docs/gpu-kernels.md's table, again")

const countsPage = "../../docs/gpu-kernels.md"

// The card, and the two efficiencies that were fitted to measuredSteps: of the issue slots of a
// processor with two blocks, and of its matrix unit and issue slots one after the other in the
// tiles of prefill_wgmma.cu.
const (
	hertz, copyBytes = 1.98e9, 4.272e12
	issueShare       = 0.72
	tileShare        = 0.80
	tileCycles       = 512 + 516 // of a step of 64 of k: the unit's, and of issue
)

// streamShares are the issue slots that streams use, by the columns of a tile: that of 8 by ncu,
// the others fitted to measuredSteps, with the instructions that the kernels had then.
var streamShares = map[int]float64{8: 0.61, 16: 0.34, 32: 0.28}

var measuredStreams = map[string]float64{"stream_gate_up_8": 111, "stream_gate_up_16": 125,
	"stream_gate_up_32": 133, "stream_gate_up_8_2": 112, "stream_down_8": 105,
	"stream_down_16": 120, "stream_down_32": 127, "stream_down_8_2": 105}

// measuredSteps are 20b's, tokens a second by rows: before the grids were mended on 2026-11-26, and
// with experts streamed on 2026-11-29.
var measuredSteps = []struct {
	rows            int
	speed, streamed float64
}{{1, 470, 454}, {2, 684, 727}, {4, 799, 1162}, {8, 944, 1674}, {16, 1151, 2364},
	{32, 2089, 4201}, {64, 4038, 5960}, {128, 7550, 9328}, {256, 13464, 13372}}

// rest is a step's milliseconds without experts, before the dense matrices had kernels of their own
// for few rows, and where experts are streamed.
func rest(rows int, streamed bool) float64 {
	line := [2]float64{3.3, 0.0149}
	switch {
	case rows <= DecodeRows && streamed:
		line = [2]float64{1.05, 0.145}
	case rows <= DecodeRows:
		line = [2]float64{1.2, 0.13}
	case streamed:
		line = [2]float64{3.2, 0.0128}
	}
	return line[0] + line[1]*float64(rows)
}

// choiceMicros is a layer's router, choice and sum of experts, with the launches of streams.
const choiceMicros = 21

// instructionsOf is a kernel's for 1,024 weights on sm_90a, out of ptxas.sh's table.
func instructionsOf(t *testing.T, page, kernel string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\| ` + kernel + ` \| \d+ \| \d+, \d+ \| \d+, (\d+) \|`).
		FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no counts of %s", kernel)
	}
	return hosttest.Must(strconv.ParseFloat(m[1], 64))(t)
}

// tilesOf is how many tiles of so many tokens the experts of a step have, if all are chosen alike.
func tilesOf(s models.Spec, rows, tokens int) (tiles float64) {
	p := float64(s.ExpertsPerToken) / float64(s.Experts)
	chance := math.Pow(1-p, float64(rows)) // of n rows
	for n := 0; n <= rows; n++ {
		tiles += chance * float64(divideUp(n, tokens))
		chance *= float64(rows-n) / float64(n+1) * p / (1 - p)
	}
	return tiles * float64(s.Experts)
}

// milliseconds of all layers, from a processor's cycles in one.
func (m stepModel) milliseconds(cycles float64) float64 {
	return float64(m.spec.Layers) * cycles / hertz * 1e3
}

type stepModel struct {
	t      *testing.T
	page   string
	spec   models.Spec
	target Target
}

// decode is the experts' time by decode_gate_up and decode_down, with `blocks` of each.
func (m stepModel) decode(rows int, blocks [2]int) (ms float64) {
	s, fit := m.spec, m.target.Processors*residentMany
	for i, x := range []struct {
		kernel string
		units  int // of a warp's weights
		each   int
	}{{"decode_gate_up", rows * s.ExpertsPerToken * s.Intermediate, 2 * s.Hidden},
		{"decode_down", rows * s.Hidden, s.ExpertsPerToken * s.Intermediate}} {
		per := instructionsOf(m.t, m.page, x.kernel) * float64(x.each) / 1024
		units := float64(divideUp(x.units, blocks[i]*threads/32)) // of a warp: the slowest
		wave := units * per * float64(threads/32) / 4
		cycles := wave * float64(min(residentMany, divideUp(blocks[i], m.target.Processors)))
		cycles /= issueShare
		if blocks[i] > fit {
			cycles += wave / 0.96 // a last wave of lone blocks
		}
		ms += m.milliseconds(cycles)
	}
	return ms
}

// decodeBlocks are the grids of today, and those before blocks were held to what is resident.
func (m stepModel) decodeBlocks(rows int) (now, before [2]int) {
	s, r := m.spec, Rows{Most: rows}
	up := m.target.DecodeGateUp(r, 0, Experts{N: s.Intermediate, K: s.Hidden,
		Top: s.ExpertsPerToken}).Grid
	down := m.target.DecodeDown(r, 0, 0, 0, s.ExpertsPerToken,
		Experts{N: s.Hidden, K: s.Intermediate}).Grid
	old := func(copies, units int) int {
		warps := threads / 32
		each := divideUp(units*copies, warps*m.target.Processors*residentMany)
		return copies * divideUp(units, warps*each)
	}
	return [2]int{int(up[0] * up[1]), int(down[0] * down[1])},
		[2]int{old(rows*s.ExpertsPerToken, s.Intermediate), old(rows, s.Hidden)}
}

// tiles is the experts' time by tiles of 128 by 128.
func (m stepModel) tiles(rows int) float64 {
	s := m.spec
	columns := divideUp(2*s.Intermediate, tileColumns) + divideUp(s.Hidden, tileColumns)
	steps := float64(divideUp(s.Hidden, 64))
	per := tilesOf(s, rows, 128) * float64(columns) / float64(m.target.Processors)
	return m.milliseconds(per * steps * tileCycles / tileShare)
}

// stream is the experts' time by the stream kernels, as they were measured or are now; no less than
// a copy of the weights takes.
func (m stepModel) stream(rows int, now bool) (ms float64, columns int) {
	s, terms := m.spec, OneTerm
	if rows <= DecodeRows {
		terms = TwoTerms
	}
	for _, e := range []Experts{{Slots: rows * s.ExpertsPerToken, Experts: s.Experts,
		N: s.Intermediate, K: s.Hidden, Top: s.ExpertsPerToken}, {Slots: rows * s.ExpertsPerToken,
		Experts: s.Experts, N: s.Hidden, K: s.Intermediate}} {
		l := m.target.StreamExperts(e, terms)
		columns = m.target.streamColumns(e, terms)
		n := e.N
		if e.Top > 0 {
			n *= 2
		}
		weights := float64(streamRows * e.K / (threads / 32)) // of a warp in a unit
		per := measuredStreams[l.Kernel] * weights / 1024
		if now {
			per = instructionsOf(m.t, m.page, l.Kernel) * weights / 1024
		}
		units := tilesOf(s, rows, columns/int(terms)) * float64(n/streamRows)
		run := math.Ceil(units / float64(l.Grid[0]))
		_, memory := m.target.streamMemory(columns, e.K)
		resident := streamResident(columns)
		blocks := m.target.fits(resident, memory)
		cycles := run * per * float64(threads/32*blocks) / 4 / streamShares[columns]
		bytes := tilesOf(s, rows, rows) * float64(n*e.K) * 17 / 32
		ms += max(m.milliseconds(cycles), float64(s.Layers)*bytes/copyBytes*1e3)
	}
	return ms + choiceMicros*float64(s.Layers)/1e3, columns
}

// TestStepModel: the model is within 5 % of every measured step, and the page has its table.
func TestStepModel(t *testing.T) {
	page := string(hosttest.Must(os.ReadFile(countsPage))(t))
	m := stepModel{t, page, models.Spec20B(), Target{Warp: 32, Unit: WGMMA, Processors: 132,
		Shared: SharedOf("sm_90")}}
	table := "| rows | measured | model | grids mended | streamed, now | streamed, measured " +
		"| blocks: gate_up, down | streamed: columns, blocks | launches a layer |\n" +
		strings.Repeat("|---", 9) + "|\n"
	for _, x := range measuredSteps {
		measured := float64(x.rows) / x.speed * 1e3
		streamed, columns := m.stream(x.rows, false)
		today, _ := m.stream(x.rows, true)
		streamed, today = streamed+rest(x.rows, true), today+rest(x.rows, true)
		e := Experts{Slots: x.rows * 4, Experts: 32, N: 2880, K: 2880, Top: 4}
		terms, launches := OneTerm, "14, 12; now 8, 8"
		var model float64
		mended, grids := "", "tiles of 128"
		if x.rows > 64 {
			launches = "14, 12; now 10, 10"
		}
		if x.rows <= DecodeRows {
			now, before := m.decodeBlocks(x.rows)
			model, terms, launches = rest(x.rows, false)+m.decode(x.rows, before), TwoTerms, "6, 7"
			mended = fmt.Sprintf("%.2f", rest(x.rows, false)+m.decode(x.rows, now))
			grids = fmt.Sprintf("%d, %d; now %d, %d of %d", before[0], before[1], now[0], now[1],
				m.target.Processors*residentMany)
		} else {
			model = rest(x.rows, false) + m.tiles(x.rows)
		}
		took := float64(x.rows) / x.streamed * 1e3
		for _, c := range [][2]float64{{model, measured}, {streamed, took}} {
			if off := c[0]/c[1] - 1; off > 0.05 || off < -0.05 {
				t.Errorf("%d rows: %.2f ms by the model, %.2f measured", x.rows, c[0], c[1])
			}
		}
		table += fmt.Sprintf("| %d | %.2f | %.2f | %s | %.2f | %.2f | %s | %d, %d | %s |\n",
			x.rows, measured, model, mended, today,
			took, grids, columns,
			m.target.StreamExperts(e, terms).Grid[0], launches)
	}
	const begin, end = "<!-- steps -->\n", "<!-- end of steps -->\n"
	before, have, _ := strings.Cut(page, begin)
	have, after, found := strings.Cut(have, end)
	switch {
	case !found:
		t.Errorf("no table of steps in %s", countsPage)
	case *update:
		hosttest.Check(t, os.WriteFile(countsPage, []byte(before+begin+table+end+after), 0o644))
	case have != table:
		t.Errorf("%s has another table: go test ./gpu/kernels -run StepModel -update\n%s",
			countsPage, table)
	}
}
