package device

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Forms are believed on a card once they were seen to be right there. A small model of random weights goes through its phases one by one: each
// form runs, memory is put back, the plain kernels run, and what the two leave is compared. It takes a moment and little memory, so a program can do
// it before it loads a model. Fragment layouts are proved beside it, by a product of integers, which is exact or wrong.

// Proof is a form as it was found on this card.
type Proof struct {
	Form  Form    `json:"form"`
	Error float64 `json:"error"` // worst difference to the plain kernels, relative to the largest value of the buffer
	Bound float64 `json:"bound"` // what rounding may make of it
	OK    bool    `json:"ok"`
	Why   string  `json:"why,omitempty"` // what was wrong
}

// proofBound is what float32 sums of a few hundred terms in another order may differ by. A bf16 cache rounds to steps of 2^-8.
const proofBound = 2e-5

// Prove holds every form to the plain kernels, and takes those that are wrong out of use (Distrust). The error is about what could not be run.
func (d *Device) Prove(ctx context.Context) (list []Proof, err error) {
	layouts, err := d.proveMatrix()
	if err != nil {
		return nil, fmt.Errorf("multiply integers: %w", err)
	}
	found := map[Form]*Proof{}
	for _, x := range []struct {
		kv   string
		rows int
	}{{"f32", 4}, {"bf16", 4}, {"bf16", kernels.DecodeRows + 5}} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := d.prove(x.kv, x.rows, found); err != nil {
			return nil, fmt.Errorf("hold the kernels of %d rows to the plain ones: %w", x.rows, err)
		}
	}
	for _, f := range Forms() {
		p := found[f]
		if p == nil {
			continue // out of use before
		}
		p.OK = p.Error <= p.Bound
		if layouts != nil && slices.Contains([]Form{PrefillLinear, PrefillGateUp, PrefillDown}, f) {
			p.OK, p.Why = false, layouts.Error()
		}
		if !p.OK {
			d.Distrust(f)
		}
		list = append(list, *p)
	}
	return list, nil
}

// proofSpec has the published models' heads, and widths that end in the middle of every tile.
func proofSpec() models.Spec {
	s := models.Spec20B()
	s.Name, s.Layers, s.Hidden, s.Intermediate, s.Heads, s.KVHeads = "proof", 2, 160, 96, 8, 2
	s.Experts, s.ExpertsPerToken, s.Vocab, s.MaxPosition = 6, 3, 200, 600
	return s
}

// prover is a small model's memory, and its program compiled both ways.
type prover struct {
	d             *Device
	p             *engine.Program
	arena, cache  engine.Region
	regions       []engine.Region
	formed, plain *step
	batch         *engine.Batch
	arenaAt, kvAt []byte // as they were before a phase
	ckpt          *models.Checkpoint
	found         map[Form]*Proof
}

func (d *Device) prove(kv string, rows int, found map[Form]*Proof) (err error) {
	v := &prover{d: d, found: found}
	defer func() { err = errors.Join(err, v.close()) }()
	if err := v.open(kv, rows); err != nil {
		return err
	}
	return v.compare()
}

// open makes the model and fills its cache with random keys and values.
func (v *prover) open(kv string, rows int) (err error) {
	spec := proofSpec()
	v.batch = proofBatch(spec, rows-1)
	pages := 0
	for _, q := range v.batch.Seqs {
		pages += len(q.Full)
	}
	if v.ckpt, err = models.Synthetic(spec, 1); err != nil {
		return err
	}
	if v.p, err = engine.Record(spec, engine.Options{KV: kv, Pages: pages, MaxRows: rows}, rows); err != nil {
		return err
	}
	alloc := func(bytes int64) (engine.Region, error) {
		r, err := v.d.Alloc(bytes)
		if err == nil {
			v.regions = append(v.regions, r)
		}
		return r, err
	}
	if v.arena, err = alloc(v.p.Layout()); err != nil {
		return err
	}
	if v.cache, err = alloc(v.p.BytesOf(v.p.KV())); err != nil {
		return err
	}
	if err := v.cache.Write(0, randomCache(v.p.KV().Type, v.cache.Bytes())); err != nil {
		return err
	}
	for _, b := range v.p.Buffers {
		switch b.Home {
		case engine.Scratch:
			b.Region = v.arena
		case engine.Cache:
			b.Region = v.cache
		case engine.Weight:
			if b.Region, err = v.d.Upload(v.ckpt.Tensor(b.Name).Data); err != nil {
				return err
			}
			v.regions = append(v.regions, b.Region)
		}
	}
	if v.formed, err = v.d.compile(v.p, false); err != nil {
		return err
	}
	v.plain, err = v.d.compile(v.p, true)
	return err
}

// randomCache is normal values of a cache's type.
func randomCache(t engine.Type, bytes int64) []byte {
	random := rand.New(rand.NewPCG(3, 3))
	data := make([]byte, 0, bytes)
	for int64(len(data)) < bytes {
		bits := math.Float32bits(float32(random.NormFloat64()))
		if t == engine.BF16 {
			data = binary.NativeEndian.AppendUint16(data, uint16(bits>>16))
		} else {
			data = binary.NativeEndian.AppendUint32(data, bits)
		}
	}
	return data
}

// proofBatch is rows of two sequences: one behind a context that is cut into several runs, one from its beginning on.
func proofBatch(s models.Spec, rows int) *engine.Batch {
	b := &engine.Batch{}
	var table freshPages
	first := rows/2 + 1
	for _, q := range []struct{ start, rows int }{{s.MaxPosition - first - 3, first}, {0, rows - first}} {
		n := (q.start + q.rows + engine.PageTokens - 1) / engine.PageTokens
		pages := table.next(n)
		b.Seqs = append(b.Seqs, engine.SeqRows{Start: int32(q.start), Rows: int32(q.rows), Full: pages, Window: pages})
	}
	for i := range rows {
		b.Tokens = append(b.Tokens, int32(i*37%s.Vocab))
		b.LogitRows = append(b.LogitRows, int32(rows-1-i))
	}
	return b
}

// compare walks the program. Each phase begins with what the plain kernels left.
func (v *prover) compare() error {
	if err := v.locked(func() error { return errors.Join(v.plain.sendState(v.batch, nil), v.formed.sendState(v.batch, nil)) }); err != nil {
		return err
	}
	for i, ph := range v.formed.phases {
		var got [][]byte
		if ph.form != "" {
			if err := v.keep(); err != nil {
				return err
			}
			if err := v.locked(func() error { return v.formed.launch(i) }); err != nil {
				return fmt.Errorf("%s: %w", ph.form, err)
			}
			var err error
			if got, err = v.read(ph.leaves); err != nil {
				return err
			}
			if err := v.putBack(); err != nil {
				return err
			}
		}
		for j := ph.from; j < ph.to; j++ {
			if err := v.locked(func() error { return v.plain.launch(j) }); err != nil {
				return err
			}
		}
		if ph.form == "" {
			continue
		}
		want, err := v.read(ph.leaves)
		if err != nil {
			return err
		}
		for n, b := range ph.leaves {
			v.note(ph.form, b, want[n], got[n])
		}
	}
	return nil
}

// locked queues work and waits for it.
func (v *prover) locked(queue func() error) error {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	return errors.Join(queue(), v.d.stream.Synchronize())
}

// keep and putBack are of all memory that an operation may write.
func (v *prover) keep() error {
	v.arenaAt, v.kvAt = make([]byte, v.arena.Bytes()), make([]byte, v.cache.Bytes())
	return errors.Join(v.arena.Read(0, v.arenaAt), v.cache.Read(0, v.kvAt))
}

func (v *prover) putBack() error {
	return errors.Join(v.arena.Write(0, v.arenaAt), v.cache.Write(0, v.kvAt))
}

// read is what buffers hold of the live rows.
func (v *prover) read(buffers []*engine.Buffer) (all [][]byte, err error) {
	rows := len(v.batch.Tokens)
	for _, b := range buffers {
		n := v.p.BytesOf(b)
		switch b.Extent {
		case engine.PerRow, engine.PerLogit:
			n = int64(rows) * int64(b.Width) * b.Type.Size()
		case engine.PerSlot:
			n = int64(rows*v.p.Spec.ExpertsPerToken) * int64(b.Width) * b.Type.Size()
		}
		data := make([]byte, n)
		from, at := b.Region, b.Offset
		if b.Home == engine.Logits {
			from, at = v.formed.logits, 0
		}
		if err := from.Read(at, data); err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

// note adds a buffer's difference to what is known of a form.
func (v *prover) note(f Form, b *engine.Buffer, want, got []byte) {
	p := v.found[f]
	if p == nil {
		p = &Proof{Form: f, Bound: proofBound}
		v.found[f] = p
	}
	e := difference(b.Type, want, got)
	if b.Type == engine.BF16 {
		e *= proofBound * 256 // a step of bf16 counts as the bound
	}
	if !(e <= p.Bound) && p.Why == "" {
		p.Why = fmt.Sprintf("%s differs from what the plain kernels leave, by %.2g of its largest value, in a step of %d rows", b.Name, e, len(v.batch.Tokens))
	}
	if math.IsNaN(e) || e > p.Error {
		p.Error = e
	}
}

// difference is the largest between two buffers, relative to the largest value; integers are equal or off by everything.
func difference(t engine.Type, want, got []byte) float64 {
	if t != engine.F32 && t != engine.BF16 {
		if slices.Equal(want, got) {
			return 0
		}
		return math.Inf(1)
	}
	size := int(t.Size())
	value := func(data []byte, i int) float64 {
		if size == 2 {
			return float64(math.Float32frombits(uint32(binary.NativeEndian.Uint16(data[2*i:])) << 16))
		}
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(data[4*i:])))
	}
	var most, off float64
	for i := range len(want) / size {
		a, b := value(want, i), value(got, i)
		if math.IsNaN(a) != math.IsNaN(b) || math.IsInf(b-a, 0) {
			return math.Inf(1)
		}
		if math.IsNaN(a) {
			continue
		}
		most, off = math.Max(most, math.Abs(a)), math.Max(off, math.Abs(a-b))
	}
	if off == 0 {
		return 0
	}
	return off / most
}

func (v *prover) close() error {
	var errs []error
	for _, s := range []*step{v.formed, v.plain} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	for _, r := range v.regions {
		errs = append(errs, r.Free())
	}
	if v.ckpt != nil {
		errs = append(errs, v.ckpt.Close())
	}
	return errors.Join(errs...)
}

// proveMatrix multiplies integers by the matrix unit. wrong says that the fragments do not lie where the kernels believe; err that it did not run.
func (d *Device) proveMatrix() (wrong, err error) {
	const n = 16
	r, err := d.alloc(n*n*4 + 2*n*n*2)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Free()) }()
	var a, b [n * n]int
	operands := make([]byte, 0, 2*n*n*2)
	for i := range a {
		a[i], b[i] = i*7%31-15, i*i%29-14 // no two rows or columns are alike
	}
	for _, v := range slices.Concat(a[:], b[:]) {
		operands = binary.NativeEndian.AppendUint16(operands, uint16(math.Float32bits(float32(v))>>16))
	}
	if err := r.Write(n*n*4, operands); err != nil {
		return nil, err
	}
	at := kernels.Pointer(r.at)
	one, err := (&recorder{dev: d}).ready(d.target.MatrixProof(at, at+n*n*4, at+n*n*4+n*n*2))
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	err = d.stream.Launch(one.function, one.shape, one.args)
	if err == nil {
		err = d.stream.Synchronize()
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	sums := make([]byte, n*n*4)
	if err := r.Read(0, sums); err != nil {
		return nil, err
	}
	for i := range n {
		for j := range n {
			want := 0
			for k := range n {
				want += a[i*n+k] * b[j*n+k]
			}
			if got := math.Float32frombits(binary.NativeEndian.Uint32(sums[4*(i*n+j):])); got != float32(want) {
				return fmt.Errorf("a product of integers is wrong at row %d, column %d: %v, not %d: the fragments lie elsewhere on this card", i, j, got, want), nil
			}
		}
	}
	return nil, nil
}
