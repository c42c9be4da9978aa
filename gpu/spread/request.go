package spread

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ossrun/ossrun/gpu/placement"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// What is asked for, as another process asks for it: a text.
//
// What must stay true: whatever the text is, reading and planning it ends soon, without a panic and without a size that overflows.

// Request is a model that is to be placed.
type Request struct {
	Spec    models.Spec
	Options placement.Options
	Threads int // of the CPU, for the experts that it computes; 0: all
}

// Text is the request for another process.
func (r Request) Text() (json.RawMessage, error) { return json.Marshal(r) }

// read takes a text. Both sides are of one build, so a name that is not known is a mistake.
func read(text json.RawMessage) (r Request, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err = d.Decode(&r); err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something stands behind it")
		}
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return Request{}, fmt.Errorf("how the model is to be placed cannot be read: %w", err)
	}
	return r, nil
}

// Bounds of what is planned: the bytes of a thousand layers of the largest sides, and of the steps, stay below 2^63.
const (
	mostLayers  = 1 << 10
	mostExperts = 1 << 10
	mostSide    = 1 << 16
	mostLong    = 1 << 22 // of a vocabulary, and of a context
	mostRows    = 1 << 16
	mostAtOnce  = 1 << 12 // sequences and threads
)

// check refuses what no model and no machine has.
func (r Request) check() error {
	s, o := r.Spec, r.Options
	for _, x := range []struct {
		what            string
		n, least, bound int
	}{
		{"layers", s.Layers, 1, mostLayers}, {"experts", s.Experts, 1, mostExperts}, {"experts a token", s.ExpertsPerToken, 1, s.Experts},
		{"a width", s.Hidden, 1, mostSide}, {"an experts' width", s.Intermediate, 1, mostSide}, {"heads", s.Heads, 1, mostSide}, {"KV heads", s.KVHeads, 1, s.Heads},
		{"a head", s.HeadDim, 2, mostSide}, {"a vocabulary", s.Vocab, 1, mostLong}, {"a window", s.Window, 1, mostLong}, {"positions", s.MaxPosition, 1, mostLong},
		{"tokens of context", o.Context, 0, mostLong}, {"sequences", o.Sequences, 0, mostAtOnce}, {"rows of a step", o.Rows, 0, mostRows}, {"rows of logits", o.Logits, 0, mostRows},
		{"layers' experts on the CPU", o.CPUExperts, 0, s.Layers}, {"threads", r.Threads, 0, mostAtOnce},
	} {
		if x.n < x.least || x.n > x.bound {
			return fmt.Errorf("%s of %d: %d to %d can be", x.what, x.n, x.least, x.bound)
		}
	}
	if !(o.Utilization >= 0 && o.Utilization <= 1) {
		return fmt.Errorf("%v of a card's memory", o.Utilization)
	}
	for _, x := range []struct {
		what, is string
		of       []string
	}{
		{"compute mode", o.Compute, []string{"", engine.Exact, engine.Int8, engine.Rounded, engine.MX}}, {"KV type", o.KV, []string{"", "bf16", "f32", engine.KVFP8}},
		{"form of the dense weights", o.Dense, []string{"", engine.DenseBF16, engine.DenseQ8}},
	} {
		if !slices.Contains(x.of, x.is) {
			return fmt.Errorf("the %s %q is unknown", x.what, x.is)
		}
	}
	return nil
}
