package checkpoint

// The demo model: embedded, unpacked into memory, then held to the same checks as a file. It needs
// no disk and no network.

import (
	"bytes"
	"fmt"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/pack"
	"github.com/ossrun/ossrun/models/safetensors"
)

// OpenDemo opens the embedded demo model. Each call unpacks its own copy; Close frees it.
func OpenDemo() (*Checkpoint, error) {
	c, err := openPacked(assets.DemoConfig, assets.DemoGenerationConfig, assets.DemoPack)
	if err != nil {
		return nil, fmt.Errorf("the embedded demo model: %w", err)
	}
	c.Spec.Name = models.Demo
	return c, nil
}

// openPacked opens a checkpoint whose single weights file is a pack.
func openPacked(config, generation, packed []byte) (*Checkpoint, error) {
	spec, err := models.ParseSpec(config, generation)
	if err != nil {
		return nil, err
	}
	memory, err := pack.Unpack(bytes.NewReader(packed), false)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Spec: spec, close: []func() error{memory.Free}}
	file, err := safetensors.FromMemory("model.safetensors", memory.Bytes)
	if err == nil {
		err = c.check([]*safetensors.File{file}, nil)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
