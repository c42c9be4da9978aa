// Choosing a model and a device, and loading the one onto the other: common to chat and serve.
//
// Without --model the best cached model that fits is taken. With none cached, a person at a terminal is asked (the
// download with its size and place, or the demo); anything else gets the demo and one line that says so.

package cli

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/session"
)

// loadModel does everything from the flags to a model that answers. The caller closes it. It calls chosen between the
// last question to the user and the long work.
func loadModel(c *cli.Context, t Terminal, ask bool, chosen func()) (*session.Model, error) {
	dev, err := openDevice(c)
	if err != nil {
		return nil, err
	}
	found, err := chooseModel(c, t, dev, ask)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	if found, err = ready(c.Context, t, dev, found); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	chosen()
	m, err := session.Load(found, dev, session.LoadOptions{MaxModelLen: c.Int("max-model-len")})
	if err != nil {
		return nil, errors.Join(&exitError{exitModel, err.Error()}, dev.Close())
	}
	return m, nil
}

func openDevice(c *cli.Context) (engine.Device, error) {
	gpus, err := gpuList(c)
	if err != nil {
		return nil, err
	}
	if n := c.Int("threads"); n < 0 {
		return nil, fail(exitUsage, "--threads must be at least 1, not %d", n)
	}
	if n := c.Int("max-model-len"); n < 0 {
		return nil, fail(exitUsage, "--max-model-len must be at least 1, not %d", n)
	}
	switch d := c.String("device"); {
	case d == "gpu" || d == "auto" && gpus != nil:
		return nil, fail(exitFailure, "this version has no GPU engine yet: use --device cpu")
	case d == "auto" || d == "cpu":
		return cpu.New(c.Int("threads"))
	default:
		return nil, fail(exitUsage, "--device must be auto, cpu or gpu, not %q", d)
	}
}

func chooseModel(c *cli.Context, t Terminal, dev engine.Device, ask bool) (models.Found, error) {
	if name := c.String("model"); name != "" {
		return models.Resolve(name)
	}
	_, free := dev.Memory()
	if best, ok := models.BestFit(free); ok {
		return best, nil
	}
	demo, err := models.Resolve("demo")
	if err != nil {
		return demo, err
	}
	if !ask || !isTerminal(t.In) || !isTerminal(t.Out) {
		fmt.Fprintln(t.Err, "ossrun: no gpt-oss model is on this machine yet, so the tiny built-in demo answers; `ossrun pull 20b` gets a real one")
		return demo, nil
	}
	return offer(c.Context, t, free, demo)
}
