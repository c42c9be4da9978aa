package enginetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A rig is a program of a few operations on random data: it owns the memory that an Engine would
// own, and lets a test write and read any buffer.
type rig struct {
	dev  engine.Device
	p    *engine.Program
	rand *rand.Rand
	rows int // rows of the step under test; the program has room for more

	step    engine.Step
	regions []engine.Region
	weights map[*engine.Buffer]engine.Region
	inputs  []input
	batch   *engine.Batch
	clean   map[int32]bool // pages of the cache that are NaN
	logits  []float32
}

// input is data that is written once the memory is allocated.
type input struct {
	to   *engine.Buffer
	data []byte
}

// spare is how many more rows the program has than the step: they must stay untouched.
const spare = 3

func newRig(dev engine.Device, s models.Spec, o engine.Settings, rows int, name string) (*rig,
	error) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %+v %d", name, s, rows)
	o.Pages = 4 * (s.MaxPosition/engine.PageTokens + 1)
	p, err := engine.NewProgram(s, o, rows+spare)
	if err != nil {
		return nil, err
	}
	return &rig{dev: dev, p: p, rows: rows, rand: rand.New(rand.NewPCG(h.Sum64(), 1)),
		weights: map[*engine.Buffer]engine.Region{}}, nil
}

// normal are n random values around 0.
func (r *rig) normal(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.rand.NormFloat64())
	}
	return v
}

// tensor is a bf16 matrix that the test can read.
type tensor struct {
	data  []byte
	width int
}

func (t tensor) at(row, column int) float64 {
	return fromBF16(binary.LittleEndian.Uint16(t.data[2*(row*t.width+column):]))
}

// row decodes one row.
func (t tensor) row(i int) []float64 {
	v := make([]float64, t.width)
	for j := range v {
		v[j] = t.at(i, j)
	}
	return v
}

// weight makes a random bf16 tensor of values between 0.5 and 2 and their negatives.
func (r *rig) weight(name string, rows, width int) (*engine.Buffer, tensor) {
	t := tensor{make([]byte, 2*rows*width), width}
	for i := range rows * width {
		bits := r.rand.Uint32()
		// sign and mantissa of any kind, size 0.5 to 2
		binary.LittleEndian.PutUint16(t.data[2*i:], uint16(bits&0x807f|0x3f00|bits>>8&0x80))
	}
	return r.upload(name, engine.BF16, rows, width, t.data), t
}

// bytes makes a random U8 tensor; value draws one byte.
func (r *rig) bytes(name string, rows, width int, value func() byte) (*engine.Buffer, []byte) {
	data := make([]byte, rows*width)
	for i := range data {
		data[i] = value()
	}
	return r.upload(name, engine.U8, rows, width, data), data
}

// upload places a tensor at an address that is odd, as safetensors allows.
func (r *rig) upload(name string, t engine.Type, rows, width int, data []byte) *engine.Buffer {
	b := r.p.Weight(name, t, rows, width)
	odd := append(make([]byte, 1, len(data)+1), data...)
	region, err := r.dev.Upload(odd[1:])
	if err == nil {
		r.weights[b] = region
		r.regions = append(r.regions, region)
	}
	return b // a failed upload shows in prepare, as a buffer without memory
}

// fill makes a scratch buffer and gives its first rows these values; the rest stays NaN.
func (r *rig) fill(name string, e engine.Extent, width int, values []float32) *engine.Buffer {
	b := r.p.Scratch(name, engine.F32, e, width)
	r.set(b, values)
	return b
}

func (r *rig) set(b *engine.Buffer, values []float32) {
	r.inputs = append(r.inputs, input{b, encodeFloats(values)})
}

// prepare lays out memory, all of it NaN, writes the inputs and compiles.
func (r *rig) prepare() error {
	if r.step != nil {
		return nil
	}
	if err := r.p.Check(); err != nil {
		return err
	}
	arena, err := r.poisoned(max(r.p.Layout(), 1))
	if err != nil {
		return err
	}
	for _, b := range r.p.Buffers {
		switch b.Home {
		case engine.Scratch:
			b.Region = arena
		case engine.Weight:
			b.Region = r.weights[b]
		case engine.Cache:
			if b.Region, err = r.poisoned(r.p.BytesOf(b)); err != nil {
				return err
			}
		}
	}
	for _, in := range r.inputs {
		if err := in.to.Region.Write(in.to.Offset, in.data); err != nil {
			return err
		}
	}
	r.step, err = r.dev.Compile(r.p)
	return err
}

// poisoned is memory full of NaN, in f32 as in bf16.
func (r *rig) poisoned(bytes int64) (engine.Region, error) {
	region, err := r.dev.Alloc(bytes)
	if err != nil {
		return nil, err
	}
	r.regions = append(r.regions, region)
	return region, Poison(region, 0, bytes)
}

// Poison fills part of a region with 0xff: NaN as f32 and as bf16, -1 as i32.
func Poison(region engine.Region, offset, bytes int64) error {
	ff := make([]byte, min(bytes, 1<<20))
	for i := range ff {
		ff[i] = 0xff
	}
	for end := offset + bytes; offset < end; {
		n := min(end-offset, int64(len(ff)))
		if err := region.Write(offset, ff[:n]); err != nil {
			return err
		}
		offset += n
	}
	return nil
}

// run runs the program on a batch, which is kept: time runs it again.
func (r *rig) run(b *engine.Batch) error {
	if err := r.prepare(); err != nil {
		return err
	}
	if err := b.Check(r.p.Spec, r.p.Rows, r.p.Settings.Pages); err != nil {
		return fmt.Errorf("the suite made a bad batch: %w", err)
	}
	r.batch = b
	r.logits = make([]float32, len(b.LogitRows)*r.p.Spec.Vocab)
	return r.step.Forward(b, r.logits, nil)
}

// read is a buffer's first rows, and checks that the rows after them are as they were before the
// step.
func (r *rig) read(b *engine.Buffer, rows int) ([]byte, error) {
	row := int64(b.Width) * b.Type.Size()
	data := make([]byte, r.p.BytesOf(b))
	if err := b.Region.Read(b.Offset, data); err != nil {
		return nil, err
	}
	for i, v := range data[int64(rows)*row:] {
		if v != 0xff {
			return nil, fmt.Errorf("%s: the step of %d rows wrote into row %d", b.Name, rows,
				int64(rows)+int64(i)/row)
		}
	}
	return data[:int64(rows)*row], nil
}

func (r *rig) floats(b *engine.Buffer, rows int) ([]float32, error) {
	data, err := r.read(b, rows)
	return decodeFloats(data), err
}

func (r *rig) ints(b *engine.Buffer, rows int) ([]int32, error) {
	data, err := r.read(b, rows)
	v := make([]int32, len(data)/4)
	for i := range v {
		v[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v, err
}

func (r *rig) close() error {
	var errs []error
	if r.step != nil {
		errs = append(errs, r.step.Close())
	}
	for _, region := range r.regions {
		errs = append(errs, region.Free())
	}
	return errors.Join(errs...)
}

// plainBatch is the step's rows as a few sequences, with logits asked for some rows, out of order
// and one of them twice.
func (r *rig) plainBatch() *engine.Batch {
	b := &engine.Batch{}
	// page 0 everywhere: nothing here looks into the cache
	table := make([]int32, r.p.Spec.MaxPosition/engine.PageTokens+1)
	for left := r.rows; left > 0; {
		n := min(left, 1+r.rand.IntN(r.rows/2+1))
		start := r.rand.IntN(r.p.Spec.MaxPosition - n + 1)
		b.Seqs = append(b.Seqs, engine.SeqRows{Start: int32(start), Rows: int32(n), Full: table,
			Window: table})
		left -= n
	}
	for range r.rows {
		b.Tokens = append(b.Tokens, int32(r.rand.IntN(r.p.Spec.Vocab)))
	}
	for i := r.rows - 1; i >= 0; i -= 2 {
		b.LogitRows = append(b.LogitRows, int32(i))
	}
	if r.rows > 1 {
		b.LogitRows = append(b.LogitRows, b.LogitRows[0])
	}
	return b
}

func decodeFloats(data []byte) []float32 {
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}

func encodeFloats(values []float32) []byte {
	data := make([]byte, 0, 4*len(values))
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}
