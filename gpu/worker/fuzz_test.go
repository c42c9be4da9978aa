package worker

import (
	"bytes"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Bytes from the other side: whatever they are, they are read or refused, with memory in proportion
// to them.

func FuzzMessage(f *testing.F) {
	f.Add((&message{kind: load, number: 1, text: []byte(`{"Path":"x"}`)}).append(nil))
	f.Add((&message{kind: done, number: 1, shared: 99}).append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m message
		from := bytes.NewReader(data)
		for m.read(from) == nil {
			if again := m.append(nil); !bytes.Contains(data, again) {
				t.Fatalf("%x was read from %x", again, data)
			}
			decodeFault(m.text)
		}
		if cap(m.text) > 2*len(data)+128<<10 {
			t.Fatalf("%d bytes of memory for %d", cap(m.text), len(data))
		}
	})
}

// FuzzStep: both halves of an advance, a batch, and the tokens.
func FuzzStep(f *testing.F) {
	slot := make([]byte, 4096)
	w := codec{slot: slot}
	sample, rows := sampleChoices(), []int32{-1, 0, 1}
	choicesIn(&w, &sample)
	batchIn(&w, sampleBatch())
	list(&w, &rows)
	f.Add(slot[:len(slot)-len(w.slot)])
	f.Fuzz(func(t *testing.T, data []byte) {
		r := codec{slot: data, reads: true}
		var choices []engine.SamplingParams
		var b engine.Batch
		var from []int32
		choicesIn(&r, &choices)
		batchIn(&r, &b)
		if list(&r, &from); 4*len(from) > len(data) {
			t.Fatalf("%d rows of %d bytes", len(from), len(data))
		}
		if len(choices)*leastChoice > len(data) || len(b.Seqs)*16 > len(data) ||
			4*len(b.Tokens) > len(data) {
			t.Fatalf("%d choices, %d sequences, %d tokens of %d bytes", len(choices), len(b.Seqs),
				len(b.Tokens), len(data))
		}
		r = codec{slot: data, reads: true}
		var chosen []engine.SampledToken
		if tokensIn(&r, &chosen); 12*len(chosen) > len(data) {
			t.Fatalf("%d tokens of %d bytes", len(chosen), len(data))
		}
	})
}
