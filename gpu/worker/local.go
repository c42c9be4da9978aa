package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Local is a worker's GPUs, in its own process. The parent's Backend has the same methods.
type Local interface {
	engine.Backend
	// RoomHere is Room on the open devices; it opens no other.
	RoomHere(spec models.Spec, s engine.Settings) (engine.Room, error)
	// Kernels describes the kernels, with a sentence for each that is wrong on the card.
	Kernels() (summary string, wrong []string)
	// Several tells whether models run on several devices: their steps may take longer.
	Several() bool
	// Test runs a check of the hardware. This package only passes on the request and the results;
	// an error of emit ends it.
	Test(ctx context.Context, ask json.RawMessage, emit func(json.RawMessage) error) error
}

// Traffic counts messages of steps. A step costs one each way.
type Traffic struct {
	Steps    int64 `json:"steps"`
	Sent     int64 `json:"messages_there"`
	Received int64 `json:"messages_back"`
}

// An Opener opens the GPUs of a worker. notify gets lines for people.
type Opener func(s engine.Settings, notify func(line string)) (Local, error)

// Bounds of plans, far beyond every model and machine: no sum of bytes reaches 2^63.
const (
	mostLayers  = 1 << 8
	mostExperts = 1 << 10
	mostSide    = 1 << 16
	mostLong    = 1 << 22 // of a vocabulary, and of a context
	mostRows    = 1 << 16
	mostAtOnce  = 1 << 12 // sequences and threads
	mostPages   = 1 << 30
)

type count struct {
	what            string
	n, least, bound int
}

func checkCounts(list []count) error {
	for _, x := range list {
		if x.n < x.least || x.n > x.bound {
			return fmt.Errorf("%s of %d: %d to %d can be", x.what, x.n, x.least, x.bound)
		}
	}
	return nil
}

// checkSpec refuses shapes that no model has: no size overflows, nothing is divided by zero.
func checkSpec(s models.Spec) error {
	err := checkCounts([]count{
		{"layers", s.Layers, 1, mostLayers}, {"experts", s.Experts, 1, mostExperts},
		{"experts a token", s.ExpertsPerToken, 1, s.Experts}, {"a width", s.Hidden, 1, mostSide},
		{"an experts' width", s.Intermediate, 1, mostSide}, {"heads", s.Heads, 1, mostSide},
		{"KV heads", s.KVHeads, 1, s.Heads}, {"a head", s.HeadDim, 2, mostSide}, {"a vocabulary",
			s.Vocab, 1, mostLong},
		{"a window", s.Window, 1, mostLong}, {"positions", s.MaxPosition, 1, mostLong},
	})
	if err == nil && s.HeadDim%2 != 0 {
		err = fmt.Errorf("a head of %d", s.HeadDim)
	}
	return err
}

// checkSettings refuses settings that no machine can follow.
func checkSettings(s engine.Settings) error {
	if !(s.GPUMemoryUtilization >= 0 && s.GPUMemoryUtilization <= 1) {
		return fmt.Errorf("%v of a GPU's memory", s.GPUMemoryUtilization)
	}
	if err := s.Check(); err != nil {
		return err
	}
	return checkCounts([]count{
		{"tokens of context", s.MaxModelLen, 0, mostLong}, {"sequences", s.MaxNumSeqs, 0, mostRows},
		{"rows of a step", s.MaxNumBatchedTokens, 0, mostRows}, {"rows of logits", s.MaxLogits, 0,
			mostRows},
		{"layers' experts on the CPU", s.CPUExperts, 0, mostLayers}, {"threads", s.Threads, 0,
			mostAtOnce},
		{"KV pages", s.Pages, 0, mostPages},
	})
}
