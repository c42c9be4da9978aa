package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A message on the socket: a header of four words, then a text. The header's form may never change,
// since hello must be understood by a worker of any version to be refused.
//
//	kind    one of the list below
//	number  of the request, counted from 1; an answer has its request's
//	text    bytes that follow: JSON for rare requests, empty for a step
//	shared  bytes in the shared memory, in the slot of the number

type kind uint32

// Requests, then the kinds of answer.
const (
	hello  kind = iota + 1
	open        // the GPUs
	memory      // that they have
	room        // for a model
	load        // a model
	step        // a batch, to its logits
	// sample the batch queued before, queue a batch, or both; answered when it samples
	advance
	measure    // a step, every operation of it timed
	tap        // of the last step, read
	readCache  // bytes of the KV pool
	writeCache // the same, written
	unload     // the model
	test       // of the hardware
	proceed    // continue the request that sent a part
	stop       // end that request instead
	goodbye
	done   // the answer
	failed // the answer, as an error
	part   // one of several of an answer; the parent says proceed or stop
	kinds
)

var kindNames = [kinds]string{"", "hello", "open", "memory", "room", "load", "step", "advance",
	"measure", "tap",
	"read of the KV cache", "write of the KV cache", "unload", "test", "proceed", "stop", "goodbye",
	"done", "failed", "part"}

func (k kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("message of kind %d", uint32(k))
	}
	return kindNames[k]
}

const (
	headerBytes = 16
	// mostText holds the times of the operations of a model of a thousand layers.
	mostText = 4 << 20
)

type message struct {
	kind   kind
	number uint32
	shared uint32
	text   []byte
}

// errTorn is a message that ended in the middle.
var errTorn = errors.New("a message was cut off")

func (m *message) append(to []byte) []byte {
	to = binary.LittleEndian.AppendUint32(to, uint32(m.kind))
	to = binary.LittleEndian.AppendUint32(to, m.number)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(m.text)))
	to = binary.LittleEndian.AppendUint32(to, m.shared)
	return append(to, m.text...)
}

// read takes the next message; io.EOF if the other side has ended between two.
func (m *message) read(from io.Reader) error {
	var head [headerBytes]byte
	switch _, err := io.ReadFull(from, head[:]); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errTorn
	case err != nil:
		return err
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(head[4*i:]) }
	m.kind, m.number, m.shared = kind(word(0)), word(1), word(3)
	switch text := word(2); {
	case m.kind == 0 || m.kind >= kinds:
		return fmt.Errorf("a %s is unknown", m.kind)
	case text > mostText:
		return fmt.Errorf("a %s of %d bytes is longer than the %d allowed", m.kind, text, mostText)
	case m.shared > slotBytes:
		return fmt.Errorf("a %s has %d bytes in a slot of %d", m.kind, m.shared, slotBytes)
	default:
		// the buffer grows with what arrives, so that a length alone takes no memory
		buffer := bytes.NewBuffer(m.text[:0])
		_, err := io.CopyN(buffer, from, int64(text))
		m.text = buffer.Bytes()
		if errors.Is(err, io.EOF) {
			return errTorn
		}
		return err
	}
}
