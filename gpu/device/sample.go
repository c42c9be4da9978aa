package device

import (
	"errors"
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Sampling on the card: the logits stay there. A step's sampling parameters are sent in one copy
// after the forward pass. The tokens stay where the next step reads them, and are copied to the
// host. Two samples may be under way: the host writes a slot while the device reads the other.

// sampler is shared by a device's steps with one vocabulary, which use it one after another.
type sampler struct {
	shared
	rows, words int // room: logit rows, 64-bit words of a mask
	slots       [2]sampleSlot
	next        int     // the slot of the next Sample
	waiting     int     // Samples not waited for
	states      *region // between the kernels of a choice
	stats       *region
	ids, values *region // of top_logits, [rows, mostRivals]
}

// mostRivals is the most tokens a choice is reported with.
const mostRivals = 20

// A sampleSlot holds the input and output of one Sample.
type sampleSlot struct {
	in     *region            // params [rows], counts of edits and rows, edits, masks
	pinned *driver.HostMemory // the same
	tokens *region            // i32 [rows]
	out    *driver.HostMemory // the tokens on their way back
	done   *driver.Event
	rows   int
	chosen []engine.SampledToken // when logprobs were asked for: known before Wait
}

func (s *sampler) countsAt() int { return s.rows * kernels.SampleRowBytes }
func (s *sampler) editsAt() int  { return s.countsAt() + 16 }
func (s *sampler) masksAt() int {
	return s.editsAt() + engine.MostEdits(s.rows)*kernels.LogitEditBytes
}
func (s *sampler) bytes() int { return s.masksAt() + 8*s.rows*s.words }

var _ engine.SamplingStep = (*step)(nil)

// joinSampler gives the step the device's sampler, or a new one if the step has more rows.
func (s *step) joinSampler() (err error) {
	vocab := s.p.Spec.Vocab
	what := sharedName(fmt.Sprintf("room to choose of %d tokens in", vocab))
	s.sampler, err = share(s.dev, what, int64(s.logitRows(s.p.Rows)),
		func(base shared) (*sampler, error) {
			rows := s.logitRows(max(s.p.Rows, s.p.Settings.MaxNumBatchedTokens))
			base.size = int64(rows)
			x := &sampler{shared: base, rows: rows, words: (vocab + 63) / 64}
			x.states = x.zeroed(int64(rows * kernels.SampleStateBytes))
			x.stats = x.region(int64(rows * kernels.LogitStatsBytes))
			x.ids = x.region(int64(4 * rows * mostRivals))
			x.values = x.region(int64(4 * rows * mostRivals))
			for i := range x.slots {
				x.slots[i] = sampleSlot{in: x.region(int64(x.bytes())),
					tokens: x.region(int64(4 * rows)), pinned: x.host(x.bytes()),
					out: x.host(4 * rows), done: x.event(false)}
			}
			return x, x.finish()
		})
	return err
}

func (s *step) logitRows(rows int) int {
	if most := s.p.Settings.MaxLogits; most > 0 {
		return min(rows, most)
	}
	return rows
}

// Queue starts a batch. The last Sample's tokens are copied into it on the card.
func (s *step) Queue(b *engine.Batch, from []int32) error {
	return s.locked(func() error {
		if s.logits == nil {
			return errors.New("this program gives no logits")
		}
		return s.queue(b, from, s.launchGraph)
	})
}

// feed queues the copies of tokens that are on the card, one for each run of adjacent rows.
func (s *step) feed(from []int32) error {
	for i := 0; i < len(from); {
		n := 1
		for i+n < len(from) && from[i] >= 0 && from[i+n] == from[i]+int32(n) {
			n++
		}
		if from[i] >= 0 {
			tokens := s.sampler.slots[1-s.sampler.next].tokens
			if err := s.dev.stream.Copy(s.array(tokensArray)+driver.Pointer(4*i),
				tokens.address+driver.Pointer(4*from[i]), int64(4*n)); err != nil {
				return fmt.Errorf("take over the tokens: %w", err)
			}
		}
		i += n
	}
	return nil
}

// Sample sends the parameters and queues the kernels.
func (s *step) Sample(choices []engine.SamplingParams) error {
	return s.locked(func() error {
		x := s.sampler
		if len(choices) > x.rows {
			return fmt.Errorf("%d choices where there is room for %d", len(choices), x.rows)
		}
		if err := s.choose(&x.slots[x.next], choices); err != nil {
			return err
		}
		x.next, x.waiting = 1-x.next, x.waiting+1
		return nil
	})
}

func (s *step) choose(slot *sampleSlot, choices []engine.SamplingParams) error {
	edits, masks, err := s.sampler.write(slot.pinned.Bytes(), choices)
	if err != nil {
		return err
	}
	slot.rows, slot.chosen = len(choices), nil
	if err := s.send(slot, edits, masks); err != nil {
		return fmt.Errorf("send the choices: %w", err)
	}
	rivals, launches := -1, 1
	for _, c := range choices {
		rivals = max(rivals, min(c.Logprobs, mostRivals))
		if c.Temperature != 0 {
			launches = 2
		}
	}
	if err := s.launchSampling(slot, edits, rivals, launches); err != nil {
		return err
	}
	if rivals >= 0 {
		if slot.chosen, err = s.logprobs(slot, choices, edits, rivals); err != nil {
			return fmt.Errorf("read the logprobs: %w", err)
		}
	} else if err := s.dev.stream.CopyOut(slot.out, 0, slot.tokens.address,
		4*slot.rows); err != nil {
		return fmt.Errorf("send the tokens back: %w", err)
	}
	return slot.done.Record(s.dev.stream)
}

// write fills a slot's memory and returns how many edits and masks there are.
func (s *sampler) write(to []byte, choices []engine.SamplingParams) (edits, masks int, err error) {
	params := engine.Numbers[kernels.SampleRow](to[:s.countsAt()])
	list := engine.Numbers[kernels.LogitEdit](to[s.editsAt():s.masksAt()])
	for row, c := range choices {
		mask := int32(-1)
		if c.Mask != nil {
			mask = int32(masks)
			words := engine.Numbers[uint64](to[s.masksAt():])[s.words*masks:][:s.words]
			clear(words[copy(words, c.Mask):])
			masks++
		}
		params[row] = kernels.SampleRow{Draw: kernels.Draw(c.Draw), Mask: mask}
		if edits+len(c.Edits) > len(list) {
			return 0, 0, fmt.Errorf("more than %d edits in a step", len(list))
		}
		for _, e := range c.Edits {
			list[edits] = kernels.LogitEdit{Row: int32(row), ID: e.ID, Repetition: e.Repetition,
				Penalty: e.Penalty, Bias: e.Bias}
			edits++
		}
	}
	counts := engine.Numbers[int32](to[s.countsAt():s.editsAt()])
	counts[0], counts[1] = int32(edits), int32(len(choices))
	return edits, masks, nil
}

// send queues the copies of the used parts: the parameters, the edits, the masks.
func (s *step) send(slot *sampleSlot, edits, masks int) error {
	x := s.sampler
	for _, part := range []struct{ offset, n int }{
		{0, slot.rows * kernels.SampleRowBytes},
		{x.countsAt(), 16 + edits*kernels.LogitEditBytes},
		{x.masksAt(), 8 * masks * x.words},
	} {
		if part.n == 0 {
			continue
		}
		if err := s.dev.stream.CopyIn(slot.in.address+driver.Pointer(part.offset), slot.pinned,
			part.offset, part.n); err != nil {
			return err
		}
	}
	return nil
}

// launchSampling queues the kernels: those for logprobs, the edits, the choice.
func (s *step) launchSampling(slot *sampleSlot, edits, rivals, launches int) error {
	x, vocab, t := s.sampler, s.p.Spec.Vocab, s.dev.target
	in := func(offset int) kernels.Pointer { return slot.in.address + kernels.Pointer(offset) }
	rows, logits := kernels.Rows{Live: in(x.countsAt() + 4), Most: slot.rows}, s.logits.address
	var list []kernels.Launch
	if rivals >= 0 { // logprobs are of the logits before edits
		list = append(list, t.LogitStats(rows, x.stats.address, logits, vocab))
	}
	if rivals > 0 {
		list = append(list, t.TopLogits(rows, x.ids.address, x.values.address, logits, vocab,
			rivals))
	}
	if edits > 0 {
		list = append(list, t.EditLogits(kernels.Rows{Live: in(x.countsAt()), Most: edits},
			in(x.editsAt()), logits, vocab))
	}
	list = append(list, t.Sample(rows, slot.tokens.address, x.states.address, logits, in(0),
		in(x.masksAt()), vocab, 2*x.words)[:launches]...)
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

// logprobs waits for the tokens, and reads the logprobs before the logits are overwritten.
func (s *step) logprobs(slot *sampleSlot, choices []engine.SamplingParams, edits,
	rivals int) ([]engine.SampledToken, error) {
	d, x, n := s.dev, s.sampler, slot.rows
	tokens, ids, values := make([]int32, n), make([]int32, n*rivals), make([]float32, n*rivals)
	stats, edited := make([]kernels.LogitStats, n), make([]kernels.LogitEdit, edits)
	if err := d.pass([]piece{{slot.tokens.address, engine.Bytes(tokens)},
		{x.stats.address, engine.Bytes(stats)}, {x.ids.address, engine.Bytes(ids)},
		{x.values.address, engine.Bytes(values)},
		{slot.in.address + driver.Pointer(x.editsAt()), engine.Bytes(edited)}}, true); err != nil {
		return nil, err
	}
	unedited := map[[2]int32]float32{} // logits that an edit changed
	for _, e := range edited {
		unedited[[2]int32{e.Row, e.ID}] = e.Was
	}
	chosen := make([]engine.SampledToken, n)
	for i, id := range tokens {
		c := &chosen[i]
		if c.ID = id; id < 0 || choices[i].Logprobs < 0 {
			continue
		}
		logit, changed := unedited[[2]int32{int32(i), id}]
		if !changed {
			one := make([]float32, 1)
			if err := d.read(s.logits.address+driver.Pointer(4*(i*s.p.Spec.Vocab+int(id))),
				engine.Bytes(one)); err != nil {
				return nil, err
			}
			logit = one[0]
		}
		c.Logprob = stats[i].Logprob(logit)
		for j := range min(choices[i].Logprobs, rivals) {
			if rival := ids[i*rivals+j]; rival >= 0 {
				c.Top = append(c.Top, engine.TokenLogprob{ID: rival,
					Logprob: stats[i].Logprob(values[i*rivals+j])})
			}
		}
	}
	return chosen, nil
}

// Wait gives the tokens of the oldest Sample.
func (s *step) Wait(chosen []engine.SampledToken) error {
	return s.locked(func() error {
		x := s.sampler
		if x == nil || x.waiting == 0 {
			return errors.New("nothing was sampled that could be waited for")
		}
		// one waits: the slot before next; two: next itself, which is the older
		slot := &x.slots[(x.next+x.waiting)%2]
		x.waiting--
		return slot.wait(chosen)
	})
}

func (s *sampleSlot) wait(chosen []engine.SampledToken) error {
	if err := s.done.Synchronize(); err != nil {
		return fmt.Errorf("wait for the tokens: %w", err)
	}
	if copy(chosen, s.chosen) == 0 {
		for i, id := range engine.Numbers[int32](s.out.Bytes())[:len(chosen)] {
			chosen[i] = engine.SampledToken{ID: id}
		}
	}
	return nil
}
