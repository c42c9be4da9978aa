package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/kv"
)

// Measures the card: the bandwidth of its memory, the speed of random models.

// Bandwidth is the rate of a copy inside the card's memory, byte/s read and written. The copy grows
// until it takes long enough to be timed, or fills a quarter of the free memory.
func (d *Device) Bandwidth() (rate float64, err error) {
	const enough, rounds = 5 * time.Millisecond, 5
	_, free := d.Memory()
	for bytes := int64(1 << 20); ; bytes *= 4 {
		took, err := d.timeCopy(bytes, rounds)
		if err != nil {
			return 0, fmt.Errorf("measure the bandwidth: %w", err)
		}
		if took > 0 {
			rate = max(rate, float64(2*bytes)/took.Seconds())
		}
		if took >= enough || 8*bytes > free {
			return rate, nil
		}
	}
}

// timeCopy is the best of some copies of so many bytes.
func (d *Device) timeCopy(bytes int64, rounds int) (best time.Duration, err error) {
	h := resources{d: d}
	defer func() { err = errors.Join(err, h.close()) }()
	r := h.region(2 * bytes)
	if h.err != nil {
		return 0, h.err
	}
	if err := d.wait(func() error { return d.stream.Fill(r.address, 1, 2*bytes) }); err != nil {
		return 0, err
	}
	return h.fastest(rounds, func(s *driver.Stream) error {
		return s.Copy(r.address+driver.Pointer(bytes), r.address, bytes)
	})
}

// upload makes memory that begins with data; 0 after a failure.
func (h *resources) upload(data []byte) kernels.Pointer {
	r := h.region(int64(len(data)))
	if h.err == nil {
		h.err = r.Write(0, data)
	}
	return r.address
}

// fastest is the shortest of some rounds by the card's own clock, which leaves out the way there
// and back. A round of a tenth of a second is not repeated.
func (h *resources) fastest(rounds int,
	queue func(*driver.Stream) error) (best time.Duration, err error) {
	from, to := h.event(true), h.event(true)
	if h.err != nil {
		return 0, h.err
	}
	for range rounds {
		if err := h.d.wait(func() error {
			s := h.d.stream
			return errors.Join(from.Record(s), queue(s), to.Record(s))
		}); err != nil {
			return 0, err
		}
		took, err := to.Since(from)
		if err != nil {
			return 0, err
		}
		best = min(cmp.Or(best, took), took)
		if took > 100*time.Millisecond {
			break
		}
	}
	return best, nil
}

// time is the fastest of three rounds of a launch.
func (h *resources) time(l kernels.Launch) (time.Duration, error) {
	if h.err != nil {
		return 0, h.err
	}
	one, err := h.d.ready(l)
	if err != nil {
		return 0, err
	}
	return h.fastest(3, one.queue)
}

// Point is a load to time a model at: Rows rows of each of Sequences, after Context tokens.
type Point struct {
	Sequences int `json:"sequences"`
	Rows      int `json:"rows"` // of each: 1 is decode, more is prefill
	Context   int `json:"context"`
}

// Points are those of the self-test: prefill of 512 and 2,048 tokens; decode of 1, 8 and 64
// sequences at contexts of 0, 4k and 32k.
func Points() []Point {
	list := []Point{{1, 512, 0}, {1, 2048, 0}}
	for _, context := range []int{0, 4 << 10, 32 << 10} {
		for _, sequences := range []int{1, 8, 64} {
			list = append(list, Point{sequences, 1, context})
		}
	}
	return list
}

type Speed struct {
	Point
	TokensPerSecond float64 `json:"tokens_per_s"`
	// of the bytes that the step has to move at least
	GBs     float64 `json:"gb_per_s"`
	TFLOPs  float64 `json:"tflop_per_s"`       // of what its matrices multiply and add
	Skipped string  `json:"skipped,omitempty"` // why it was not run
}

// MeasureModel times a model at some points: the median of rounds steps, logits of each sequence's
// last row included. Points whose cache does not fit are skipped and say so.
func MeasureModel(ctx context.Context, dev engine.Device, ckpt *checkpoint.Checkpoint,
	o engine.Settings, points []Point, rounds int, report func(Speed)) (err error) {
	o.MaxNumBatchedTokens, o.MaxLogits = 1, 1
	for _, p := range points {
		o.MaxNumBatchedTokens = max(o.MaxNumBatchedTokens, p.Sequences*p.Rows)
		o.MaxLogits = max(o.MaxLogits, p.Sequences)
	}
	o.Pages = 1
	plan, err := engine.PlanFor(ckpt.Spec, o)
	if err != nil {
		return err
	}
	_, free := dev.Memory()
	room := (free - plan.Total()) / plan.PageBytes * 9 / 10
	for _, p := range points {
		if need := p.pages(ckpt.Spec, o.KVCacheDtype); need <= room {
			o.Pages = int(max(int64(o.Pages), need))
		}
	}
	eng, err := engine.New(dev, ckpt, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	program, err := engine.Record(ckpt.Spec, o, o.MaxNumBatchedTokens)
	if err != nil {
		return err
	}
	for _, p := range points {
		speed := Speed{Point: p}
		switch {
		case p.Context+p.Rows > ckpt.Spec.MaxPosition:
			speed.Skipped = "longer than the model's context"
		case p.pages(ckpt.Spec, o.KVCacheDtype) > int64(o.Pages):
			speed.Skipped = "its KV cache does not fit"
		default:
			if err := speed.measure(ctx, eng, program, rounds); err != nil {
				return err
			}
		}
		report(speed)
	}
	return nil
}

// pages is the most that a point needs: pages for every sequence, for both kinds of layer.
func (p Point) pages(s models.Spec, kvType string) int64 {
	return int64(p.Sequences) * int64(kv.PagesOf(p.Context+p.Rows, p.Rows, s.Window,
		engine.WindowPages(kvType)))
}

func (s *Speed) measure(ctx context.Context, eng engine.Engine, program *engine.Program,
	rounds int) error {
	b := s.batch(eng.Spec(), program.Settings)
	greedy := slices.Repeat([]engine.SamplingParams{{Draw: engine.Draw{TopP: 1}, Logprobs: -1}},
		len(b.LogitRows))
	chosen := make([]engine.SampledToken, len(greedy))
	var took []time.Duration
	for i := range rounds + 1 {
		start := time.Now()
		if err := eng.Queue(ctx, b, nil); err != nil {
			return err
		}
		if err := errors.Join(eng.Sample(greedy), eng.Wait(chosen)); err != nil {
			return err
		}
		if i > 0 { // the first one warms up
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	seconds := took[len(took)/2].Seconds()
	var bytes, flops int64
	work := program.WorkOf(b)
	for _, op := range program.Ops {
		bytes += program.Bytes(op, work)
		flops += program.Flops(op, work)
	}
	s.TokensPerSecond, s.GBs, s.TFLOPs = float64(len(b.Tokens))/seconds, float64(bytes)/seconds/1e9,
		float64(flops)/seconds/1e12
	return nil
}

// batch puts different tokens in every row, so that rows choose different experts.
func (s *Speed) batch(spec models.Spec, o engine.Settings) *engine.Batch {
	b := &engine.Batch{}
	pool := kv.NewPool(o.Pages, spec.Window, engine.WindowPages(o.KVCacheDtype))
	for range s.Sequences {
		addSequence(b, pool, s.Context, s.Rows)
		for range s.Rows {
			b.Tokens = append(b.Tokens, int32(len(b.Tokens)*7919%spec.Vocab))
		}
		b.LogitRows = append(b.LogitRows, int32(len(b.Tokens)-1))
	}
	return b
}

// addSequence adds rows of a new sequence that has start tokens already. Its pages are taken as
// those of a growing sequence.
func addSequence(b *engine.Batch, pool *kv.Pool, start, rows int) {
	var t kv.Table
	for pos := 0; pos < start; pos += kv.PageTokens {
		pool.Slide(&t, pos)
		pool.Reserve(&t, min(pos+kv.PageTokens, start))
	}
	pool.Slide(&t, start)
	pool.Reserve(&t, start+rows)
	b.Seqs = append(b.Seqs, engine.SeqRows{Start: int32(start), Rows: int32(rows), Full: t.Full(),
		Window: t.Window()})
	b.Twins = pool.Twins()
}
