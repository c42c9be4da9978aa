package bench

// One run: an engine over the checkpoint, rounds of steps, and the limits measured between them.

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

type run struct {
	ctx    context.Context
	o      Options
	dev    engine.Device
	gauge  Gauge
	ckpt   *checkpoint.Checkpoint
	eng    *engine.InProcess
	random *rand.Rand
	logits []float32
	report Report
}

const (
	firstContext = 64        // tokens of the prompt before decoding "at 0" is measured
	readSample   = 256 << 20 // bytes of weights read for a bandwidth, beside each step of decoding
	readPasses   = 3
	// spent in plain multiplications before and after a prompt
	peakTime      = 30 * time.Millisecond
	samplePattern = 1 << 16
)

// start makes the engine with room for the longest measurement, and one step so that everything is
// resident.
func (b *run) start() (err error) {
	longest := firstContext + b.o.Steps*(b.o.Rounds+2)
	for _, n := range slices.Concat(b.o.Prefill, b.o.Contexts) {
		longest = max(longest, n+firstContext+b.o.Steps*(b.o.Rounds+2))
	}
	sequences := max(1, slices.Max(append([]int{1}, b.o.Batches...)))
	short := firstContext + b.o.Steps*(b.o.Rounds+2)
	eo := b.o.Settings
	eo.Pages = 2 * (pagesOf(longest) + sequences*pagesOf(short))
	for layer := range b.ckpt.Spec.Layers {
		// 4 numbers a row: which experts a step read
		eo.Taps = append(eo.Taps, fmt.Sprintf("layer%d.experts", layer))
	}
	begin := time.Now()
	if b.eng, err = engine.New(b.dev, b.ckpt, eo); err != nil {
		return err
	}
	eo = b.eng.Settings()
	b.logits = make([]float32, sequences*b.ckpt.Spec.Vocab)
	b.report = Report{Model: b.ckpt.Spec.Name, Layers: b.ckpt.Spec.Layers, Device: b.dev.Name(),
		Compute: eo.Compute, KV: eo.KVCacheDtype, Dense: eo.Dense, DenseBytes: b.eng.DenseBytes(),
		Weights: b.eng.Plan().Weights, PeakUnit: b.gauge.MultiplyUnit()}
	if err := b.step(b.batch(1, 0, 1)); err != nil {
		return err
	}
	b.report.StartS = time.Since(begin).Seconds()
	b.o.Progress(fmt.Sprintf("first token after %.1f s", b.report.StartS))
	return b.fillCache()
}

func (b *run) close() error {
	if b.eng == nil {
		return nil
	}
	eng := b.eng
	b.eng = nil
	return eng.Close()
}

func pagesOf(tokens int) int { return (tokens + engine.PageTokens - 1) / engine.PageTokens }

// fillCache writes every page: memory that was never written would be read from one page of zeros
// that all caches hold.
func (b *run) fillCache() error {
	pattern := make([]byte, samplePattern)
	for i := 0; i < len(pattern); i += 4 {
		// as bf16 or float32: small numbers of either sign
		binary.LittleEndian.PutUint32(pattern[i:], 0x3c803c80^b.random.Uint32()&0x807f807f)
	}
	cache := b.eng.Cache()
	for at := int64(0); at < cache.Bytes(); at += samplePattern {
		if err := cache.Write(at, pattern[:min(samplePattern, cache.Bytes()-at)]); err != nil {
			return err
		}
	}
	return nil
}

// batch is rows tokens from position start on for each of several sequences; logits of each one's
// last.
func (b *run) batch(sequences, start, rows int) *engine.Batch {
	x := &engine.Batch{}
	pages := pagesOf(start + rows)
	for i := range sequences {
		table := func(base int) (list []int32) {
			for p := range pages {
				list = append(list, int32(base+p))
			}
			return list
		}
		each := b.eng.Settings().Pages / sequences / 2
		x.Seqs = append(x.Seqs, engine.SeqRows{Start: int32(start), Rows: int32(rows),
			Full: table(2 * i * each), Window: table((2*i + 1) * each)})
		for range rows {
			x.Tokens = append(x.Tokens, int32(b.random.IntN(b.ckpt.Spec.Vocab)))
		}
		x.LogitRows = append(x.LogitRows, int32(len(x.Tokens)-1))
	}
	return x
}

func (b *run) step(x *engine.Batch) error { return b.eng.Step(b.ctx, x, b.logits) }

// prompt runs n tokens in steps as large as the engine takes, logits of the last token only.
func (b *run) prompt(n int) error {
	for start := 0; start < n; {
		rows := min(n-start, b.eng.Settings().Rows())
		x := b.batch(1, start, rows)
		if start+rows < n {
			x.LogitRows = nil
		}
		if err := b.step(x); err != nil {
			return err
		}
		start += rows
	}
	return nil
}

// sample is a stretch of the weights, larger than the caches.
func (b *run) sample() []byte {
	data := b.ckpt.Tensor("lm_head.weight").Data
	return data[:min(len(data), readSample)]
}

// read measures the bandwidth over a stretch of the weights: the best of a few passes, since what
// is asked for is the machine's limit.
func (b *run) read() (rate float64) {
	for range readPasses {
		rate = max(rate, b.gauge.Bandwidth(b.sample()))
	}
	b.report.ReadGBs = max(b.report.ReadGBs, rate/1e9)
	return rate
}

// peak measures plain multiplications: operations a second, and a second of processor time.
func (b *run) peak() (rate, perCPU float64) {
	cpu, begin := processorTime(), time.Now()
	rate = b.gauge.MultiplyPeak(peakTime)
	took, used := time.Since(begin).Seconds(), (processorTime() - cpu).Seconds()
	b.report.PeakTOPS = max(b.report.PeakTOPS, rate/1e12)
	return rate, over(rate*took, used)
}

// prefill measures prompts of n tokens.
func (b *run) prefill(n int) error {
	var rates, perCPU, of, ofCPU []float64
	for round := range b.o.Rounds {
		before, beforeCPU := b.peak()
		cpu, begin := processorTime(), time.Now()
		if err := b.prompt(n); err != nil {
			return err
		}
		took, used := time.Since(begin).Seconds(), (processorTime() - cpu).Seconds()
		after, afterCPU := b.peak()
		operations := float64(operationsOfPrompt(b.ckpt.Spec, n))
		rates = append(rates, float64(n)/took)
		perCPU = append(perCPU, over(float64(n), used))
		of = append(of, operations/took/((before+after)/2))
		ofCPU = append(ofCPU, over(operations, used*(beforeCPU+afterCPU)/2))
		b.o.Progress(fmt.Sprintf("prefill %d, round %d: %.1f tok/s, %.0f %% of plain "+
			"multiplications, %.0f %% by processor time",
			n, round+1, rates[round], 100*of[round], 100*ofCPU[round]))
	}
	r := rate(n, 0, rates)
	r.PerCPUSecond, r.OfMultiply, r.OfMulCPU = median(perCPU), median(of), median(ofCPU)
	b.report.Prefill = append(b.report.Prefill, r)
	if b.o.Plain || b.report.PrefillProfile != nil {
		return nil
	}
	x := b.batch(1, 0, min(n, b.eng.Settings().Rows()))
	times, err := b.measured(x)
	b.report.PrefillProfile = times
	return err
}

// decode measures steps of one token for each of some sequences.
func (b *run) decode(at decodePoint) error {
	start := cmp.Or(at.context, firstContext)
	var rates, perCPU, of, ofCPU []float64
	var bytes int64
	for round := range b.o.Rounds + 1 {
		var took, reads []float64
		var used, readUsed float64
		for range b.o.Steps {
			x := b.batch(at.sequences, start, 1)
			start++
			cpu, begin := processorTime(), time.Now()
			if err := b.step(x); err != nil {
				return err
			}
			took = append(took, time.Since(begin).Seconds())
			now := processorTime()
			used += (now - cpu).Seconds()
			reads = append(reads, b.gauge.Bandwidth(b.sample()))
			readUsed += (processorTime() - now).Seconds()
			n, err := b.stepBytes(x)
			if err != nil {
				return err
			}
			bytes = n
		}
		b.report.ReadGBs = max(b.report.ReadGBs, slices.Max(reads)/1e9)
		if round == 0 {
			continue // warms the caches of translations and branches
		}
		one := median(took)
		rates = append(rates, float64(at.sequences)/one)
		perCPU = append(perCPU, over(float64(at.sequences*b.o.Steps), used))
		of = append(of, float64(bytes)/one/median(reads))
		ofCPU = append(ofCPU, over(float64(bytes)*readUsed, used*float64(len(b.sample()))))
		b.o.Progress(fmt.Sprintf("decode %d at %d, round %d: %.2f tok/s, %.0f %% of plain reads, "+
			"%.0f %% by processor time",
			at.sequences, at.context, round, rates[round-1], 100*of[round-1], 100*ofCPU[round-1]))
	}
	r := rate(at.sequences, at.context, rates)
	r.PerCPUSecond, r.BytesPerStep, r.OfRead, r.OfReadCPU = median(perCPU), bytes, median(of),
		median(ofCPU)
	b.report.Decode = append(b.report.Decode, r)
	if b.o.Plain || at.context > 0 {
		return nil
	}
	times, err := b.measured(b.batch(at.sequences, start, 1))
	if at.sequences > 1 {
		b.report.BatchProfile = times
	} else {
		b.report.DecodeProfile = times
	}
	return err
}

// stepBytes is what the last step had to read and write, with the experts that it chose.
func (b *run) stepBytes(x *engine.Batch) (int64, error) {
	experts, err := b.expertsRead(len(x.Tokens))
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, n := range b.eng.OpBytes(x, experts) {
		sum += n
	}
	return sum, nil
}

// expertsRead is how many experts the layers of the last step read on average.
func (b *run) expertsRead(rows int) (float64, error) {
	s, total := b.ckpt.Spec, 0
	for layer := range s.Layers {
		data, err := b.eng.Tap(fmt.Sprintf("layer%d.experts", layer), rows)
		if err != nil {
			return 0, err
		}
		chosen := map[uint32]bool{}
		for i := 0; i < len(data); i += 4 {
			chosen[binary.LittleEndian.Uint32(data[i:])] = true
		}
		total += len(chosen)
	}
	return float64(total) / float64(s.Layers), nil
}

// over is a / b; 0 where the system does not tell processor time.
func over(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

func rate(tokens, context int, rates []float64) Rate {
	return Rate{Tokens: tokens, Context: context, TokensPerS: median(rates),
		Least: slices.Min(rates), Most: slices.Max(rates)}
}

// median of at least one number; of an even count the lower middle.
func median(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return sorted[(len(sorted)-1)/2]
}
