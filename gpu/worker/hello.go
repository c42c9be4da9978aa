package worker

import (
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Both sides must be of one build: their messages have no other version.

// Protocol is the version of the messages; it goes up with every change of them.
const Protocol = 6

type Identity struct {
	Protocol int
	Commit   string // "" if the build does not record it
	Kernels  string // hash of the compiled GPU kernels
}

var ThisBuild = sync.OnceValue(func() Identity {
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

// match is an error that says how two builds differ.
func (id Identity) match(peer Identity) error {
	switch {
	case id.Protocol != peer.Protocol:
		return fmt.Errorf("the GPU worker is of another version: it speaks protocol %d, this "+
			"program %d", peer.Protocol, id.Protocol)
	case id.Commit != peer.Commit:
		return fmt.Errorf("the GPU worker is of another build: commit %q, this program %q",
			peer.Commit, id.Commit)
	case id.Kernels != peer.Kernels:
		return fmt.Errorf("the GPU worker has other kernels: %s, this program %s", peer.Kernels,
			id.Kernels)
	}
	return nil
}

// The texts of requests and answers.
type (
	helloText struct {
		Identity
		Shared int64 // bytes of the shared memory
	}
	// backendText is the other side's open devices, with notes for people.
	backendText struct {
		Name        string
		Caps        engine.Caps
		Several     bool
		Kernels     string   // their image, and whether they are right on this card
		Wrong       []string // a sentence for each that is not
		Notes       []string
		Total, Free int64
	}
	memoryText struct{ Total, Free int64 }
	askRoom    struct {
		Spec     models.Spec
		Settings engine.Settings
		Here     bool // on the open devices
	}
	roomText struct {
		Room    engine.Room
		Backend backendText // which may have changed
	}
	// loadText names a checkpoint that the worker opens itself, Path or the demo, its adapters and
	// its files.
	loadText struct {
		Path       string
		Lora       []lora.Ref
		AdapterIDs string
		Spec       models.Spec
		Files      []checkpoint.FileState
		Settings   engine.Settings
	}
	loadedText struct {
		Settings   engine.Settings
		Plan       engine.Plan
		CacheBytes int64
	}
	progressText struct{ Done, Total int64 }
	tapText      struct {
		Name string
		Rows int
	}
	bytesText struct{ Offset, Bytes int64 }
	timesText struct{ Times []engine.Timing }
)
