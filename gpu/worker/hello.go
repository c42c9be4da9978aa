package worker

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Both sides must be of one build: what they send each other has no other version.

// Protocol is the number of what messages mean; it goes up with every change of this package's files about messages.
const Protocol = 4

// Identity is a build.
type Identity struct {
	Protocol int
	Commit   string // "" where the build does not record it
	Kernels  string // hash of the compiled GPU kernels
}

// Here is this build.
var Here = sync.OnceValue(func() Identity {
	id := Identity{Protocol: Protocol, Kernels: assets.KernelHash()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				id.Commit = s.Value
			}
		}
	}
	return id
})

// match says how two builds differ.
func (id Identity) match(other Identity) error {
	switch {
	case id.Protocol != other.Protocol:
		return fmt.Errorf("the GPU worker is of another version: it speaks protocol %d, this program %d", other.Protocol, id.Protocol)
	case id.Commit != other.Commit:
		return fmt.Errorf("the GPU worker is of another build: commit %q, this program %q", other.Commit, id.Commit)
	case id.Kernels != other.Kernels:
		return fmt.Errorf("the GPU worker has other kernels: %s, this program %s", other.Kernels, id.Kernels)
	}
	return nil
}

// The texts of requests and answers.
type (
	helloText struct {
		Identity
		Shared int64 // bytes of the shared memory
	}
	openText   struct{ Wanted }
	deviceText struct {
		Name        string
		Caps        engine.Caps
		Places      bool     // it is an engine.Placer
		Said        []string // for people, of how it was opened
		Kernels     string   // what they are, and whether they are right on this card
		Wrong       []string // a sentence for each that is not
		Total, Free int64
	}
	memoryText struct{ Total, Free int64 }
	bandText   struct{ BytesPerSecond float64 }
	proofsText struct{ Proofs json.RawMessage }
	ratesText  struct{ Rates json.RawMessage }
	allocText  struct{ Bytes int64 }
	regionText struct {
		Region uint32
		Bytes  int64
	}
	partText struct {
		Region uint32
		Offset int64
		Bytes  int64
	}
	stepText struct {
		Step    uint32
		Samples bool
		Taps    []tapText `json:",omitempty"`
	}
	tapText struct {
		Buffer int // of the program
		Region uint32
		Offset int64
		Bytes  int64 // of the region
	}
	planText struct {
		Spec    models.Spec
		Options engine.Settings
		Rows    int
	}
	homeText   struct{ Home engine.Home }
	weightText struct {
		Buffer string
		Bytes  int64
		Part   *filePart `json:",omitempty"` // nil: the bytes that were gathered
	}
	gatherText struct{ Offset, Bytes int64 }
	askPages   struct {
		Spec        models.Spec
		Options     engine.Settings
		Utilization float64
	}
	pagesText     struct{ Pages int }
	profilingText struct {
		Step uint32
		On   bool
	}
	profileText struct{ Nanoseconds []int64 }
)
