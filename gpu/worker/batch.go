package worker

import (
	"errors"
	"unsafe"

	"github.com/ossrun/ossrun/runtime/engine"
)

// The contents of a slot of shared memory: a step's batch, how tokens are chosen, and the tokens,
// in the machine's order of bytes. Lists begin with their length.
//
// What must stay true: each function here both writes and reads, so the two sides agree; the memory
// allocated is in proportion to the bytes read.

var (
	errSlotFull = errors.New("the step does not fit into the memory that is shared with the GPU " +
		"worker")
	errSlotShort = errors.New("a step in the shared memory is cut off")
)

// codec writes values to a slot, or reads them from it.
type codec struct {
	slot  []byte // not read or written yet
	reads bool
	bad   bool // a value did not fit or is missing, and so are those after it
}

// end is the error of a slot with too few bytes, or too many.
func (c *codec) end() error {
	if c.bad {
		return errSlotShort
	}
	if len(c.slot) > 0 {
		return errors.New("a step in the shared memory is longer than its parts")
	}
	return nil
}

// plainData are types whose bytes in a slot are those in memory; any bytes are a valid value.
type plainData interface {
	int | int32 | int64 | uint32 | uint64 | float32 | engine.Edit | engine.TokenLogprob |
		engine.Draw
}

func values[T plainData](c *codec, v []T) {
	data := engine.Bytes(v)
	switch c.bad = c.bad || len(data) > len(c.slot); {
	case c.bad:
		return
	case c.reads:
		copy(data, c.slot)
	default:
		copy(c.slot, data)
	}
	c.slot = c.slot[len(data):]
}

// value is values for one number, without a call to copy: a step has thousands.
func value[T plainData](c *codec, v *T) {
	n := int(unsafe.Sizeof(*v))
	if c.bad = c.bad || n > len(c.slot); c.bad {
		return
	}
	if p := (*T)(unsafe.Pointer(unsafe.SliceData(c.slot))); c.reads {
		*v = *p
	} else {
		*p = *v
	}
	c.slot = c.slot[n:]
}

func flag(c *codec, v *bool) {
	word := uint32(0)
	if *v {
		word = 1
	}
	value(c, &word)
	*v = word != 0
}

// length moves the length of a list, and distinguishes nil from an empty one. In reading it makes
// the list so long; each element takes at least so many bytes.
func length[T any](c *codec, v *[]T, bytes int) {
	n := uint32(0)
	if *v != nil {
		n = uint32(len(*v)) + 1
	}
	value(c, &n)
	if !c.reads {
		return
	}
	c.bad = c.bad || int64(n) > int64(len(c.slot)/bytes)+1
	switch {
	case c.bad || n == 0:
		*v = nil
	case int(n-1) <= cap(*v) && *v != nil:
		*v = (*v)[:n-1]
	default:
		*v = make([]T, n-1)
	}
}

func list[T plainData](c *codec, v *[]T) {
	length(c, v, int(unsafe.Sizeof(*new(T))))
	values(c, *v)
}

// batchIn moves a batch. Of block tables it sends only what the step reads. In reading, the batch's
// memory is used again.
func batchIn(c *codec, b *engine.Batch) {
	list(c, &b.Tokens)
	list(c, &b.LogitRows)
	flag(c, &b.Rebuild)
	list(c, &b.Twins)
	length(c, &b.Seqs, 16)
	for i := range b.Seqs {
		q := &b.Seqs[i]
		value(c, &q.Start)
		value(c, &q.Rows)
		full, window := q.Full, q.Window
		if !c.reads {
			n := (int(q.Start) + int(q.Rows) + engine.PageTokens - 1) / engine.PageTokens
			full, window = full[:min(n, len(full))], window[:min(n, len(window))]
		}
		list(c, &full)
		list(c, &window)
		if c.reads {
			q.Full, q.Window = full, window
		}
	}
}

// leastChoice is the bytes of a choice without mask and edits.
const leastChoice = int(unsafe.Sizeof(engine.Draw{})) + 16

func choicesIn(c *codec, choices *[]engine.SamplingParams) {
	length(c, choices, leastChoice)
	for i := range *choices {
		x := &(*choices)[i]
		value(c, &x.Draw)
		value(c, &x.Logprobs)
		list(c, &x.Edits)
		list(c, &x.Mask)
	}
}

func tokensIn(c *codec, tokens *[]engine.SampledToken) {
	length(c, tokens, 12)
	for i := range *tokens {
		x := &(*tokens)[i]
		value(c, &x.ID)
		value(c, &x.Logprob)
		list(c, &x.Top)
	}
}
