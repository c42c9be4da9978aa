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
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestTilesDoNotSeeNeighbours: rows of prompts go by tiles and generated ones do not, and each has
// the same bits whatever else is in its step, however a prompt is cut.
func TestTilesDoNotSeeNeighbours(t *testing.T) {
	needISA(t, "amx")
	ckpt := hosttest.Must(checkpoint.Open(filepath.Join(testdata, "T1", "checkpoint")))(t)
	defer ckpt.Close()
	cases := hosttest.Must(golden.Read(testdata+"T1", ckpt.Spec.Vocab))(t)
	var tokens []int32
	for _, c := range cases {
		if c.Name == "len128" {
			tokens = c.Tokens
		}
	}
	const prompt, generated = 40, 3
	for _, dense := range []string{engine.DenseBF16, engine.DenseQ8} {
		s := engine.Settings{ISA: "amx", Compute: engine.Int8, Dense: dense, Pages: 128,
			MaxNumBatchedTokens: 256}
		dev := open(t, 3)
		if !s.On(dev).Tiles {
			t.Fatal("the device has no tiles")
		}
		eng := hosttest.Must(engine.On(dev).Load(t.Context(), ckpt, s, nil))(t)
		pages := enginetest.NewPages(128)
		// The other sequences of a step: of its rows so many are of a prompt.
		run := func(chunk int, others ...engine.SeqRows) (bits []string) {
			q, vocab := pages.NewSequence(eng.Spec()), eng.Spec().Vocab
			defer q.Close()
			step := func(from, n, of int) {
				var b engine.Batch
				for i, other := range others {
					beside := pages.NewSequence(eng.Spec())
					defer beside.Close()
					part := hosttest.Must(beside.Extend(int(other.Rows)))(t)
					part.Prompt = other.Prompt
					b.Seqs = append(b.Seqs, part)
					b.Tokens = append(b.Tokens, tokens[50+i:50+i+int(other.Rows)]...)
				}
				part := hosttest.Must(q.Extend(n))(t)
				part.Prompt = int32(of)
				b.Seqs = append(b.Seqs, part)
				for i := range n {
					b.LogitRows = append(b.LogitRows, int32(len(b.Tokens)+i))
				}
				b.Tokens = append(b.Tokens, tokens[from:from+n]...)
				out := make([]float32, n*vocab)
				hosttest.Check(t, eng.Step(t.Context(), &b, out))
				for ; len(out) > 0; out = out[vocab:] {
					sum := uint64(14695981039346656037)
					for _, v := range out[:vocab] {
						sum = (sum ^ uint64(math.Float32bits(v))) * 1099511628211
					}
					bits = append(bits, fmt.Sprintf("%x", sum))
				}
			}
			for at := 0; at < prompt; at += chunk {
				n := min(chunk, prompt-at)
				step(at, n, n)
			}
			for i := range generated {
				step(prompt+i, 1, 0)
			}
			return bits
		}
		want := run(prompt)
		for name, got := range map[string][]string{
			"in chunks":            run(7),
			"beside a prompt":      run(prompt, engine.SeqRows{Rows: 35, Prompt: 35}),
			"beside generated":     run(33, engine.SeqRows{Rows: 1}, engine.SeqRows{Rows: 5}),
			"beside both, in tens": run(10, engine.SeqRows{Rows: 9, Prompt: 4}),
		} {
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("dense %s, %s: position %d has other bits", dense, name, i)
					break
				}
			}
		}
		// Without tiles the prompt's rows are others.
		s.Deterministic = true
		if s.On(dev).Tiles {
			t.Error("results that depend on nothing else are asked for, and tiles are on")
		}
		hosttest.Check(t, eng.Close())
	}
}
