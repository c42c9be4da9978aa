package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Every operation alone.

// Shape is what an operation is tried on.
type Shape struct {
	Name string
	Spec models.Spec
	Rows int // of the step
}

// shape leaves out what no operation looks at.
func shape(name string, rows, hidden, intermediate, heads, kvHeads, dim, experts, top,
	vocab int) Shape {
	return Shape{name, models.Spec{Name: "shape", Layers: 4, Hidden: hidden,
		Intermediate: intermediate, Heads: heads, KVHeads: kvHeads, HeadDim: dim,
		Experts: experts, ExpertsPerToken: top, Vocab: vocab, Window: 128, MaxPosition: 700,
		RopeTheta: 150000, RopeFactor: 32,
		RopeBetaFast: 32, RopeBetaSlow: 1, RopeOriginal: 4096, SwigluLimit: 7, NormEps: 1e-5}, rows}
}

// Small are shapes that end in the middle of every tile: for correctness.
func Small() []Shape {
	return []Shape{
		shape("one row", 1, 64, 32, 2, 1, 64, 4, 2, 50),
		shape("three rows", 3, 96, 160, 8, 2, 64, 5, 4, 131),
		shape("one expert", 2, 32, 32, 1, 1, 32, 1, 1, 1),
		shape("wide group", 7, 128, 64, 16, 1, 64, 16, 3, 65),
		shape("many rows", 70, 160, 96, 4, 4, 32, 6, 2, 77),
		shape("more rows than a chunk of slots", 133, 64, 64, 4, 2, 64, 3, 2, 40),
	}
}

// Published is the width of the published models, with few experts and a short vocabulary: for
// speed, and for sums as long as the real ones. Its matrices are larger than most caches; attention
// and the row-wise operations are too small to say anything about memory.
func Published(rows int) Shape {
	return shape(fmt.Sprintf("published width, %d rows", rows), rows, 2880, 2880, 64, 8, 64, 8, 4,
		16384)
}

// OpResult is one operation on one shape.
type OpResult struct {
	Op      string
	Kind    engine.Kind
	Shape   string
	Error   float64 // worst, relative to the size of the terms; 0 for bit-equal
	Bound   float64
	Bytes   int64         // the least the operation has to move
	Flops   int64         // that its matrices multiply and add
	Time    time.Duration // best of a few runs
	Failure error         // what went wrong; nil: passed
	Skipped string        // why the device did not run it; "": it did
}

// GBs is the bandwidth the operation reached, in GB/s.
func (r OpResult) GBs() float64 {
	if r.Time <= 0 {
		return 0
	}
	return float64(r.Bytes) / r.Time.Seconds() / 1e9
}

// TFLOPs is the rate that the operation's matrices reached.
func (r OpResult) TFLOPs() float64 {
	if r.Time <= 0 {
		return 0
	}
	return float64(r.Flops) / r.Time.Seconds() / 1e12
}

// opTest records, runs and compares: it returns the worst error.
type opTest struct {
	name  string
	kind  engine.Kind
	bound float64
	run   func(*rig) (float64, error)
}

// unitSlack is by how much more a card may be off: its matrix unit cuts the sums that a processor
// rounds. Products of published widths were 1.3e-6 off on an H100.
const unitSlack = 2

var opTests = []opTest{
	{"embed", engine.Embed, 0, testEmbed},
	{"angles", engine.Angles, 3e-7, testAngles},
	{"norm", engine.Norm, 1e-6, testNorm},
	{"linear", engine.Linear, 1e-6, testLinear},
	{"linear in three parts", engine.Linear, 1e-6, testLinearParts},
	{"linear, added", engine.Linear, 1e-6, testLinearAdd},
	{"unembed", engine.Linear, 1e-6, testUnembed},
	{"linear, 8 bit", engine.LinearQ8, 1e-6, testLinearQ8},
	{"linear, parts, 8 bit", engine.LinearQ8, 1e-6, testLinearQ8Parts},
	{"linear, added, 8 bit", engine.LinearQ8, 1e-6, testLinearQ8Add},
	{"unembed, 8 bit", engine.LinearQ8, 1e-6, testUnembedQ8},
	{"linear, 8 bit, from 8", engine.LinearQ8, 1e-6, testLinearQ8In8},
	{"unembed, 8 bit, from 8", engine.LinearQ8, 1e-6, testUnembedQ8In8},
	{"rope", engine.Rope, 3e-7, testRope},
	{"attend, full", engine.Attend, 3e-6,
		func(r *rig) (float64, error) { return testAttend(r, 3) }},
	{"attend, window", engine.Attend, 3e-6,
		func(r *rig) (float64, error) { return testAttend(r, 2) }},
	{"route", engine.Route, 1e-6, testRoute},
	{"route, ties", engine.Route, 1e-6, testRouteTies},
	{"gate_up", engine.GateUp, 1e-6, func(r *rig) (float64, error) { return testGateUp(r, false) }},
	{"gate_up, 8 bit", engine.GateUp, 1e-5,
		func(r *rig) (float64, error) { return testGateUp(r, true) }},
	{"down", engine.Down, 1e-6, func(r *rig) (float64, error) { return testDown(r, false) }},
	{"down, 8 bit", engine.Down, 1e-5, func(r *rig) (float64, error) { return testDown(r, true) }},
	{"combine", engine.Combine, 1e-6, testCombine},
	{"gather", engine.Gather, 0, testGather},
	{"tap", engine.Tap, 0, testTap},
}

// fp8Tests are the operations on an 8-bit cache. If the options leave the cache type open, a device
// that has such a cache must pass them too.
var fp8Tests = []opTest{
	{"attend, full, 8 bit", engine.Attend, 3e-6,
		func(r *rig) (float64, error) { return testAttend(r, 3) }},
	// in the twin
	{"attend, window, 8 bit", engine.Attend, 3e-6,
		func(r *rig) (float64, error) { return testAttend(r, 2) }},
}

// Ops runs every operation, one after the other, on all shapes and then on those at which it runs a
// few more times and is timed, and reports each; the error joins those that failed. Operations for
// which a device says that it has no kernels are reported as skipped.
func Ops(ctx context.Context, dev engine.Device, o engine.Settings, shapes, timed []Shape,
	report func(OpResult)) error {
	var errs []error
	tests := opTests
	if o.KVCacheDtype == "" {
		tests = slices.Concat(opTests, fp8Tests)
	}
	for i, test := range tests {
		with := o
		if i >= len(opTests) {
			with.KVCacheDtype = engine.KVFP8
		}
		for j, s := range slices.Concat(shapes, timed) {
			if err := ctx.Err(); err != nil {
				return err
			}
			r := runOp(dev, with, s, test, j >= len(shapes))
			if r.Failure != nil {
				errs = append(errs, fmt.Errorf("%s, %s: %w", r.Op, r.Shape, r.Failure))
			}
			report(r)
		}
	}
	return errors.Join(errs...)
}

func runOp(dev engine.Device, o engine.Settings, s Shape, test opTest,
	timing bool) (result OpResult) {
	if dev.Caps().Discrete {
		test.bound *= unitSlack
	}
	result = OpResult{Op: test.name, Kind: test.kind, Shape: s.Name, Bound: test.bound}
	if test.kind == engine.LinearQ8 && !dev.Caps().DenseQ8 {
		result.Skipped = "no kernels for dense weights in 8 bits"
		return result
	}
	if o.KVCacheDtype == engine.KVFP8 && !dev.Caps().FP8KV {
		result.Skipped = "no kernels for KV pages in 8 bits"
		return result
	}
	r, err := newRig(dev, s.Spec, o, s.Rows, test.name)
	if err != nil {
		result.Failure = err
		return result
	}
	defer func() { result.Failure = errors.Join(result.Failure, r.close()) }()
	result.Error, result.Failure = test.run(r)
	if result.Failure == nil && !(result.Error <= test.bound) {
		result.Failure = fmt.Errorf("error %.3g, allowed %.3g", result.Error, test.bound)
	}
	if result.Failure == nil && timing {
		result.Time, result.Bytes, result.Flops, result.Failure = r.time(test.kind)
	}
	return result
}

// time runs the step again and takes the best time of the last operation of this kind.
func (r *rig) time(kind engine.Kind) (best time.Duration, bytes, flops int64, err error) {
	if err := r.batch.Check(r.p.Spec, r.p.Rows, r.p.Settings.Pages); err != nil {
		return 0, 0, 0, fmt.Errorf("the suite spoilt its batch: %w", err)
	}
	at, times := 0, make([]int64, len(r.p.Ops))
	for i, op := range r.p.Ops {
		if op.Kind == kind {
			at = i
		}
	}
	for range 5 {
		if err := r.step.Forward(r.batch, r.logits, times); err != nil {
			return 0, 0, 0, err
		}
		if t := time.Duration(times[at]); best == 0 || t < best {
			best = t
		}
	}
	work := r.p.WorkOf(r.batch)
	if groups := r.p.Buffer("groups"); groups != nil {
		var active [4]byte
		if err := groups.Region.Read(groups.Offset, active[:]); err != nil {
			return 0, 0, 0, err
		}
		work.Experts = int(active[0]) | int(active[1])<<8
	}
	return best, r.p.Bytes(r.p.Ops[at], work), r.p.Flops(r.p.Ops[at], work), nil
}

// worst is the largest |got - want| / size, and +Inf where got is no number.
type worst float64

func (w *worst) add(got float32, want, size float64) {
	e := math.Abs(float64(got)-want) / size
	if math.IsNaN(e) {
		e = math.Inf(1)
	}
	*w = worst(math.Max(float64(*w), e))
}

func testEmbed(r *rig) (float64, error) {
	s := r.p.Spec
	x := r.p.Scratch("x", engine.F32, engine.PerRow, s.Hidden)
	w, values := r.weight("w", s.Vocab, s.Hidden)
	r.p.Embed(x, w)
	b := r.plainBatch()
	got, err := r.after(b, x, r.rows)
	if err != nil {
		return 0, err
	}
	var e worst
	for row, token := range b.Tokens {
		for i, v := range values.row(int(token)) {
			e.add(got[row*s.Hidden+i], v, 1)
		}
	}
	return float64(e), nil
}

// after runs a batch and reads rows of a float32 buffer.
func (r *rig) after(b *engine.Batch, out *engine.Buffer, rows int) ([]float32, error) {
	if err := r.run(b); err != nil {
		return nil, err
	}
	return r.floats(out, rows)
}

func testAngles(r *rig) (float64, error) {
	s := r.p.Spec
	a := r.p.Scratch("a", engine.F32, engine.PerRow, s.HeadDim)
	r.p.Angles(a)
	b := r.plainBatch()
	got, err := r.after(b, a, r.rows)
	if err != nil {
		return 0, err
	}
	frequencies, scale := models.Frequencies(s)
	var e worst
	row := 0
	for _, q := range b.Seqs {
		for i := range q.Rows {
			for j, f := range frequencies {
				angle := float64(float32(q.Start+i) * f) // the rounding is part of the definition
				e.add(got[row*s.HeadDim+j], math.Cos(angle)*float64(scale), 1)
				e.add(got[row*s.HeadDim+len(frequencies)+j], math.Sin(angle)*float64(scale), 1)
			}
			row++
		}
	}
	return float64(e), nil
}

func testNorm(r *rig) (float64, error) {
	s := r.p.Spec
	var e worst
	in := r.normal(r.rows * s.Hidden)
	for i := range min(s.Hidden, len(in)) {
		in[i] *= 1e-3 // the first row is so small that eps counts
	}
	x, y := r.fill("x", engine.PerRow, s.Hidden, in), r.p.Scratch("y", engine.F32, engine.PerRow,
		s.Hidden)
	w, wv := r.weight("w", 1, s.Hidden)
	r.p.Norm("apart", y, x, w)
	r.p.Norm("in place", x, x, w)
	got, err := r.after(r.plainBatch(), y, r.rows)
	if err != nil {
		return 0, err
	}
	same, err := r.floats(x, r.rows)
	for row := range r.rows {
		want := rmsNorm(wide(in[row*s.Hidden:][:s.Hidden]), wv.row(0), float64(s.NormEps))
		for i, v := range want {
			e.add(got[row*s.Hidden+i], v, math.Abs(v)+1e-30)
			e.add(same[row*s.Hidden+i], v, math.Abs(v)+1e-30)
		}
	}
	return float64(e), err
}

// matrix is a random Linear part.
func (r *rig) matrix(name string, n, k int, bias bool) (engine.Matrix, reference) {
	w, wv := r.weight(name, n, k)
	m := engine.Matrix{Weight: w}
	add := make([]float64, n)
	if bias {
		var bv tensor
		m.Bias, bv = r.weight(name+".bias", 1, n)
		add = bv.row(0)
	}
	return m, func(x []float64, row int) (float64, float64) { return dot(wv.row(row), x, add[row]) }
}

func testLinear(r *rig) (float64, error) { return r.linear(false, r.p.Spec.Hidden+5) }

func testLinearAdd(r *rig) (float64, error) { return r.linear(true, r.p.Spec.Hidden) }

func testLinearParts(r *rig) (float64, error) {
	s := r.p.Spec
	return r.linear(false, s.Heads*s.HeadDim, s.KVHeads*s.HeadDim+1, 3)
}

func (r *rig) linear(add bool, sizes ...int) (float64, error) {
	s := r.p.Spec
	n := 0
	var parts []engine.Matrix
	var refs []reference
	for i, size := range sizes {
		m, ref := r.matrix(fmt.Sprintf("w%d", i), size, s.Hidden, i != 1)
		parts, refs, n = append(parts, m), append(refs, ref), n+size
	}
	in := r.normal(r.rows * s.Hidden)
	x, y := r.fill("x", engine.PerRow, s.Hidden, in), r.p.Scratch("y", engine.F32, engine.PerRow, n)
	before := make([]float32, r.rows*n)
	if add {
		before = r.normal(r.rows * n)
		r.set(y, before)
		r.p.Linear("add", y, x, parts[0]).Add = true
	} else {
		r.p.Linear("plain", y, x, parts...)
	}
	return r.compareSums(y, before, in, wide, sizes, refs)
}

// reference is what a matrix's row makes of an input, and the size of the summands.
type reference = func(x []float64, row int) (sum, size float64)

// compareSums runs the program and compares y with the matrices' references, added to what was
// there before. The references are given what the device sees of the input.
func (r *rig) compareSums(y *engine.Buffer, before, in []float32, seen func([]float32) []float64,
	sizes []int, refs []reference) (float64, error) {
	got, err := r.after(r.plainBatch(), y, r.rows)
	if err != nil {
		return 0, err
	}
	var e worst
	column, hidden := 0, r.p.Spec.Hidden
	for row := range r.rows {
		xs := seen(in[row*hidden:][:hidden])
		for i, ref := range refs {
			for j := range sizes[i] {
				want, size := ref(xs, j)
				e.add(got[column], want+float64(before[column]), size+
					math.Abs(float64(before[column])))
				column++
			}
		}
	}
	return float64(e), nil
}

func testUnembed(r *rig) (float64, error) {
	s := r.p.Spec
	m, ref := r.matrix("w", s.Vocab, s.Hidden, false)
	b := r.plainBatch()
	in := r.normal(len(b.LogitRows) * s.Hidden)
	x := r.fill("x", engine.PerLogit, s.Hidden, in)
	r.p.Linear("unembed", r.p.Logits(), x, m)
	return r.compareLogits(b, in, wide, ref)
}

// compareLogits runs the program and compares its logits with the reference.
func (r *rig) compareLogits(b *engine.Batch, in []float32, seen func([]float32) []float64,
	ref reference) (float64, error) {
	if err := r.run(b); err != nil {
		return 0, err
	}
	var e worst
	s := r.p.Spec
	for i := range b.LogitRows {
		xs := seen(in[i*s.Hidden:][:s.Hidden])
		for v := range s.Vocab {
			want, size := ref(xs, v)
			e.add(r.logits[i*s.Vocab+v], want, size)
		}
	}
	return float64(e), nil
}

func testRope(r *rig) (float64, error) {
	s := r.p.Spec
	width, turned := (s.Heads+2*s.KVHeads)*s.HeadDim, (s.Heads+s.KVHeads)*s.HeadDim
	in, angles := r.normal(r.rows*width), r.normal(r.rows*s.HeadDim)
	qkv, a := r.fill("qkv", engine.PerRow, width, in), r.fill("a", engine.PerRow, s.HeadDim, angles)
	r.p.Rope("rope", qkv, a)
	got, err := r.after(r.plainBatch(), qkv, r.rows)
	if err != nil {
		return 0, err
	}
	var e worst
	for row := range r.rows {
		x := wide(in[row*width:][:width])
		want, size := rotate(x[:turned], wide(angles[row*s.HeadDim:][:s.HeadDim]), s.HeadDim)
		for i, v := range want {
			e.add(got[row*width+i], v, size[i])
		}
		for i := turned; i < width; i++ {
			if got[row*width+i] != in[row*width+i] {
				return 0, errors.New("a value head was turned")
			}
		}
	}
	return float64(e), nil
}

func testGather(r *rig) (float64, error) {
	s := r.p.Spec
	in := r.normal(r.rows * s.Hidden)
	x, y := r.fill("x", engine.PerRow, s.Hidden, in), r.p.Scratch("y", engine.F32, engine.PerLogit,
		s.Hidden)
	r.p.Gather(y, x)
	b := r.plainBatch()
	got, err := r.after(b, y, len(b.LogitRows))
	var e worst
	for i := range got {
		e.add(got[i], float64(in[int(b.LogitRows[i/s.Hidden])*s.Hidden+i%s.Hidden]), 1)
	}
	return float64(e), err
}

func testTap(r *rig) (float64, error) {
	s := r.p.Spec
	r.p.Settings.Taps = []string{"x", "h"}
	rows, slots := r.normal(r.rows*s.Hidden), r.normal(r.rows*s.ExpertsPerToken*s.Intermediate)
	r.p.Tap("x", r.fill("x", engine.PerRow, s.Hidden, rows))
	r.p.Tap("h", r.fill("h", engine.PerSlot, s.Intermediate, slots))
	r.p.Tap("not asked for", r.p.Buffer("x"))
	if len(r.p.Ops) != 2 {
		return 0, fmt.Errorf("%d taps recorded, 2 were asked for", len(r.p.Ops))
	}
	x, err := r.after(r.plainBatch(), r.p.Buffer("tap.x"), r.rows)
	if err != nil {
		return 0, err
	}
	h, err := r.floats(r.p.Buffer("tap.h"), r.rows*s.ExpertsPerToken)
	if err == nil && (!slices.Equal(x, rows) || !slices.Equal(h, slots)) {
		err = errors.New("the copy differs")
	}
	return 0, err
}
