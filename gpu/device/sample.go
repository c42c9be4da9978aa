package device

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Samples tokens on the card: the logits never leave it. The parameters, masks and edits of a step
// travel in one copy after the forward pass. The tokens stay where the next step reads them, and
// are also copied to the host.
//
// Two samples may be under way, each in a slot of its own, since the host writes one while the
// device still reads the other.

// sampler belongs to a device and is shared by its steps, which run one after the other.
type sampler struct {
	shared
	rows, words int // room: logit rows, 32-bit words of a mask
	slots       [2]sampleSlot
	next        int // the slot of the next Sample
	waiting     int // Samples not waited for
	stats       *region
	ids, values *region // of top_logits, [rows, mostRivals]
}

// mostRivals is the most tokens a choice is reported with.
const mostRivals = 20

// A sampleSlot holds one Sample: what goes in, what comes out.
type sampleSlot struct {
	in     *region            // params [rows], counts of edits and rows, edits, masks
	pinned *driver.HostMemory // the same
	tokens *region            // i32 [rows]
	out    *driver.HostMemory // the tokens on their way back
	done   *driver.Event
	rows   int
	chosen []engine.SampledToken // when logprobs were asked for: known before Wait
}

func (s *sampler) editsAt() int { return s.rows * kernels.SampleRowBytes }
func (s *sampler) rowsAt() int  { return s.editsAt() + 4 }
func (s *sampler) masksAt() int {
	return s.editsAt() + 16 + engine.MostEdits(s.rows)*kernels.LogitEditBytes
}
func (s *sampler) bytes() int { return s.masksAt() + 4*s.rows*s.words }

var _ engine.SamplingStep = (*step)(nil)

// joinSampler gives the step the device's sampler of its vocabulary. The sampler is made on first
// use, and made anew when a step has more rows.
func (s *step) joinSampler() (*sampler, error) {
	d := s.dev
	s.joining.Lock()
	defer s.joining.Unlock()
	if s.sampler != nil {
		return s.sampler, nil
	}
	d.mu.Lock()
	closed, busy := s.closed(), d.sampler != nil && d.sampler.waiting > 0
	d.mu.Unlock()
	if closed {
		return nil, engine.ErrClosed
	}
	vocab := s.p.Spec.Vocab
	joined, err := share(d, sharing(fmt.Sprintf("room to choose of %d tokens in", vocab)),
		int64(s.logitRows(s.layout.bucket)), func(of shared) (*sampler, error) {
			if busy {
				return nil, errors.New("a larger step samples while a smaller one is waited for")
			}
			rows := s.logitRows(max(s.layout.bucket, s.p.Settings.MaxNumBatchedTokens))
			of.size = int64(rows)
			x := &sampler{shared: of, rows: rows, words: 2 * ((vocab + 63) / 64)}
			x.stats = x.region(int64(rows * kernels.LogitStatsBytes))
			x.ids = x.region(int64(4 * rows * mostRivals))
			x.values = x.region(int64(4 * rows * mostRivals))
			for i := range x.slots {
				x.slots[i] = sampleSlot{in: x.region(int64(x.bytes())),
					tokens: x.region(int64(4 * rows)), pinned: x.host(x.bytes()),
					out: x.host(4 * rows), done: x.event(false)}
			}
			x.frees = append(x.frees, func() error { d.forget(x); return nil })
			return x, x.made()
		})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.sampler = joined
	return joined, nil
}

// logitRows is how many logit rows a step of so many rows gives.
func (s *step) logitRows(rows int) int {
	if most := s.p.Settings.MaxLogits; most > 0 {
		return min(rows, most)
	}
	return rows
}

// forget removes a sampler that is freed next.
func (d *Device) forget(x *sampler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sampler == x {
		d.sampler = nil
	}
}

// leaveSampler ends the step's use of the sampler.
func (s *step) leaveSampler() error {
	s.joining.Lock()
	defer s.joining.Unlock()
	have := s.sampler
	if have == nil {
		return nil
	}
	s.dev.mu.Lock()
	s.sampler = nil
	s.dev.mu.Unlock()
	return have.leave()
}

// Queue starts a batch and returns at once. Tokens of the last Sample pass from its slot into this
// step's state, inside the card.
func (s *step) Queue(b *engine.Batch, from []int32) error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.closed() {
		return engine.ErrClosed
	}
	if s.logits == nil {
		return errors.New("this program gives no logits")
	}
	return s.settled(s.queue(b, from, s.launchWhole))
}

// feed queues the copies of tokens that are already on the card, one copy for each run of adjacent
// rows.
func (s *step) feed(from []int32) error {
	var tokens *region
	if sam := s.dev.sampler; sam != nil {
		tokens = sam.slots[1-sam.next].tokens
	}
	for i := 0; i < len(from); {
		n := 1
		for i+n < len(from) && from[i] >= 0 && from[i+n] == from[i]+int32(n) {
			n++
		}
		if from[i] >= 0 {
			if tokens == nil {
				return errors.New("a row takes its token from a sample, and there was none")
			}
			to := s.state.at + s.layout.place(tokensArray) + driver.Pointer(4*i)
			if err := s.dev.stream.Copy(to, tokens.at+driver.Pointer(4*from[i]),
				int64(4*n)); err != nil {
				return fmt.Errorf("take over the tokens: %w", err)
			}
		}
		i += n
	}
	return nil
}

// Sample sends the parameters and queues the kernels.
func (s *step) Sample(choices []engine.SamplingParams) error {
	sam, err := s.joinSampler()
	if err != nil {
		return err
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.closed() {
		return engine.ErrClosed
	}
	if len(choices) > sam.rows {
		return fmt.Errorf("%d choices where there is room for %d", len(choices), sam.rows)
	}
	if err := s.settled(s.choose(&sam.slots[sam.next], choices)); err != nil {
		return err
	}
	s.dev.sampler, sam.next = sam, 1-sam.next
	sam.waiting++
	return nil
}

// choose queues all the work of a slot's sampling; the lock is held.
func (s *step) choose(slot *sampleSlot, choices []engine.SamplingParams) error {
	edits, masks, err := s.sampler.write(slot.pinned.Bytes(), choices)
	if err != nil {
		return err
	}
	slot.rows, slot.chosen = len(choices), nil
	if err := s.send(slot, edits, masks); err != nil {
		return fmt.Errorf("send the choices: %w", err)
	}
	rivals := -1
	for _, c := range choices {
		rivals = max(rivals, c.Logprobs)
	}
	rivals = min(rivals, mostRivals)
	if err := s.launchSampling(slot, edits, rivals); err != nil {
		return err
	}
	if rivals >= 0 {
		if slot.chosen, err = s.logprobs(slot, choices, rivals); err != nil {
			return fmt.Errorf("read the logprobs: %w", err)
		}
	} else if err := s.dev.stream.CopyOut(slot.out, 0, slot.tokens.at, 4*slot.rows); err != nil {
		return fmt.Errorf("send the tokens back: %w", err)
	}
	return slot.done.Record(s.dev.stream)
}

// write fills a slot's memory and returns how many edits and masks there are.
func (s *sampler) write(to []byte, choices []engine.SamplingParams) (edits, masks int, err error) {
	params := to[:0]
	for _, c := range choices {
		r := kernels.SampleRow{Temperature: c.Temperature, TopP: c.TopP, MinP: c.MinP, TopK: c.TopK,
			Seed: c.Seed, Position: c.Position, Mask: -1}
		if c.Mask != nil {
			r.Mask = int32(masks)
			at := to[s.masksAt()+4*s.words*masks:][:4*s.words]
			clear(at)
			for i, w := range c.Mask[:min(len(c.Mask), s.words/2)] {
				binary.LittleEndian.PutUint64(at[8*i:], w)
			}
			masks++
		}
		params = r.Append(params)
	}
	list := to[s.editsAt()+16 : s.editsAt()+16]
	for row, c := range choices {
		if edits+len(c.Edits) > engine.MostEdits(s.rows) {
			return 0, 0, fmt.Errorf("more than %d edits in a step", engine.MostEdits(s.rows))
		}
		for _, e := range c.Edits {
			list = kernels.LogitEdit{Row: int32(row), ID: e.ID, Repetition: e.Repetition,
				Less: e.Less, More: e.More}.Append(list)
			edits++
		}
	}
	binary.LittleEndian.PutUint32(to[s.editsAt():], uint32(edits))
	binary.LittleEndian.PutUint32(to[s.rowsAt():], uint32(len(choices)))
	return edits, masks, nil
}

// send queues the copies of what is in use: the parameters, the edits, the masks.
func (s *step) send(slot *sampleSlot, edits, masks int) error {
	sam := s.sampler
	for _, part := range []struct{ at, n int }{
		{0, slot.rows * kernels.SampleRowBytes},
		{sam.editsAt(), 16 + edits*kernels.LogitEditBytes},
		{sam.masksAt(), 4 * masks * sam.words},
	} {
		if part.n == 0 {
			continue
		}
		if err := s.dev.stream.CopyIn(slot.in.at+driver.Pointer(part.at), slot.pinned, part.at,
			part.n); err != nil {
			return err
		}
	}
	return nil
}

// launchSampling queues the kernels: the rows' statistics, the edits, the choice.
func (s *step) launchSampling(slot *sampleSlot, edits, rivals int) error {
	sam, vocab, t := s.sampler, s.p.Spec.Vocab, s.dev.target
	in := func(at int) kernels.Pointer { return slot.in.at + kernels.Pointer(at) }
	rows, logits := kernels.Rows{Live: in(sam.rowsAt()), Most: slot.rows}, s.logits.at
	list := []kernels.Launch{t.LogitStats(rows, sam.stats.at, logits, vocab)}
	if rivals > 0 {
		list = append(list, t.TopLogits(rows, sam.ids.at, sam.values.at, logits, vocab, rivals))
	}
	if edits > 0 {
		list = append(list, t.EditLogits(kernels.Rows{Live: in(sam.editsAt()), Most: edits},
			in(sam.editsAt()+16), logits, vocab))
	}
	list = append(list, t.Sample(rows, slot.tokens.at, logits, in(0), sam.stats.at,
		in(sam.masksAt()), vocab, sam.words))
	for _, l := range list {
		ready, err := s.dev.ready(l)
		if err != nil {
			return err
		}
		if err := ready.queue(s.dev.stream); err != nil {
			return fmt.Errorf("choose the tokens: %w", err)
		}
	}
	return nil
}

// logprobs waits for the tokens and reads what was asked about them while the logits are still
// there.
func (s *step) logprobs(slot *sampleSlot, choices []engine.SamplingParams,
	rivals int) ([]engine.SampledToken, error) {
	d, sam := s.dev, s.sampler
	tokens, stats := make([]byte, 4*slot.rows), make([]byte, slot.rows*kernels.LogitStatsBytes)
	edits, ids := make([]byte, sam.masksAt()), make([]byte, 4*slot.rows*rivals)
	values := make([]byte, len(ids))
	if err := d.pass([]piece{{slot.tokens.at, tokens}, {sam.stats.at, stats}, {slot.in.at, edits},
		{sam.ids.at, ids}, {sam.values.at, values}}, true); err != nil {
		return nil, err
	}
	word := func(data []byte, at int) int32 {
		return int32(binary.LittleEndian.Uint32(data[at:]))
	}
	float := func(data []byte, at int) float32 {
		return math.Float32frombits(uint32(word(data, at)))
	}
	was := map[[2]int32]float32{} // logits that an edit changed
	list := edits[sam.editsAt()+16:]
	for range word(edits, sam.editsAt()) {
		was[[2]int32{word(list, 0), word(list, 4)}] = float(list, 20)
		list = list[kernels.LogitEditBytes:]
	}
	chosen := make([]engine.SampledToken, slot.rows)
	for i := range chosen {
		c := &chosen[i]
		c.ID = word(tokens, 4*i)
		if c.ID < 0 || choices[i].Logprobs < 0 {
			continue
		}
		stat := kernels.LogitStatsAt(stats, i)
		logit, edited := was[[2]int32{int32(i), c.ID}]
		if !edited {
			one := make([]byte, 4)
			if err := d.read(s.logits.at+driver.Pointer(4*(i*s.p.Spec.Vocab+int(c.ID))),
				one); err != nil {
				return nil, err
			}
			logit = float(one, 0)
		}
		c.Logprob = stat.Logprob(logit)
		for j := range min(choices[i].Logprobs, rivals) {
			at := 4 * (i*rivals + j)
			if id := word(ids, at); id >= 0 {
				c.Top = append(c.Top, engine.TokenLogprob{ID: id,
					Logprob: stat.Logprob(float(values, at))})
			}
		}
	}
	return chosen, nil
}

// Wait gives the tokens of the oldest Sample.
func (s *step) Wait(chosen []engine.SampledToken) error {
	d := s.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	sam := s.sampler
	if sam == nil || sam.waiting == 0 {
		return errors.New("nothing was sampled that could be waited for")
	}
	// one waits: the slot before next; two: next itself, which is the older
	slot := &sam.slots[(sam.next+sam.waiting)%2]
	sam.waiting--
	if err := slot.done.Synchronize(); err != nil {
		return fmt.Errorf("wait for the tokens: %w", err)
	}
	if slot.chosen != nil {
		copy(chosen, slot.chosen)
		return nil
	}
	for i := range chosen {
		id := binary.LittleEndian.Uint32(slot.out.Bytes()[4*i:])
		chosen[i] = engine.SampledToken{ID: int32(id)}
	}
	return nil
}
