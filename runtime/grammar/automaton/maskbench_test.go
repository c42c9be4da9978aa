// MaskBench: how many of a folder's schemas are covered, and the cost of masks and compilation. The
// data is not in the tree; .ci/long maskbench FOLDER runs this over a download
// (guidance-ai/jsonschemabench, maskbench/data). A file is {"schema": ..., "tests": [{"valid":
// bool, "data": ...}]}.
//
// What must stay true: a schema counts as covered only if every valid instance is accepted, spelled
// compactly with its members in some order, and every invalid one refused in each that is tried.

package automaton_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
	"github.com/ossrun/ossrun/runtime/grammar/schema"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// benchTable is the result of the run over a folder.
type benchTable struct {
	files, covered, refused           int
	valid, falseAccepts, falseRejects int
	masks, compiles                   []time.Duration
	obstacles                         map[string]int
	faults                            []string
	slowCompile, slowMask             string
}

func (b *benchTable) file(t *testing.T, path string) {
	raw := hosttest.Must(os.ReadFile(path))(t)
	d, err := jsondoc.Parse(raw, jsondoc.Lenient)
	if err != nil || d.Get("schema") == nil {
		t.Fatalf("%s: is not a file of MaskBench: %v", path, err)
	}
	name := filepath.Base(path)
	b.files++
	raw = []byte(d.Get("schema").String())
	automaton.ForgetAutomata() // formats stay: they are made once in a process
	began := hosttest.ThreadTime()
	g, err := schema.Compile(t.Context(), raw, false)
	took := hosttest.ThreadTime() - began
	if len(b.compiles) == 0 || took > slices.Max(b.compiles) {
		b.slowCompile = name
	}
	b.compiles = append(b.compiles, took)
	if err != nil {
		b.refused++
		var invalid *schema.InvalidError
		if errors.As(err, &invalid) {
			b.faults = append(b.faults, name+": "+err.Error())
		}
		b.obstacles[obstacle(t, d.Get("schema"), err)]++
		if os.Getenv("OSSRUN_MASKBENCH_REFUSED") != "" {
			b.faults = append(b.faults, fmt.Sprintf("refused %s: %v", name, err))
		}
		return
	}
	twin := hosttest.Must(schema.Compile(t.Context(), raw, false))(t)
	right := true
	for i, test := range d.Member("tests").Items {
		valid := test.Member("valid").Truth
		if valid {
			b.valid++
		}
		numbers := plainNumber
		if !valid && draft4.MatchString(d.Member("schema").Member("$schema").Text) {
			numbers = pointKept
		}
		// the order is searched with another copy, so that masks are computed for the first time
		if taken := b.instance(g, name, ordered(twin, test.Get("data"), numbers)); taken != valid {
			right = false
			if taken {
				b.falseAccepts++
			} else {
				b.falseRejects++
			}
			b.faults = append(b.faults, fmt.Sprintf("%s: test %d is taken: %v", name, i, taken))
		}
	}
	if right {
		b.covered++
	}
}

// draft4 reports the schemas in which 1.0 is not an integer.
var draft4 = regexp.MustCompile("draft-0[34]")

// plainNumber is a number as a plain decimal.
func plainNumber(text string) string {
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(text)-i > 5 {
		return text // out of all reason
	}
	r, ok := new(big.Rat).SetString(text)
	switch {
	case !ok:
		return text
	case r.IsInt():
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(1100), "0")
}

// pointKept is a plain number in which a point stays: in draft 4 1.0 is no integer.
func pointKept(text string) string {
	plain := plainNumber(text)
	if strings.Contains(text, ".") && !strings.Contains(plain, ".") {
		return plain + ".0"
	}
	return plain
}

// ordered spells a value with its members in an order that the grammar accepts, or unchanged if
// there is none: the order of members is the schema's.
func ordered(g *automaton.Grammar, d *jsondoc.Value, plain func(string) string) string {
	o := orderings{g: g, plain: plain, known: map[readFrom][]spelled{}}
	for _, s := range o.value(automaton.FirstState, d) {
		if g.MayEnd(s.at) {
			return s.text
		}
	}
	return string(d.Append(nil, jsondoc.Spelling{Number: plain}))
}

// orderings are the spellings of the values of one text. Their results are cached: nested
// alternatives would be tried in all combinations.
type orderings struct {
	g     *automaton.Grammar
	plain func(string) string
	known map[readFrom][]spelled
}

type readFrom struct {
	at int32
	d  *jsondoc.Value
}

// spelled is a text and the state after it.
type spelled struct {
	at   int32
	text string
}

// after appends a text to each way.
func (o *orderings) after(ways []spelled, text string) (out []spelled) {
	for _, w := range ways {
		at := w.at
		for i := 0; i < len(text) && at >= 0; i++ {
			at = o.g.Step(at, text[i])
		}
		if at >= 0 {
			out = append(out, spelled{at, w.text + text})
		}
	}
	return out
}

// then appends a value to each way; one way per state is kept.
func (o *orderings) then(ways []spelled, d *jsondoc.Value) (out []spelled) {
	for _, w := range ways {
		for _, s := range o.value(w.at, d) {
			out = append(out, spelled{s.at, w.text + s.text})
		}
	}
	return oneEach(out)
}

func oneEach(ways []spelled) (out []spelled) {
	for _, w := range ways {
		if !slices.ContainsFunc(out, func(o spelled) bool { return o.at == w.at }) {
			out = append(out, w)
		}
	}
	return out
}

// value is the spellings of a value from a state.
func (o *orderings) value(at int32, d *jsondoc.Value) (out []spelled) {
	key := readFrom{at, d}
	if known, ok := o.known[key]; ok {
		return known
	}
	start := []spelled{{at: at}}
	switch d.Kind {
	case jsondoc.Array:
		out = o.after(start, "[")
		for i, item := range d.Items {
			if i > 0 {
				out = o.after(out, ",")
			}
			out = o.then(out, item)
		}
		out = o.after(out, "]")
	case jsondoc.Object:
		start = o.after(start, "{")
		if len(start) == 0 {
			break
		}
		for _, members := range orders(o.g, start[0].at, d.Members) {
			ways := start
			for i, m := range members {
				label := string(append(jsondoc.Quote(nil, m.Name), ':'))
				if i > 0 {
					label = "," + label
				}
				ways = o.then(o.after(ways, label), m.Value)
			}
			out = append(out, o.after(ways, "}")...)
		}
		out = oneEach(out)
	default:
		out = o.after(start, string(d.Append(nil, jsondoc.Spelling{Number: o.plain})))
	}
	o.known[key] = out
	return out
}

// obstacle is the keyword without which a schema could be enforced, if it is the only one.
func obstacle(t *testing.T, d *jsondoc.Value, first error) string {
	var unsupported *schema.UnsupportedError
	if !errors.As(first, &unsupported) {
		return "invalid"
	}
	_, less, err := schema.RelaxedWithin(t.Context(), []byte(d.String()), false)
	if err != nil {
		return "more than can be relaxed"
	}
	for _, l := range less {
		if !strings.Contains(l, ": "+unsupported.Keyword+": ") {
			return "several keywords"
		}
	}
	return unsupported.Keyword + " alone"
}

// orders are those of the open object shapes after its brace.
func orders(g *automaton.Grammar, at int32, members []jsondoc.Member) [][]jsondoc.Member {
	if at < 0 {
		return nil
	}
	out := [][]jsondoc.Member{members}
	for _, names := range g.PropertiesAt(at) {
		rank := map[string]int{}
		for i, name := range names {
			rank[name] = i - len(names)
		}
		out = append(out, slices.SortedStableFunc(slices.Values(members),
			func(a, b jsondoc.Member) int { return rank[a.Name] - rank[b.Name] }))
	}
	return out
}

// instance walks a text token by token, as a sequence would.
func (b *benchTable) instance(g *automaton.Grammar, name, text string) bool {
	m := g.Matcher()
	mask := func() []uint64 {
		began := hosttest.ThreadTime()
		mask := m.Mask(token.Return)
		took := hosttest.ThreadTime() - began
		if len(b.masks) == 0 || took > b.masks[0] {
			b.masks = append(b.masks, took)
			last := len(b.masks) - 1 // the slowest stands first
			b.masks[0], b.masks[last] = b.masks[last], b.masks[0]
			b.slowMask = name
		} else {
			b.masks = append(b.masks, took)
		}
		return mask
	}
	for _, id := range token.Get().Encode(nil, text) {
		if !automaton.Allows(mask(), id) || !m.Accept(id) {
			return false
		}
	}
	return automaton.Allows(mask(), token.Return)
}

func quantiles(took []time.Duration) string {
	if len(took) == 0 {
		return "-"
	}
	slices.Sort(took)
	at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))] }
	return fmt.Sprintf("p50 %v, p99 %v, max %v", at(0.5), at(0.99), at(1))
}

func TestMaskBench(t *testing.T) {
	const own = "testdata/maskbench"
	folder := cmp.Or(os.Getenv("OSSRUN_MASKBENCH"), own)
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s holds no files: %v", folder, err)
	}
	automaton.Prepare()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b := benchTable{obstacles: map[string]int{}}
	for _, path := range paths {
		began := hosttest.ThreadTime()
		b.file(t, path)
		if took := hosttest.ThreadTime() - began; took > time.Second {
			b.faults = append(b.faults, fmt.Sprintf("%s: took %v in all", filepath.Base(path), took))
		}
	}
	slices.Sort(b.faults)
	t.Logf("%d schemas: covered %d (%.1f %%), refused %d, false accepts %d, false rejects %d",
		b.files, b.covered, 100*float64(b.covered)/float64(b.files), b.refused, b.falseAccepts,
		b.falseRejects)
	t.Logf("mask: %s (%s); compile: %s (%s)", quantiles(b.masks), b.slowMask,
		quantiles(b.compiles), b.slowCompile)
	keys := slices.SortedFunc(maps.Keys(b.obstacles), func(x, y string) int {
		return cmp.Or(b.obstacles[y]-b.obstacles[x], strings.Compare(x, y))
	})
	for _, k := range keys {
		t.Logf("%6d refused for %s", b.obstacles[k], k)
	}
	for _, f := range b.faults {
		t.Log(f)
	}
	if folder == own && (b.covered != 6 || b.refused != 1 || b.falseAccepts+b.falseRejects > 0) {
		t.Error("our own files are not covered")
	}
}
