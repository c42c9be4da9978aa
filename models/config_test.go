package models

// Hostile config.json: any content is refused in one line or gives a Spec whose sizes can be
// computed.

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzParseSpec(f *testing.F) {
	for _, name := range []string{"T1", "T2"} {
		folder := filepath.Join("..", "testdata", "model", name, "checkpoint")
		var texts [2][]byte
		for i, file := range []string{"config.json", "generation_config.json"} {
			text, err := os.ReadFile(filepath.Join(folder, file))
			if err != nil {
				f.Fatal(err)
			}
			texts[i] = text
		}
		f.Add(texts[0], texts[1])
		f.Add(bytes.ReplaceAll(texts[0], []byte("128"), []byte("65536")),
			[]byte(`{"eos_token_id": 1}`))
	}
	f.Add([]byte(`{"model_type": "\u001b[2J\n"}`), []byte(nil))
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		s, err := ParseSpec(config, generation)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool {
				return r < ' ' ||
					r == 0x7f
			}) {
				t.Errorf("control characters in %q", err)
			}
			return
		}
		if s.Heads%s.KVHeads != 0 || s.Hidden%BlockSize != 0 || s.ExpertsPerToken > s.Experts ||
			s.RopeTheta <= 1 || s.NormEps <= 0 {
			t.Errorf("spec %+v is taken", s)
		}
		for _, id := range s.EOS {
			if id < 0 || int(id) >= s.Vocab {
				t.Errorf("EOS %d is taken in a vocabulary of %d", id, s.Vocab)
			}
		}
		if n := s.WeightBytes(); n <= 0 {
			t.Errorf("spec %+v has %d bytes", s, n)
		}
	})
}

// The largest sizes of a config.json do not overflow.
func TestLargestSpec(t *testing.T) {
	s := released("largest", maxLayers, maxExperts)
	s.Hidden, s.Intermediate, s.Heads, s.KVHeads, s.Vocab = maxWidth, maxWidth, maxWidth/headDim,
		maxWidth/headDim, maxVocab
	// Experts alone: layers x experts x 3 matrices of width^2, 17 bytes for each 32 elements.
	least := float64(maxLayers) * maxExperts * 3 * maxWidth * maxWidth * 17 / 32
	if got := float64(s.WeightBytes()); got < least || got > 1.01*least {
		t.Errorf("%g bytes, want a little over %g", got, least)
	}
}
