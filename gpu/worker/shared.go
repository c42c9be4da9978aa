package worker

import (
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

// The memory that both sides see: by request number, a slot for each of the last requests and one
// for its answer; then the logits. Pages take room only once they are written.

const (
	slots       = 4
	slotBytes   = 64 << 20
	answerBytes = 4 << 20
	slotsBytes  = slots * (slotBytes + answerBytes)

	// logitsBytes is room for 2,048 rows of the published vocabulary.
	logitsBytes = 2 << 30
	// pieceBytes is how much of a region one message reads or writes.
	pieceBytes = answerBytes
)

type shared struct {
	bytes []byte
	close func() error
}

func (s *shared) slot(number uint32) []byte {
	start := int(number%slots) * slotBytes
	return s.bytes[start : start+slotBytes : start+slotBytes]
}

func (s *shared) answer(number uint32) []byte {
	start := slots*slotBytes + int(number%slots)*answerBytes
	return s.bytes[start : start+answerBytes : start+answerBytes]
}

func (s *shared) logits(n int) ([]float32, error) {
	area := engine.Numbers[float32](s.bytes[slotsBytes:])
	if n < 0 || n > len(area) {
		return nil, fmt.Errorf("%d logits do not fit into the memory that is shared with the GPU "+
			"worker: it has room for %d", n, len(area))
	}
	return area[:n], nil
}
