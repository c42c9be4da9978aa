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
	w := writer{to: make([]byte, 4096)}
	writeChoices(&w, sampleChoices())
	writeBatch(&w, sampleBatch())
	writeFrom(&w, []int32{-1, 0, 1})
	f.Add(w.to[:w.n])
	f.Fuzz(func(t *testing.T, data []byte) {
		r := reader{from: data}
		choices := readChoices(&r)
		var b engine.Batch
		readBatch(&r, &b)
		if from, err := readFrom(&r, len(b.Tokens)); err == nil && from != nil &&
			len(from) != len(b.Tokens) {
			t.Fatal("from other rows")
		}
		if len(choices)*leastChoice > len(data) || len(b.Seqs)*16 > len(data) ||
			4*len(b.Tokens) > len(data) {
			t.Fatalf("%d choices, %d sequences, %d tokens of %d bytes", len(choices), len(b.Seqs),
				len(b.Tokens), len(data))
		}
		r = reader{from: data}
		if chosen := readChosen(&r); 12*len(chosen) > len(data) {
			t.Fatalf("%d tokens of %d bytes", len(chosen), len(data))
		}
	})
}
