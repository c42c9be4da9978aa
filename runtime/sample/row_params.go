// A request's parameters for one token, as the few numbers, edits and mask bits by which it is
// chosen: by Row on the host, or by the device that has the logits.
//
// What must stay true: a device chooses the same token as Row. Bans, held stops and forced tokens
// are bits of the mask, since which of them yield to the mask does not depend on the logits;
// penalties and biases are edits of single logits.

package sample

import (
	"slices"

	"github.com/ossrun/ossrun/runtime/engine"
)

// MaxEdits is how many logits the next choice changes, at most.
func (s *Sampler) MaxEdits() int { return len(s.seen) + len(s.bias) }

// Levels of leniency: a request's restrictions yield to the mask in this order, so that a mask with
// a token in it always has a choice.
const (
	strict       = iota
	withoutForce // +100 biases only add
	withoutStops // MinTokens is not held
	withoutBans  // -100 biases only add
	leniencies
)

// RowParams says how the token for a position is chosen. Its result shares slices with the sampler,
// or mask itself, and is valid until the next call. The error is ErrNothingAllowed.
func (s *Sampler) RowParams(position int, mask []uint64) (engine.SamplingParams, error) {
	c := engine.SamplingParams{Logprobs: s.p.Logprobs, Draw: engine.Draw{
		Temperature: s.p.Temperature, TopP: s.p.TopP, MinP: s.p.MinP,
		TopK: int32(max(0, min(s.p.TopK, s.vocab))), Seed: s.p.Seed, Position: int64(position)}}
	for leniency := range leniencies {
		c.Mask = s.allowed(mask, leniency)
		if c.Mask == nil || slices.ContainsFunc(c.Mask,
			func(word uint64) bool { return word != 0 }) {
			s.edits = s.editsFor(s.edits[:0], leniency)
			c.Edits = s.edits
			return c, nil
		}
	}
	return engine.SamplingParams{}, ErrNothingAllowed
}

// Check gives the error of a device that found no token.
func Check(t engine.SampledToken) error {
	switch t.ID {
	case engine.NotFinite:
		return ErrNonFinite
	case engine.NothingAllowed:
		return ErrNothingAllowed
	}
	return nil
}

// allowed is the mask without the request's banned tokens; nil allows all.
func (s *Sampler) allowed(mask []uint64, leniency int) []uint64 {
	banned := s.banned[:0]
	forced := false
	for _, b := range s.bias {
		switch {
		case b.bias <= -biasLimit && leniency < withoutBans:
			banned = append(banned, b.id)
		case b.bias >= biasLimit && leniency < withoutForce:
			forced = true
		}
	}
	if s.generated < s.p.MinTokens && leniency < withoutStops {
		for _, id := range s.stops {
			if id >= 0 && int(id) < s.vocab {
				banned = append(banned, id)
			}
		}
	}
	s.banned = banned
	complete := mask == nil || len(mask) == blocks(s.vocab) && s.vocab%blockTokens == 0
	if !forced && len(banned) == 0 && complete {
		return mask
	}
	if len(s.words) != blocks(s.vocab) {
		s.words = make([]uint64, blocks(s.vocab))
	}
	for i := range s.words {
		switch {
		case mask == nil:
			s.words[i] = ^uint64(0)
		case i < len(mask):
			s.words[i] = mask[i]
		default:
			s.words[i] = 0
		}
	}
	if past := s.vocab % blockTokens; past != 0 {
		s.words[len(s.words)-1] &= 1<<past - 1
	}
	if forced {
		s.keepForced()
	}
	for _, id := range banned {
		s.words[id/blockTokens] &^= 1 << (id % blockTokens)
	}
	return s.words
}

// keepForced leaves only tokens with a bias of +100 in s.words.
func (s *Sampler) keepForced() {
	biases := s.bias[:0:0]
	for _, b := range s.bias {
		if b.bias >= biasLimit && s.words[b.id/blockTokens]>>(b.id%blockTokens)&1 != 0 {
			biases = append(biases, b)
		}
	}
	clear(s.words)
	for _, b := range biases {
		s.words[b.id/blockTokens] |= 1 << (b.id % blockTokens)
	}
}

// editsFor appends the penalties and biases, one edit a token.
func (s *Sampler) editsFor(list []engine.Edit, leniency int) []engine.Edit {
	bias := s.bias
	added := func(b tokenBias) bool { return b.bias > -biasLimit || leniency >= withoutBans }
	for _, c := range s.seen {
		e := engine.Edit{ID: c.id, Repetition: s.p.RepetitionPenalty}
		if c.generated > 0 {
			e.Penalty = float32(float64(s.p.FrequencyPenalty)*float64(c.generated) +
				float64(s.p.PresencePenalty))
		}
		if i, ok := slices.BinarySearchFunc(bias, c.id, func(b tokenBias, id int32) int {
			return int(b.id) - int(id)
		}); ok && added(bias[i]) {
			e.Bias = bias[i].bias
		}
		list = append(list, e)
	}
	for _, b := range bias {
		if _, seen := s.places[b.id]; !seen && added(b) {
			list = append(list, engine.Edit{ID: b.id, Repetition: 1, Bias: b.bias})
		}
	}
	return list
}
