// dump writes a recorded Program, its weights, and steps of a golden with the logits they must
// give, as one file that asan/replay.cpp runs without Go: dump [-compute exact|int8] [-dense q8]
// [-kv fp8] GOLDEN-FOLDER > FILE.
//
// The file is lines of words, some followed by raw little-endian bytes:
//
//	shape HIDDEN INTERMEDIATE HEADS KV-HEADS HEAD-DIM EXPERTS EXPERTS-PER-TOKEN PAGE-TOKENS
//	      PAGE-BYTES KV-BF16
//	buffer ID BYTES                     scratch and cache, filled with NaN
//	weight ID BYTES + bytes
//	op KIND EXTENT NUMBER... : ID...    numbers are those of the C function, in its order;
//	      ID -1 is a null pointer
//	step ROWS LOGIT-ROWS TABLES VOCAB TOLERANCE + int32 tokens, positions, tables, full_at,
//	      window_at, logit_row; float32 logits
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/engine/golden"
)

func main() {
	compute := flag.String("compute", engine.Exact, "compute mode")
	kv := flag.String("kv", "", "type of the KV cache, the mode's own by default")
	dense := flag.String("dense", "", "form of the dense weights")
	tiles := flag.Bool("tiles", false, "rows of prompts go by tiles")
	flag.Parse()
	w := bufio.NewWriter(os.Stdout)
	err := dump(w, flag.Arg(0), engine.Settings{Compute: *compute, Dense: *dense,
		Dense12: *dense == engine.DenseQ8, KVCacheDtype: *kv, Tiles: *tiles,
		Pages: pages})
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dump:", err)
		os.Exit(1)
	}
}

const (
	maxRows = 160
	pages   = 64
)

func dump(w io.Writer, dir string, o engine.Settings) error {
	ckpt, err := checkpoint.Open(filepath.Join(dir, "checkpoint"))
	if err != nil {
		return err
	}
	defer ckpt.Close()
	cases, err := golden.Read(dir, ckpt.Spec.Vocab)
	if err != nil {
		return err
	}
	p, err := engine.Record(ckpt.Spec, o, maxRows)
	if err != nil {
		return err
	}
	if err := writeProgram(w, p, ckpt); err != nil {
		return err
	}
	pool := enginetest.NewPages(pages).WithTwins(p.Settings.KVCacheDtype)
	for _, c := range cases {
		if c.Name != "len31" && c.Name != "len129" {
			continue
		}
		if err := writeCase(w, p, pool, c); err != nil {
			return err
		}
	}
	return nil
}

func writeProgram(w io.Writer, p *engine.Program, ckpt *checkpoint.Checkpoint) error {
	var dense *q8.Copy
	if p.Settings.Dense == engine.DenseQ8 {
		var err error
		if dense, err = q8.Open(ckpt, ""); err != nil {
			return err
		}
		defer dense.Close()
	}
	s := p.Spec
	kv := map[string]int{"f32": 0, "bf16": 1, engine.KVFP8: 2}[p.Settings.KVCacheDtype]
	fmt.Fprintln(w, "shape", s.Hidden, s.Intermediate, s.Heads, s.KVHeads, s.HeadDim, s.Experts,
		s.ExpertsPerToken,
		engine.PageTokens, engine.PageBytes(s, p.Settings.KVCacheDtype), kv)
	ids := map[*engine.Buffer]int{nil: -1}
	for i, b := range p.Buffers {
		ids[b] = i
		switch b.Home {
		case engine.Weight:
			fmt.Fprintln(w, "weight", i, p.BytesOf(b))
			if name, quantised := strings.CutSuffix(b.Name, q8.Suffix); quantised {
				w.Write(dense.Tensor(name))
			} else {
				t, err := ckpt.Tensor(b.Name)
				if err != nil {
					return err
				}
				w.Write(t.Data)
			}
		case engine.Logits:
			ids[b] = -1
		default:
			fmt.Fprintln(w, "buffer", i, p.BytesOf(b))
		}
	}
	for _, op := range p.Ops {
		writeOp(w, op, ids)
	}
	return nil
}

// writeOp names the numbers that the C function of this kind takes.
func writeOp(w io.Writer, op *engine.Op, ids map[*engine.Buffer]int) {
	extent := 0
	switch op.Out[0].Extent {
	case engine.PerSlot:
		extent = 1
	case engine.PerLogit:
		extent = 2
	}
	kind := op.Kind.String()
	if op.Kind == engine.Quantize && op.Out[0].Type == engine.I16 {
		kind += "_q12"
	}
	if op.Kind == engine.LinearQ8 && op.In[0].Type == engine.I8 {
		kind += "_q8"
	}
	fmt.Fprint(w, "op ", kind, " ", extent)
	switch op.Kind {
	case engine.Angles:
		fmt.Fprintf(w, " %x", op.Scale)
		for _, f := range op.Frequencies {
			fmt.Fprintf(w, " %x", f)
		}
	case engine.Norm:
		fmt.Fprintf(w, " %d %x", op.In[0].Width, op.Eps)
	case engine.Linear, engine.LinearQ8:
		fmt.Fprint(w, " ", op.In[0].Width, " ", number(op.Add))
		for i := range len(op.W) / 2 {
			fmt.Fprint(w, " ", op.PartRows(i))
		}
	case engine.WriteKV:
		fmt.Fprint(w, " ", op.CacheLayer, " ", op.Window, " ", number(op.Twin))
	case engine.Attend:
		fmt.Fprintf(w, " %d %d %d %x", op.CacheLayer, op.Window, number(op.Twin), op.Scale)
	case engine.Quantize:
		fmt.Fprint(w, " ", op.In[0].Width)
	case engine.Round:
		fmt.Fprint(w, " ", op.In[0].Width, " ", op.Out[0].Width, " ",
			number(op.In[0].Extent == engine.PerSlot))
	case engine.GateUp:
		fmt.Fprintf(w, " %x", op.Limit)
	}
	fmt.Fprint(w, " :")
	for _, list := range [][]*engine.Buffer{op.Out, op.In, op.W} {
		for _, b := range list {
			fmt.Fprint(w, " ", ids[b])
		}
	}
	fmt.Fprintln(w)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// writeCase feeds two copies of the prompt side by side: most of it, then the rest; in between
// another sequence has one row.
func writeCase(w io.Writer, p *engine.Program, pool *enginetest.Pages, c golden.Case) error {
	a, b := pool.NewSequence(p.Spec), pool.NewSequence(p.Spec)
	defer a.Close()
	defer b.Close()
	cut := len(c.Tokens) - 7
	for _, part := range []struct{ from, to int }{{0, cut}, {cut, len(c.Tokens)}} {
		var batch engine.Batch
		var want [][]float32
		long, err := a.Extend(part.to - part.from)
		if err != nil {
			return err
		}
		short, err := b.Extend(1)
		if err != nil {
			return err
		}
		if p.Settings.Tiles {
			long.Prompt = long.Rows
		}
		batch.Seqs, batch.Twins = []engine.SeqRows{long, short}, pool.Twins
		batch.Tokens = append(append(batch.Tokens, c.Tokens[part.from:part.to]...),
			c.Tokens[b.Length-1])
		for i, position := range c.Positions {
			if at := int(position); at >= part.from && at < part.to {
				batch.LogitRows = append(batch.LogitRows, int32(at-part.from))
				want = append(want, c.Logits[i])
			}
			if int(position) == b.Length-1 {
				batch.LogitRows = append(batch.LogitRows, int32(part.to-part.from))
				want = append(want, c.Logits[i])
			}
		}
		writeStep(w, p, &batch, want)
	}
	return nil
}

func writeStep(w io.Writer, p *engine.Program, b *engine.Batch, want [][]float32) {
	var positions, tables, fullAt, windowAt, prompts []int32
	for _, q := range b.Seqs {
		full := int32(len(tables))
		tables = append(tables, q.Full...)
		window := int32(len(tables))
		tables = append(tables, q.Window...)
		for r := range q.Rows {
			positions, fullAt, windowAt = append(positions, q.Start+r), append(fullAt, full),
				append(windowAt, window)
			prompts = append(prompts, int32(number(r < q.Prompt)))
		}
	}
	tolerance := 1e-3
	if p.Settings.Compute != engine.Exact || p.Settings.KVCacheDtype == engine.KVFP8 {
		tolerance = 4 // a nearly tied expert may change; this run is about memory
	}
	fmt.Fprintln(w, "step", len(b.Tokens), len(b.LogitRows), len(tables), len(b.Twins),
		p.Spec.Vocab, tolerance)
	for _, list := range [][]int32{b.Tokens, positions, tables, fullAt, windowAt, b.Twins,
		b.LogitRows, prompts} {
		w.Write(engine.Bytes(list))
	}
	for _, row := range want {
		w.Write(engine.Bytes(row))
	}
}
