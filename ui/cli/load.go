// Choosing a model and a device, and loading the one onto the other: common to chat and serve.
//
// Without --model the best cached model that fits is taken. With none cached, a person at a terminal is asked (the
// download with its size and place, or the demo); anything else gets the demo and one line that says so. stock.go loads the
// models of a server.

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/checkpoint"
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
	if dev, err = fitting(c, dev, found); err != nil {
		return nil, fail(exitFailure, "%s", err)
	}
	k, err := readKnobs(c, kindOf(dev), deviceMemory(dev))
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	by := replaced(found, k.dense)
	if err := readAhead(c.Context, t, dev, found, by); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	chosen()
	k.say(t)
	o := k.load()
	o.Reopen, o.Fill = reopen(c, found), fill(c.Context, t, dev, by)
	m, err := loadOnto(c.Context, t, found, dev, o)
	if err != nil {
		if c.Context.Err() != nil {
			return nil, errors.Join(context.Canceled, dev.Close())
		}
		return nil, errors.Join(&exitError{exitModel, err.Error()}, dev.Close())
	}
	return m, nil
}

// reopen opens the device of a model anew after it has failed, and where that was made of several, those.
func reopen(c *cli.Context, found checkpoint.Found) func(engine.Device) (engine.Device, error) {
	return func(failed engine.Device) (engine.Device, error) {
		_, several := failed.(engine.Placer)
		if err := failed.Close(); err != nil { // it may not be able to; what it held stays held while this process runs
			fmt.Fprintf(c.App.ErrWriter, "ossrun: the device that failed was not closed: %s\n", err)
		}
		dev, err := openDevice(c)
		if err != nil || !several {
			return dev, err
		}
		return fitting(c, dev, found)
	}
}

// kindOf tells the kinds of devices apart that settings depend on.
func kindOf(dev engine.Device) string {
	if onGPUDevice(dev) {
		return onGPU
	}
	return onCPU
}

func deviceMemory(dev engine.Device) int64 {
	total, _ := dev.Memory()
	return total
}

func chooseModel(c *cli.Context, t Terminal, dev engine.Device, ask bool) (checkpoint.Found, error) {
	if name := c.String("model"); name != "" {
		return checkpoint.Resolve(name)
	}
	_, free := dev.Memory()
	if best, ok := checkpoint.BestFit(free); ok {
		return best, nil
	}
	demo, err := checkpoint.Resolve("demo")
	if err != nil {
		return demo, err
	}
	if !ask || !isTerminal(t.In) || !isTerminal(t.Out) {
		fmt.Fprintln(t.Err, "ossrun: no gpt-oss model is on this machine yet, so the tiny built-in demo answers; `ossrun pull 20b` gets a real one")
		return demo, nil
	}
	return offer(c.Context, t, free, demo)
}
