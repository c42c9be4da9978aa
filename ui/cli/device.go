// Which device computes: --device, --gpu, and for auto a GPU when one works and the model fits, else the CPU and one
// sentence that says why.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/split"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/session"
)

// openDevice opens what the flags ask for. With auto, why a driver that is here is not used goes to stderr.
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
	if _, err := cpuExperts(c); err != nil {
		return nil, err
	}
	open := gpuOpener(c)
	switch d := c.String("device"); {
	case d == "gpu" || d == "auto" && gpus != nil:
		dev, err := open(gpus) // the first of them; the others when a model does not fit: fitting
		if err != nil {
			return nil, fail(exitFailure, "%s; --device cpu computes without a GPU", err)
		}
		return dev, nil
	case d == "auto":
		dev, err := open(nil)
		if err == nil {
			return dev, nil
		}
		if !errors.Is(err, driver.ErrNoLibrary) {
			tellCPU(c.App.ErrWriter, err.Error())
		}
		nothingToIsolate(c)
		return cpu.New(c.Int("threads"))
	case d == "cpu":
		nothingToIsolate(c)
		return cpu.New(c.Int("threads"))
	default:
		return nil, fail(exitUsage, "--device must be auto, cpu or gpu, not %q", d)
	}
}

// nothingToIsolate answers --isolate where the CPU computes.
func nothingToIsolate(c *cli.Context) {
	if c.Bool("isolate") {
		fmt.Fprintln(c.App.ErrWriter, "ossrun: there is nothing to isolate: the CPU computes, in this process; --isolate is for GPUs")
	}
}

func tellCPU(to io.Writer, why string) { fmt.Fprintf(to, "ossrun: the CPU computes: %s\n", why) }

// fitting gives the device that a model runs on: the GPU that was opened, where the plan that loading makes has room there for a context worth having; else,
// or where --cpu-experts asks for it, several GPUs and the CPU together; where these have no room either, the one GPU with a short context, or the CPU alone
// if auto may choose. The device it does not return is closed.
func fitting(c *cli.Context, dev engine.Device, found checkpoint.Found) (engine.Device, error) {
	experts, err := cpuExperts(c)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	if !onGPUDevice(dev) {
		return dev, nil
	}
	ckpt, err := found.Open()
	if err != nil {
		return dev, nil // loading says it better
	}
	spec := ckpt.Spec
	if ckpt.Close() != nil {
		return dev, nil
	}
	k, err := readKnobs(c, onGPU, deviceMemory(dev))
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	plan, none := session.PlanFor(found, spec, dev, k.load())
	if enough := none == nil && (plan.Bounded || plan.Context >= min(doctorContext, spec.MaxPosition)); enough && experts == 0 {
		return dev, nil
	}
	why := fmt.Sprintf("%s has no room for %s", dev.Name(), found.Name)
	chosen := c.String("device") != "auto" || c.String("gpu") != ""
	over, err := placed(c, dev, spec, experts, k)
	switch {
	case err == nil:
		return over, nil
	case none == nil && experts == 0:
		return openDevice(c) // a short context is better than none
	case chosen || experts > 0:
		return nil, fail(exitFailure, "%s; --device cpu computes without a GPU", err)
	}
	tellCPU(c.App.ErrWriter, fmt.Sprintf("%s; %s", why, err))
	return cpu.New(c.Int("threads"))
}

// gpuDevice is a GPU in this process.
type gpuDevice = card.Card

// gpuRecords is the folder of what is known of this machine's cards; "" in tests that prove nothing.
var gpuRecords = card.Records()

// openGPU opens the first GPU of a list, or the first that works, in this process. Its kernels are proved the first time that this program meets it.
func openGPU(list []int) (engine.Device, error) {
	dev, err := card.Open(list)
	if err != nil {
		return nil, err
	}
	if gpuRecords != "" {
		dev.Trust(context.Background(), gpuRecords)
	}
	return dev, nil
}

// gpuOpener is how a GPU is opened: in this process, or in one of its own where --isolate asks for it or no other way is there. Kernels that are wrong
// on the card are told.
func gpuOpener(c *cli.Context) func(list []int) (engine.Device, error) {
	open := openGPU
	if inWorker(c) {
		open = func(list []int) (engine.Device, error) { return openIsolated(c, list) }
	}
	return func(list []int) (engine.Device, error) {
		dev, err := open(list)
		if err != nil {
			return nil, err
		}
		_, wrong := kernelsOf(dev)
		for _, w := range wrong {
			fmt.Fprintf(c.App.ErrWriter, "ossrun: %s: %s\n", dev.Name(), w)
		}
		return dev, nil
	}
}

// inWorker tells whether the GPU engine is in a process of its own.
func inWorker(c *cli.Context) bool { return linkedStatically || c.Bool("isolate") }

// kernelsOf is what is known of a GPU's kernels; nothing of another device's.
func kernelsOf(dev engine.Device) (summary string, wrong []string) {
	if k, ok := dev.(interface{ Trusted() (string, []string) }); ok {
		return k.Trusted()
	}
	return "", nil
}

// onGPUDevice tells a GPU from the CPU.
func onGPUDevice(dev engine.Device) bool {
	_, here := dev.(*gpuDevice)
	_, several := dev.(*split.Device)
	return here || several || isolated(dev)
}
