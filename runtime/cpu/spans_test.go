package cpu_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

// TestSpansOfAContext: after a long prompt a row's logits are the same bits on any number of
// threads, alone or with other rows, though many threads share one row's context and one does
// not.
func TestSpansOfAContext(t *testing.T) {
	const prompt, rows = 1270, 20 // of 256 positions a span: the fifth ends among the rows
	ckpt, err := checkpoint.Open(filepath.Join(testdata, "T1", "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	cases, err := golden.Read(testdata+"T1", ckpt.Spec.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	var tokens []int32
	for _, c := range cases {
		if len(c.Tokens) >= prompt+rows {
			tokens = c.Tokens[:prompt+rows]
		}
	}
	if tokens == nil {
		t.Fatalf("no prompt of %d tokens", prompt+rows)
	}
	for _, kv := range []string{"f32", "bf16", engine.KVFP8} {
		var want [][]float32
		for _, test := range []struct{ threads, chunk, at int }{
			{1, prompt, 1}, {3, 400, 1}, {16, 512, 1}, {16, 512, 3}, {16, 77, rows}, {1, 512, rows},
		} {
			name := fmt.Sprintf("%s, %d threads, %d rows at a time", kv, test.threads, test.at)
			got, err := behind(t, ckpt, engine.Settings{KVCacheDtype: kv}, test.threads,
				tokens[:prompt], tokens[prompt:], test.chunk, test.at)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want == nil {
				want = got
			}
			for i := range want {
				for j, w := range want[i] {
					if g := got[i][j]; math.Float32bits(g) != math.Float32bits(w) {
						t.Fatalf("%s: position %d, token %d: %v, not %v", name, prompt+i, j, g, w)
					}
				}
			}
		}
	}
}

// behind feeds a prompt in chunks and then rows so many at a time; it returns the rows' logits.
func behind(t *testing.T, ckpt *checkpoint.Checkpoint, s engine.Settings, threads int, prompt,
	rows []int32, chunk, at int) ([][]float32, error) {
	s.MaxNumBatchedTokens, s.Pages = max(chunk, at), 128
	eng, err := engine.On(open(t, threads)).Load(t.Context(), ckpt, s, nil)
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	pages := enginetest.NewPages(128).WithTwins(s.KVCacheDtype)
	q := pages.NewSequence(eng.Spec())
	defer q.Close()
	var logits [][]float32
	vocab := eng.Spec().Vocab
	step := func(tokens []int32, keep bool) error {
		part, err := q.Extend(len(tokens))
		if err != nil {
			return err
		}
		b := engine.Batch{Tokens: tokens, Seqs: []engine.SeqRows{part}, Twins: pages.Twins}
		if keep {
			for i := range tokens {
				b.LogitRows = append(b.LogitRows, int32(i))
			}
		}
		out := make([]float32, len(b.LogitRows)*vocab)
		if err := eng.Step(t.Context(), &b, out); err != nil {
			return err
		}
		for ; len(out) > 0; out = out[vocab:] {
			logits = append(logits, out[:vocab])
		}
		return nil
	}
	for len(prompt) > 0 {
		n := min(chunk, len(prompt))
		if err := step(prompt[:n], false); err != nil {
			return nil, err
		}
		prompt = prompt[n:]
	}
	for len(rows) > 0 {
		n := min(at, len(rows))
		if err := step(rows[:n], true); err != nil {
			return nil, err
		}
		rows = rows[n:]
	}
	return logits, nil
}
