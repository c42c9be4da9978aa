package cpu

// #include <stdlib.h>
// #include "cpu.h"
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/ossrun/ossrun/runtime/engine"
)

// A step on the CPU: Compile turns a Program into a C++ tape, with one call for each operation, and
// each step flattens its batch into arrays.

type step struct {
	dev      *Device
	tape     *C.ossrun_tape
	threads  int
	unembeds bool // the last operations give the logits: not so in a part of a model

	// The batch as the tape reads it. These arrays grow to the largest batch seen and keep that
	// size.
	positions, tables, fullAt, windowAt []int32
	adapters                            []int32 // of Batch.AdapterRows; nil with one model
	prompts                             []uint8 // 1 for a row of a prompt; nil without tiles
	tiles                               bool
}

var _ engine.Step = (*step)(nil)

// Compile turns a program into a tape.
func (d *Device) Compile(p *engine.Program) (engine.Step, error) {
	isa, err := chooseISA(p.Settings.ISA)
	if err != nil {
		return nil, err
	}
	threads := d.threads
	if p.Settings.Threads > d.threads {
		return nil, fmt.Errorf("%d threads are asked for, the device was opened with %d",
			p.Settings.Threads, d.threads)
	}
	if p.Settings.Threads > 0 {
		threads = p.Settings.Threads
	}
	if p.Settings.Tiles && isa != tiles {
		return nil, fmt.Errorf("instruction set %s has no tiles", isa)
	}
	if err := fits(p); err != nil {
		return nil, err
	}
	if err := d.users.Use(); err != nil {
		return nil, err
	}
	name, shape := C.CString(isa), shapeOf(p)
	defer C.free(unsafe.Pointer(name))
	s := &step{dev: d, threads: threads, tiles: p.Settings.Tiles,
		tape: C.ossrun_tape_new(name, &shape)}
	if n := len(p.Settings.Adapters); n > 0 {
		s.adapters = make([]int32, 2*(n+2))
	}
	if err := s.build(p); err != nil {
		C.ossrun_tape_free(s.tape)
		d.users.Release()
		return nil, err
	}
	return s, nil
}

// fits refuses shapes that are too large for the kernels.
func fits(p *engine.Program) error {
	s := p.Spec
	switch {
	case s.HeadDim%32 != 0 || s.HeadDim > C.OSSRUN_MAX_HEAD_DIM:
		return fmt.Errorf("heads of %d are not a multiple of 32 up to %d", s.HeadDim,
			int(C.OSSRUN_MAX_HEAD_DIM))
	case s.KVHeads < 1 || s.Heads%s.KVHeads != 0 || s.Heads/s.KVHeads > C.OSSRUN_MAX_GROUP:
		return fmt.Errorf("%d heads on %d KV heads: at most %d may share one", s.Heads, s.KVHeads,
			int(C.OSSRUN_MAX_GROUP))
	case s.ExpertsPerToken < 1 || s.ExpertsPerToken > s.Experts:
		return fmt.Errorf("%d of %d experts", s.ExpertsPerToken, s.Experts)
	}
	return nil
}

func shapeOf(p *engine.Program) C.ossrun_shape {
	s := p.Spec
	shape := C.ossrun_shape{
		hidden: C.int64_t(s.Hidden), intermediate: C.int64_t(s.Intermediate),
		heads: C.int64_t(s.Heads), kv_heads: C.int64_t(s.KVHeads), head_dim: C.int64_t(s.HeadDim),
		experts: C.int64_t(s.Experts), experts_per_token: C.int64_t(s.ExpertsPerToken),
		page_tokens: engine.PageTokens, page_bytes: C.int64_t(p.PageBytes()),
	}
	if p.Settings.InEight() {
		shape.rounding = 1
	}
	switch p.Settings.KVCacheDtype {
	case "bf16":
		shape.kv = C.OSSRUN_KV_BF16
	case engine.KVFP8:
		shape.kv = C.OSSRUN_KV_F8
	}
	return shape
}

// build appends every operation. Pointers into regions are stored in C; the regions outlive the
// step.
func (s *step) build(p *engine.Program) error {
	if s.tape == nil {
		return fmt.Errorf("no memory for the step")
	}
	for i, op := range p.Ops {
		for _, b := range slices.Concat(op.Out, op.In, op.W) {
			if err := engine.Within(p, b,
				func(r *region) bool { return r.dev == s.dev }); err != nil {
				return fmt.Errorf("operation %d (%s): %w", i, op.Label, err)
			}
		}
		if !s.append(op) {
			return fmt.Errorf("operation %d (%s): no memory", i, op.Label)
		}
		if op.Kind == engine.Route && p.Settings.OnDisk {
			gateUp, down := expertsOf(p.Ops[i:])
			C.ossrun_on_disk(s.tape, &gateUp, &down)
		}
	}
	s.unembeds = p.Ops[len(p.Ops)-1].Out[0].Home == engine.Logits
	if C.ossrun_tape_seal(s.tape, C.int(s.threads)) == 0 {
		return fmt.Errorf("no memory for the step")
	}
	return nil
}

// append translates an operation into the C++ call for it.
func (s *step) append(op *engine.Op) bool {
	t := s.tape
	out := func(i int) unsafe.Pointer { return pointer(op.Out[i]) }
	in := func(i int) unsafe.Pointer { return pointer(op.In[i]) }
	w := func(i int) unsafe.Pointer { return pointer(op.W[i]) }
	adapter := C.int(-1)
	if op.Split {
		adapter = C.int(op.Adapter)
	}
	C.ossrun_tape_adapter(t, adapter)
	var ok C.int
	switch op.Kind {
	case engine.Embed:
		ok = C.ossrun_embed(t, f32(out(0)), bf16(w(0)))
	case engine.Angles:
		ok = C.ossrun_angles(t, f32(out(0)), f32(unsafe.Pointer(&op.Frequencies[0])),
			C.float(op.Scale))
	case engine.Norm:
		ok = C.ossrun_norm(t, extent(op.Out[0]), f32(out(0)), f32(in(0)), bf16(w(0)),
			C.int64_t(op.In[0].Width), C.float(op.Eps))
	case engine.Linear:
		ok = s.appendLinear(op)
	case engine.LinearQ8:
		ok = s.appendLinearQ8(op)
	case engine.Rope:
		ok = C.ossrun_rope(t, f32(out(0)), f32(in(0)))
	case engine.WriteKV:
		ok = C.ossrun_write_kv(t, out(0), f32(in(0)), C.int64_t(op.CacheLayer),
			C.int(min(op.Window, 1)), flag(op.Twin))
	case engine.Attend:
		sinks := make([]*C.uint16_t, len(op.W))
		for i := range sinks {
			sinks[i] = bf16(w(i))
		}
		ok = C.ossrun_attend(t, f32(out(0)), f32(in(0)), in(1), unsafe.SliceData(sinks),
			C.int(len(sinks)), C.int64_t(op.CacheLayer), C.int64_t(op.Window), flag(op.Twin),
			C.float(op.Scale))
	case engine.Route:
		ok = C.ossrun_route(t, i32(out(0)), f32(out(1)), i32(out(2)), i32(out(3)), f32(in(0)))
	case engine.Quantize:
		if op.Out[0].Type == engine.I16 {
			ok = C.ossrun_quantize_q12(t, extent(op.In[0]), i16(out(0)), f32(out(1)), f32(in(0)),
				C.int64_t(op.In[0].Width))
			break
		}
		ok = C.ossrun_quantize(t, extent(op.In[0]), (*C.int8_t)(out(0)), f32(out(1)), f32(in(0)),
			C.int64_t(op.In[0].Width))
	case engine.Round:
		var order *C.int32_t
		if len(op.In) == 2 {
			order = i32(in(1))
		}
		ok = C.ossrun_round(t, bf16(out(0)), C.int64_t(op.Out[0].Width), f32(in(0)),
			flag(op.In[0].Extent == engine.PerSlot), C.int64_t(op.In[0].Width), order)
	case engine.GateUp:
		x, q, d := activations(op)
		m := expertMatrix(op)
		ok = C.ossrun_gate_up(t, f32(out(0)), i32(in(0)), i32(in(1)), x, q, d, rounded(op, 4), &m,
			C.float(op.Limit))
	case engine.Down:
		x, q, d := activations(op)
		m := expertMatrix(op)
		ok = C.ossrun_down(t, f32(out(0)), i32(in(0)), i32(in(1)), x, q, d, rounded(op, 4), &m)
	case engine.Combine:
		ok = C.ossrun_combine(t, f32(out(0)), f32(in(0)), f32(in(1)))
	case engine.Gather:
		ok = C.ossrun_gather(t, f32(out(0)), f32(in(0)))
	case engine.Tap:
		ok = C.ossrun_copy(t, extent(op.In[0]), out(0), in(0),
			C.int64_t(int64(op.In[0].Width)*op.In[0].Type.Size()))
	}
	return ok != 0
}

func (s *step) appendLinear(op *engine.Op) C.int {
	var parts [C.OSSRUN_MAX_PARTS]C.ossrun_matrix
	count := len(op.W) / 2
	if count > len(parts) {
		return 0
	}
	for i := range count {
		parts[i] = C.ossrun_matrix{bf16(pointer(op.W[2*i])), bf16(pointer(op.W[2*i+1])),
			C.int64_t(op.W[2*i].Rows)}
	}
	return C.ossrun_linear(s.tape, extent(op.Out[0]), f32(pointer(op.Out[0])),
		f32(pointer(op.In[0])), rounded(op, 1), C.int64_t(op.In[0].Width), &parts[0], C.int(count),
		flag(op.Add))
}

// rounded is operand i, which is there with Settings.Tiles only.
func rounded(op *engine.Op, i int) (r C.ossrun_rounded) {
	if i < len(op.In) {
		r = C.ossrun_rounded{bf16(pointer(op.In[i])), C.int64_t(op.In[i].Width)}
	}
	return r
}

func (s *step) appendLinearQ8(op *engine.Op) C.int {
	var parts [C.OSSRUN_MAX_PARTS]C.ossrun_q8_matrix
	count := len(op.W) / 2
	if count > len(parts) {
		return 0
	}
	for i := range count {
		parts[i] = C.ossrun_q8_matrix{(*C.uint8_t)(pointer(op.W[2*i])), bf16(pointer(op.W[2*i+1])),
			C.int64_t(op.PartRows(i))}
	}
	rows, y, d, k := extent(op.Out[0]), f32(pointer(op.Out[0])), f32(pointer(op.In[1])),
		C.int64_t(op.In[0].Width)
	if op.In[0].Type == engine.I8 {
		return C.ossrun_linear_q8_q8(s.tape, rows, y, (*C.int8_t)(pointer(op.In[0])), d, k,
			&parts[0], C.int(count), flag(op.Add))
	}
	return C.ossrun_linear_q8(s.tape, rows, y, i16(pointer(op.In[0])), d, k, &parts[0],
		C.int(count), flag(op.Add))
}

// activations are an expert operation's inputs: float32, or 8 bits and scales.
func activations(op *engine.Op) (*C.float, *C.int8_t, *C.float) {
	if len(op.In) == 3 {
		return f32(pointer(op.In[2])), nil, nil
	}
	return nil, (*C.int8_t)(pointer(op.In[2])), f32(pointer(op.In[3]))
}

// expertsOf are the matrices of the layer whose experts ops[0] chooses.
func expertsOf(ops []*engine.Op) (gateUp, down C.ossrun_expert_matrix) {
	for _, op := range ops {
		switch op.Kind {
		case engine.GateUp:
			gateUp = expertMatrix(op)
		case engine.Down:
			return gateUp, expertMatrix(op)
		}
	}
	return gateUp, down
}

func expertMatrix(op *engine.Op) C.ossrun_expert_matrix {
	return C.ossrun_expert_matrix{(*C.uint8_t)(pointer(op.W[0])), (*C.uint8_t)(pointer(op.W[1])),
		bf16(pointer(op.W[2]))}
}

// pointer is a buffer's address; null for the caller's logits and for a missing bias.
func pointer(b *engine.Buffer) unsafe.Pointer {
	if b == nil || b.Home == engine.Logits {
		return nil
	}
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(b.Region.(*region).data)), b.Offset)
}

func flag(on bool) C.int {
	if on {
		return 1
	}
	return 0
}

func f32(p unsafe.Pointer) *C.float     { return (*C.float)(p) }
func i32(p unsafe.Pointer) *C.int32_t   { return (*C.int32_t)(p) }
func i16(p unsafe.Pointer) *C.int16_t   { return (*C.int16_t)(p) }
func bf16(p unsafe.Pointer) *C.uint16_t { return (*C.uint16_t)(p) }

func extent(b *engine.Buffer) C.ossrun_extent {
	switch b.Extent {
	case engine.PerSlot:
		return C.OSSRUN_PER_SLOT
	case engine.PerLogit:
		return C.OSSRUN_PER_LOGIT
	}
	return C.OSSRUN_PER_ROW
}

func (s *step) Forward(b *engine.Batch, logits []float32, times []int64) error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.tape == nil {
		return engine.ErrClosed
	}
	s.flatten(b)
	var adapterRows, adapterLogits []int32
	if s.adapters != nil {
		adapterRows, adapterLogits = b.AdapterRows(s.adapters)
	}
	C.ossrun_profile(s.tape, flag(times != nil))
	run := func(part C.ossrun_part, mask []uint64) {
		C.ossrun_step(s.dev.pool, s.tape, C.int(s.threads), part, C.int64_t(len(b.Tokens)),
			C.int64_t(len(b.LogitRows)),
			ints(b.Tokens), ints(s.positions), ints(s.tables), ints(s.fullAt), ints(s.windowAt),
			ints(b.Twins), ints(b.LogitRows), (*C.float)(unsafe.SliceData(logits)),
			(*C.uint64_t)(unsafe.SliceData(mask)), ints(adapterRows), ints(adapterLogits),
			(*C.uint8_t)(unsafe.SliceData(s.prompts)))
	}
	if b.LogitMask == nil || !s.unembeds {
		run(C.OSSRUN_WHOLE, nil)
	} else {
		run(C.OSSRUN_BODY, nil)
		mask := b.LogitMask()
		if 64*len(mask)*len(b.LogitRows) < len(logits) {
			mask = nil
		}
		run(C.OSSRUN_LOGITS, mask)
	}
	runtime.KeepAlive(s)
	if times != nil {
		C.ossrun_profile_read(s.tape, (*C.int64_t)(unsafe.SliceData(times)))
	}
	return nil
}

// flatten writes positions and block tables as arrays by row.
func (s *step) flatten(b *engine.Batch) {
	s.positions, s.tables, s.fullAt, s.windowAt = s.positions[:0], s.tables[:0], s.fullAt[:0],
		s.windowAt[:0]
	s.prompts = s.prompts[:0]
	for i := range b.Seqs {
		q := &b.Seqs[i]
		full := int32(len(s.tables))
		s.tables = append(s.tables, q.Full...)
		window := int32(len(s.tables))
		s.tables = append(s.tables, q.Window...)
		for r := range q.Rows {
			s.positions = append(s.positions, q.Start+r)
			s.fullAt = append(s.fullAt, full)
			s.windowAt = append(s.windowAt, window)
			if s.tiles {
				s.prompts = append(s.prompts, uint8(min(1, max(0, q.Prompt-r))))
			}
		}
	}
}

func ints(s []int32) *C.int32_t { return (*C.int32_t)(unsafe.SliceData(s)) }

func (s *step) Close() error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.tape != nil {
		C.ossrun_tape_free(s.tape)
		s.tape = nil
		s.dev.users.Release()
	}
	return nil
}
