package bench

// One run: an engine over the checkpoint, rounds of steps, and the limits measured between them.

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/serve"
)

type run struct {
	ctx     context.Context
	o       Options
	backend engine.Backend
	gauge   serve.Gauge
	ckpt    *checkpoint.Checkpoint
	eng     engine.Engine
	// the operations of the engine's steps, for counting; every bucket has the same
	program *engine.Program
	// a few layers of the model, whose steps predict the time of all; may be nil
	excerpt *run
	// the engine has no taps, as in serve: on a GPU each is a launch. The number of experts read is
	// then the one expected from even routing.
	untapped bool
	random   *rand.Rand
	logits   []float32
	report   Report
	err      error // the first one; later steps do nothing
}

const (
	firstContext = 64        // tokens of the prompt before decoding "at 0" is measured
	readSample   = 256 << 20 // bytes of weights read for a bandwidth, for each step of decoding
	readPasses   = 3
	// spent in plain multiplications before and after a prompt
	peakTime      = 30 * time.Millisecond
	samplePattern = 1 << 16
)

// open makes the engine with room for the longest measurement.
func (b *run) open() (err error) {
	pages, sequences := 0, 1
	for _, n := range b.o.Prefill {
		pages = max(pages, pagesOf(n))
	}
	for _, point := range b.o.points() {
		end := max(point.context, firstContext) + b.o.stepsOf(point.sequences) + 1
		pages = max(pages, point.sequences*pagesOf(end))
		sequences = max(sequences, point.sequences)
	}
	settings := b.o.Settings
	settings.Pages = b.pagesPerEntry() * (pages + sequences)
	settings.MaxLogits = sequences
	for layer := 0; layer < b.ckpt.Spec.Layers && !b.untapped; layer++ {
		// 4 numbers a row: which experts a step read
		settings.Taps = append(settings.Taps, fmt.Sprintf("layer%d.experts", layer))
	}
	if b.eng, err = b.backend.Load(b.ctx, b.ckpt, settings, nil); err != nil {
		return err
	}
	settings = b.eng.Settings()
	b.logits = make([]float32, sequences*b.ckpt.Spec.Vocab)
	b.program, err = engine.Record(b.ckpt.Spec, settings, settings.Rows())
	return err
}

// start opens the engine and takes one step so that everything is resident.
func (b *run) start() error {
	busy, begin := loadAverage(), time.Now()
	if _, err := b.backend.Room(b.ckpt.Spec, b.o.Settings); err != nil { // it chooses the GPUs
		return err
	}
	if err := b.open(); err != nil {
		return err
	}
	loaded, settings := time.Since(begin), b.eng.Settings()
	b.report = Report{LoadAverage: busy, Model: b.ckpt.Spec.Name, Layers: b.ckpt.Spec.Layers,
		Device:  b.backend.Name(),
		Compute: settings.Compute, KV: settings.KVCacheDtype, Dense: settings.Dense,
		Weights: b.eng.Plan().Weights, PeakUnit: b.gauge.MultiplyUnit()}
	if e, ok := b.eng.(interface{ DenseBytes() int64 }); ok {
		b.report.DenseBytes = e.DenseBytes()
	}
	if b.step(b.batch(1, 0, 1)); b.err != nil {
		return b.err
	}
	b.report.LoadS = loaded.Seconds()
	b.report.StartS = time.Since(begin).Seconds()
	b.o.Progress(fmt.Sprintf("first token after %.1f s", b.report.StartS))
	return b.fillCache()
}

func (b *run) close() (err error) {
	err = b.closeExcerpt()
	if eng := b.eng; eng != nil {
		b.eng = nil
		err = errors.Join(err, eng.Close())
	}
	return err
}

func pagesOf(tokens int) int { return (tokens + engine.PageTokens - 1) / engine.PageTokens }

// fillCache writes every page: unwritten ones would all be read from one page of zeros.
func (b *run) fillCache() error {
	pattern := make([]byte, samplePattern)
	for i := 0; i < len(pattern); i += 4 {
		// as bf16 or float32: small numbers of either sign
		numbers := 0x3c803c80 ^ b.random.Uint32()&0x807f807f
		if b.pagesPerEntry() > 2 { // as 8 bits too, of which the highest are no numbers
			numbers = b.random.Uint32() & 0xbfbfbfbf
		}
		binary.LittleEndian.PutUint32(pattern[i:], numbers)
	}
	cache := b.eng.Cache()
	for offset := int64(0); offset < cache.Bytes(); offset += samplePattern {
		n := min(samplePattern, cache.Bytes()-offset)
		if err := cache.Write(offset, pattern[:n]); err != nil {
			return err
		}
	}
	return nil
}

// pagesPerEntry is how many pages of the pool hold PageTokens positions of a sequence: one for the
// full layers, and those of the window layers.
func (b *run) pagesPerEntry() int { return 1 + engine.WindowPages(b.o.Settings.KVCacheDtype) }

// batch makes rows of random tokens from position start on for each sequence, and asks for the
// logits of each last row.
func (b *run) batch(sequences, start, rows int) *engine.Batch {
	x := &engine.Batch{}
	pages, tables := pagesOf(start+rows), b.pagesPerEntry()
	prompt := rows
	if rows == 1 {
		prompt = 0
	}
	perTable := b.eng.Settings().Pages / sequences / tables
	for p := 0; p < b.eng.Settings().Pages && tables > 2; p++ { // a table after the window's
		x.Twins = append(x.Twins, int32((p+perTable)%b.eng.Settings().Pages))
	}
	for i := range sequences {
		table := func(base int) (list []int32) {
			for p := range pages {
				list = append(list, int32(base+p))
			}
			return list
		}
		x.Seqs = append(x.Seqs, engine.SeqRows{Start: int32(start), Rows: int32(rows),
			Prompt: int32(prompt), Full: table(tables * i * perTable),
			Window: table((tables*i + 1) * perTable)})
		for range rows {
			x.Tokens = append(x.Tokens, int32(b.random.IntN(b.ckpt.Spec.Vocab)))
		}
		x.LogitRows = append(x.LogitRows, int32(len(x.Tokens)-1))
	}
	return x
}

// step runs a batch. If the device samples, so do these steps, as in serve: the logits stay there.
func (b *run) step(x *engine.Batch) {
	switch n := len(x.LogitRows); {
	case b.err != nil:
	case !b.eng.Caps().Samples || n == 0:
		b.err = b.eng.Step(b.ctx, x, b.logits)
	default:
		greedy := engine.SamplingParams{Draw: engine.Draw{TopP: 1}, Logprobs: -1}
		if b.err = b.eng.Queue(b.ctx, x, nil); b.err == nil {
			b.err = errors.Join(b.eng.Sample(slices.Repeat([]engine.SamplingParams{greedy}, n)),
				b.eng.Wait(make([]engine.SampledToken, n)))
		}
	}
}

type promptResult struct {
	steps              []*engine.Batch
	took, used         float64 // seconds, and those of the processor
	predicted, experts float64 // seconds, and how many the last step chose
}

// prompt runs n tokens in the largest steps, with logits of the last token only. The predicted time
// of each step is measured after it, that of the first one before it too.
func (b *run) prompt(n int) (p promptResult) {
	for start := 0; start < n && b.err == nil; {
		rows := min(n-start, b.eng.Settings().Rows())
		x := b.batch(1, start, rows)
		last := start+rows == n
		if !last {
			x.LogitRows = nil
		}
		prev := 0.0
		if start == 0 {
			prev = b.predict(1, start, rows, last)
		}
		cpu, begin := processorTime(), time.Now()
		b.step(x)
		p.took += time.Since(begin).Seconds()
		p.used += (processorTime() - cpu).Seconds()
		// a step of a few hundred rows reads nearly all
		p.experts = b.expertsRead(x)
		expected := b.predict(1, start, rows, last)
		if start == 0 {
			expected = (prev + expected) / 2
		}
		p.predicted += expected
		p.steps = append(p.steps, x)
		start += rows
	}
	return p
}

// sample is a part of the weights that is larger than the caches.
func (b *run) sample() []byte {
	t, err := b.ckpt.Tensor("lm_head.weight")
	b.err = cmp.Or(b.err, err)
	return t.Data[:min(len(t.Data), readSample)]
}

// read measures the bandwidth over the weights: the best of a few passes, the machine's limit.
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
	return rate, ratio(rate*took, used)
}

func (b *run) prefill(n int) error {
	var rounds []Rate
	for len(rounds) < b.o.Rounds {
		r := Rate{Test: fmt.Sprintf("pp%d", n), Tokens: n}
		rateBefore, beforeCPU := b.peak()
		p := b.prompt(n)
		if b.err != nil {
			return b.err
		}
		rateAfter, afterCPU := b.peak()
		r.Experts = p.experts
		products := 0.0
		for _, x := range p.steps {
			r.BytesPerStep += b.bytes(x, r.Experts)
			products += b.products(x)
		}
		r.BytesPerToken = r.BytesPerStep / int64(n)
		r.TokensPerS, r.PerCPUSecond = float64(n)/p.took, ratio(float64(n), p.used)
		r.OfMultiply = ratio(products, p.took*(rateBefore+rateAfter)/2)
		r.OfMulCPU = ratio(products, p.used*(beforeCPU+afterCPU)/2)
		r.GBPerS = float64(r.BytesPerStep) / p.took / 1e9
		r.OfRead = ratio(r.GBPerS*1e9, b.read())
		r.PredictedPerS, r.OfPredicted = ratio(float64(n), p.predicted), p.predicted/p.took
		rounds = append(rounds, r)
		b.o.Progress(fmt.Sprintf("%s, round %d: %.1f tok/s, %.0f %% of plain "+
			"multiplications, %.0f %% by processor time",
			r.Test, len(rounds), r.TokensPerS, 100*r.OfMultiply, 100*r.OfMulCPU))
	}
	b.report.Prefill = append(b.report.Prefill, medians(rounds))
	if b.o.Plain || b.report.PrefillProfile != nil {
		return nil
	}
	x := b.batch(1, 0, min(n, b.eng.Settings().Rows()))
	b.report.PrefillProfile, _ = b.profile(x, profiled, false)
	return b.err
}

// decode measures steps of one token a sequence, after a few that warm the machine.
func (b *run) decode(point decodePoint) error {
	start, steps := cmp.Or(point.context, firstContext), b.o.stepsOf(point.sequences)
	for i := range min(steps, fewSteps) {
		b.step(b.batch(point.sequences, start+i, 1))
	}
	var rounds []Rate
	var bytes, experts float64 // of all rounds
	for len(rounds) < b.o.Rounds {
		var took, reads, expected []float64
		var used, readUsed, moved float64
		for i := 0; i < steps && b.err == nil; i++ {
			x := b.batch(point.sequences, start+i, 1)
			cpu, begin := processorTime(), time.Now()
			b.step(x)
			took = append(took, time.Since(begin).Seconds())
			now := processorTime()
			used += (now - cpu).Seconds()
			reads = append(reads, b.gauge.Bandwidth(b.sample()))
			readUsed += (processorTime() - now).Seconds()
			n := b.expertsRead(x)
			moved += float64(b.bytes(x, n))
			experts += n
			if i%max(1, steps/excerptSteps) == 0 {
				expected = append(expected, b.predict(point.sequences, start+i, 1, true))
			}
		}
		if b.err != nil {
			return b.err
		}
		bytes += moved
		b.report.ReadGBs = max(b.report.ReadGBs, slices.Max(reads)/1e9)
		step, tokens := median(took), float64(point.sequences)
		moved /= float64(steps)
		r := Rate{Test: point.test(&b.o), Tokens: point.sequences, Context: point.context,
			TokensPerS: tokens / step, PerCPUSecond: ratio(tokens*float64(steps), used),
			GBPerS: moved / step / 1e9, OfRead: ratio(moved, step*median(reads)),
			OfReadCPU: ratio(moved*readUsed, used*float64(len(b.sample()))),
			// means: other work on the machine stretches some of many short steps and all long
			// ones, so their medians cannot be compared
			PredictedPerS: ratio(tokens, mean(expected)),
			OfPredicted:   ratio(mean(expected), mean(took))}
		rounds = append(rounds, r)
		b.o.Progress(fmt.Sprintf("%s, round %d: %.2f tok/s, %.0f %% of plain reads, "+
			"%.0f %% by processor time", r.Test, len(rounds), r.TokensPerS, 100*r.OfRead,
			100*r.OfReadCPU))
	}
	r, counted := medians(rounds), float64(len(rounds)*steps)
	r.Experts, r.BytesPerStep = experts/counted, int64(bytes/counted)
	r.BytesPerToken = r.BytesPerStep / int64(point.sequences)
	b.report.Decode = append(b.report.Decode, r)
	if b.o.Plain || point.context > 0 {
		return nil
	}
	times, _ := b.profile(b.batch(point.sequences, start+steps, 1), profiled, false)
	if point.sequences > 1 {
		b.report.BatchProfile = times
	} else {
		b.report.DecodeProfile = times
	}
	return b.err
}

// bytes are those that a step reads and writes if a layer reads so many experts.
func (b *run) bytes(x *engine.Batch, experts float64) (sum int64) {
	w := b.program.WorkOf(x)
	for _, op := range b.program.Ops {
		sum += b.program.BytesWith(op, w, experts)
	}
	return sum
}

func (b *run) products(x *engine.Batch) (sum float64) {
	w := b.program.WorkOf(x)
	for _, op := range b.program.Ops {
		sum += float64(b.program.Flops(op, w))
	}
	return sum
}

// expertsRead is the average number of experts that a layer of the last step read.
func (b *run) expertsRead(x *engine.Batch) float64 {
	if b.untapped {
		return expectedExperts(b.ckpt.Spec, len(x.Tokens))
	}
	s, rows, total := b.ckpt.Spec, len(x.Tokens), 0
	for layer := 0; layer < s.Layers && b.err == nil; layer++ {
		var data []byte
		data, b.err = b.eng.Tap(fmt.Sprintf("layer%d.experts", layer), rows)
		chosen := map[uint32]bool{}
		for i := 0; i < len(data); i += 4 {
			chosen[binary.LittleEndian.Uint32(data[i:])] = true
		}
		total += len(chosen)
	}
	return float64(total) / float64(s.Layers)
}

// ratio is a / b; 0 if processor time is unknown.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

func medians(rounds []Rate) Rate {
	r := rounds[len(rounds)-1]
	for i, figure := range r.figures() {
		var all []float64
		for _, round := range rounds {
			all = append(all, *round.figures()[i])
		}
		if *figure = median(all); i == 0 {
			r.Least, r.Most = slices.Min(all), slices.Max(all)
		}
	}
	return r
}

// figures are the fields that a report takes the median of, tokens a second first.
func (r *Rate) figures() []*float64 {
	return []*float64{&r.TokensPerS, &r.PerCPUSecond, &r.GBPerS, &r.OfRead, &r.OfReadCPU,
		&r.PredictedPerS, &r.OfPredicted, &r.OfMultiply, &r.OfMulCPU}
}

func mean(v []float64) (sum float64) {
	for _, x := range v {
		sum += x / float64(len(v))
	}
	return sum
}

// median of at least one number; of an even count, the lower middle one.
func median(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return sorted[(len(sorted)-1)/2]
}
