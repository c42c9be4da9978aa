// Which device computes: --device, --gpu, and for auto a GPU when one works and the model fits, else the CPU and one
// sentence that says why.

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
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
	switch d := c.String("device"); {
	case d == "gpu" || d == "auto" && gpus != nil:
		dev, err := openGPU(gpus)
		if err != nil {
			return nil, fail(exitFailure, "%s; --device cpu computes without a GPU", err)
		}
		return dev, nil
	case d == "auto":
		dev, err := openGPU(nil)
		if err == nil {
			return dev, nil
		}
		if !errors.Is(err, errNoDriver) {
			tellCPU(c.App.ErrWriter, err.Error())
		}
		return cpu.New(c.Int("threads"))
	case d == "cpu":
		return cpu.New(c.Int("threads"))
	default:
		return nil, fail(exitUsage, "--device must be auto, cpu or gpu, not %q", d)
	}
}

func tellCPU(to io.Writer, why string) { fmt.Fprintf(to, "ossrun: the CPU computes: %s\n", why) }

// fitting gives the device that a model runs on: the one that was opened, or, when auto chose a GPU that has no room
// for it, the CPU. The device it does not return is closed.
func fitting(c *cli.Context, dev engine.Device, found models.Found) (engine.Device, error) {
	if _, gpu := dev.(*gpuDevice); !gpu || c.String("device") != "auto" || c.String("gpu") != "" {
		return dev, nil
	}
	ckpt, err := found.Open()
	if err != nil {
		return dev, nil // loading says it better
	}
	need, err := needs(ckpt.Spec)
	if err = errors.Join(err, ckpt.Close()); err != nil {
		return dev, nil
	}
	_, free := dev.Memory()
	if need <= free {
		return dev, nil
	}
	tellCPU(c.App.ErrWriter, fmt.Sprintf("%s needs %s, %s has %s free", found.Name, gigabytes(need), dev.Name(), gigabytes(free)))
	if err := dev.Close(); err != nil {
		return nil, err
	}
	return cpu.New(c.Int("threads"))
}

// gpuDevice is a device and the driver under it, closed together.
type gpuDevice struct {
	*device.Device
	driver *driver.Driver
}

func (g *gpuDevice) Close() error {
	if err := g.Device.Close(); err != nil {
		return err
	}
	return g.driver.Close()
}

// errNoDriver is a machine without any driver library: the usual case of a machine without a GPU.
var errNoDriver = errors.New("no GPU driver is on this machine")

// libraries are the variables that name another driver library than the machine's own.
var libraries = []struct {
	api      driver.API
	variable string
}{{driver.CUDA, "OSSRUN_LIBCUDA"}, {driver.HIP, "OSSRUN_LIBAMDHIP64"}}

// openGPU opens the GPU of a list of one, or the first that works. NVIDIA's are counted before AMD's.
func openGPU(list []int) (engine.Device, error) {
	if len(list) > 1 {
		return nil, fmt.Errorf("a model over several GPUs is not in this version: give --gpu one number")
	}
	var refused []string
	seen := 0
	for _, l := range libraries {
		d, err := driver.Open(l.api, os.Getenv(l.variable))
		if err != nil {
			if !errors.Is(err, driver.ErrNoLibrary) || os.Getenv(l.variable) != "" {
				refused = append(refused, err.Error())
			}
			continue
		}
		count, err := d.DeviceCount()
		if err != nil {
			refused = append(refused, fmt.Sprintf("%s: %s", l.api, err))
		}
		for i := range count {
			if len(list) == 1 && list[0] != seen+i {
				continue
			}
			dev, err := device.Open(d, device.Options{Index: i})
			if err == nil {
				return &gpuDevice{dev, d}, nil
			}
			refused = append(refused, err.Error())
		}
		seen += count
		if err := d.Close(); err != nil {
			refused = append(refused, err.Error())
		}
	}
	switch {
	case len(refused) > 0:
		return nil, errors.New(strings.Join(refused, "; "))
	case seen == 0:
		return nil, errNoDriver
	}
	return nil, fmt.Errorf("there is no GPU %d: the drivers show %d", list[0], seen)
}
