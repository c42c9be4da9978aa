// Package sample chooses the next token from a row of logits.
//
// What must stay true:
//   - A choice is a function of the logits, the parameters, the tokens so far and (seed, position).
//     It does not depend on what else is in the batch, on when it is made or on how often: Next
//     changes nothing, Accept records a token.
//   - Equal logits go by the lower id.
//   - A logit that is not finite is an error, never a token.
//   - Nothing is allocated per token once the buffers are warm, except the rivals of a token that
//     asked for logprobs.
//
// Params documents the order of the steps. Costs at a vocabulary of 201,088 are in
// sampler_test.go's benchmarks.
package sample

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/ossrun/ossrun/runtime/engine"
)

// ErrNonFinite is a row of logits that holds a NaN or an infinity: the device or the weights are
// broken.
var ErrNonFinite = errors.New("non_finite_logits: the model's output is not a finite number")

// ErrNothingAllowed is a mask without a token.
var ErrNothingAllowed = errors.New("no token is allowed by the mask")

// Sampler holds the parameters of one sequence and the tokens it has so far. It is used by one
// goroutine at a time.
type Sampler struct {
	p     Params
	vocab int
	bias  []tokenBias // by id
	stops []int32     // not chosen before MinTokens
	// tokens that a penalty looks at, in the order of their first appearance
	seen      []tokenCount
	places    map[int32]int32 // id to its place in seen
	generated int

	words  []uint64      // of the mask that RowParams makes
	edits  []engine.Edit // the same of its edits
	banned []int32
}

type tokenBias struct {
	id   int32
	bias float32
}

type tokenCount struct{ id, generated int32 }

// edit is the original value of a changed logit.
type edit struct {
	id    int32
	logit float32
}

// workspace is the temporary memory of a choice. It is shared by all samplers through a pool, since
// 256 sequences would otherwise hold a buffer of the vocabulary's size each.
type workspace struct {
	model      []float32 // [blocks] highest logit of the row before edits
	maxima     []float32 // [blocks] highest allowed logit after the edits
	sums       []float64 // [blocks] weights of the kept tokens
	undo       []edit
	candidates []candidate
	buckets    [buckets]float64
}

func (ws *workspace) fit(vocab int) {
	n := blocks(vocab)
	if len(ws.sums) != n {
		ws.model, ws.maxima, ws.sums = make([]float32, n), make([]float32, n), make([]float64, n)
	}
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// New makes the sampler of a sequence over vocab tokens. promptIDs count for the repetition
// penalty; they are not kept. Tokens outside the vocabulary in LogitBias are ignored; Params.Check
// finds them.
func New(p Params, vocab int, promptIDs []int32) *Sampler {
	p.RepetitionPenalty = cmp.Or(p.RepetitionPenalty, 1)
	s := &Sampler{p: p, vocab: vocab}
	for id, b := range p.LogitBias {
		if id >= 0 && int(id) < vocab && b != 0 {
			s.bias = append(s.bias, tokenBias{id, b})
		}
	}
	slices.SortFunc(s.bias, func(a, b tokenBias) int { return int(a.id) - int(b.id) })
	if p.RepetitionPenalty != 1 {
		for _, id := range promptIDs {
			s.entry(id)
		}
	}
	return s
}

// HoldStops names the ids that must not be chosen before Params.MinTokens tokens are generated.
func (s *Sampler) HoldStops(ids []int32) { s.stops = slices.Clone(ids) }

// entry returns the entry of a token that a penalty looks at, nil for one outside the vocabulary.
func (s *Sampler) entry(id int32) *tokenCount {
	if id < 0 || int(id) >= s.vocab {
		return nil
	}
	index, ok := s.places[id]
	if !ok {
		if s.places == nil {
			s.places = make(map[int32]int32)
		}
		index = int32(len(s.seen))
		s.places[id] = index
		s.seen = append(s.seen, tokenCount{id: id})
	}
	return &s.seen[index]
}

// Logprobs tells whether they are asked for, so that a choice reads every logit.
func (s *Sampler) Logprobs() bool { return s.p.Logprobs >= 0 }

// Accept records the token that follows, sampled or forced.
func (s *Sampler) Accept(id int32) {
	s.generated++
	if s.p.RepetitionPenalty != 1 || s.p.FrequencyPenalty != 0 || s.p.PresencePenalty != 0 {
		if c := s.entry(id); c != nil {
			c.generated++
		}
	}
}

// Next chooses the token for a position of the sequence (its prompt starts at 0). logits is
// [vocab]; Next may write to it while it runs and leaves it as it was. mask has a bit for each
// allowed token, the lowest bit of a word first; nil allows all. The error is ErrNonFinite,
// ErrNothingAllowed, or says that logits has the wrong length.
func (s *Sampler) Next(logits []float32, position int, mask []uint64) (engine.SampledToken, error) {
	if len(logits) != s.vocab {
		return engine.SampledToken{}, fmt.Errorf("a row of %d logits for a vocabulary of %d",
			len(logits), s.vocab)
	}
	p, err := s.RowParams(position, mask)
	if err != nil {
		p.Mask = make([]uint64, blocks(s.vocab)) // broken logits are reported first
	}
	return Row(logits, p)
}

// Row chooses a token from a row of logits by the parameters that a device would get. Logprobs, if
// requested, are of the model's own distribution, before the edits, the mask and the temperature,
// as vLLM and OpenAI report them.
func Row(logits []float32, p engine.SamplingParams) (engine.SampledToken, error) {
	ws := workspaces.Get().(*workspace)
	defer workspaces.Put(ws)
	ws.fit(len(logits))
	if !scan(logits, ws.model) {
		return engine.SampledToken{}, ErrNonFinite
	}
	ws.apply(p.Edits, logits)
	id, err := ws.choose(logits, p)
	ws.restore(logits)
	if err != nil {
		return engine.SampledToken{}, err
	}
	c := engine.SampledToken{ID: id}
	if p.Logprobs >= 0 {
		ws.report(&c, logits, p.Logprobs)
	}
	return c, nil
}

func (ws *workspace) choose(logits []float32, p engine.SamplingParams) (int32, error) {
	r := row{logits: logits, maxima: ws.maxima, mask: p.Mask}
	ws.findMaxima(&r)
	id, highest := r.best()
	if id < 0 {
		return 0, ErrNothingAllowed
	}
	t := p.Temperature
	if t == 0 {
		return id, nil
	}
	c, w := floor(highest, t), newWeights(highest, t)
	if k := int(p.TopK); k > 0 && k < len(logits) {
		ws.candidates = r.top(k, ws.candidates)
		last := ws.candidates[len(ws.candidates)-1]
		c = c.stricter(cut(last))
	}
	minP := c
	if p.MinP > 0 {
		minP = c.stricter(minPCut(highest, t, p.MinP))
	}
	if p.TopP < 1 {
		c = r.topPCut(c, w, float64(p.TopP), ws)
	}
	c = c.stricter(minP)

	total := r.mass(c, w, ws.sums)
	return r.draw(c, w, ws.sums, total, Uniform(p.Seed, int(p.Position), 0)), nil
}

// apply changes logits; restore takes it back.
func (ws *workspace) apply(edits []engine.Edit, logits []float32) {
	for _, e := range edits {
		v := float64(logits[e.ID])
		if v > 0 {
			v /= float64(e.Repetition)
		} else {
			v *= float64(e.Repetition)
		}
		v = min(max(v-float64(e.Penalty), -math.MaxFloat32), math.MaxFloat32)
		ws.undo = append(ws.undo, edit{e.ID, logits[e.ID]})
		logits[e.ID] = float32(v) + e.Bias
	}
}

func (ws *workspace) restore(logits []float32) {
	for _, e := range ws.undo {
		logits[e.id] = e.logit
	}
	ws.undo = ws.undo[:0]
}

// findMaxima finds the maxima of r's blocks: those of the model's logits, except for blocks that an
// edit or the mask touched.
func (ws *workspace) findMaxima(r *row) {
	if len(ws.undo) > len(r.maxima) {
		for b := range r.maxima {
			r.refresh(b)
		}
		return
	}
	copy(r.maxima, ws.model)
	if r.mask != nil {
		for b := range r.maxima {
			if b >= len(r.mask) || r.mask[b] != ^uint64(0) {
				r.refresh(b)
			}
		}
	}
	for _, e := range ws.undo {
		r.refresh(int(e.id) / blockTokens)
	}
}

// Score is a token that is known, with its logprob and so many rivals by the model's own logits.
func Score(logits []float32, id int32, rivals int) (engine.SampledToken, error) {
	ws := workspaces.Get().(*workspace)
	defer workspaces.Put(ws)
	ws.fit(len(logits))
	c := engine.SampledToken{ID: id}
	if !scan(logits, ws.model) {
		return c, ErrNonFinite
	}
	ws.report(&c, logits, rivals)
	return c, nil
}

// report fills in the logprobs of c, and of so many rivals, from the model's own logits.
func (ws *workspace) report(c *engine.SampledToken, logits []float32, rivals int) {
	r := row{logits: logits, maxima: ws.model}
	_, highest := r.best()
	total := r.mass(floor(highest, 1), newWeights(highest, 1), ws.sums)
	norm := float64(highest) + math.Log(total)
	c.Logprob = float32(float64(logits[c.ID]) - norm)
	if rivals == 0 {
		return
	}
	ws.candidates = r.top(rivals, ws.candidates)
	c.Top = make([]engine.TokenLogprob, len(ws.candidates))
	for i, t := range ws.candidates {
		c.Top[i] = engine.TokenLogprob{ID: t.id, Logprob: float32(float64(t.logit) - norm)}
	}
}
