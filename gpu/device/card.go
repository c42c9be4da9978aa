package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// GPUs as a user names them: numbers counted across vendors, or none for the first that works.
//
// What must stay true: a user who names cards for one model gets all of them, in that order, or an
// error and no card; the environment that AMD's runtime needs is set before the library is loaded,
// because the runtime reads it once; the user's own variables stay.

type Card struct {
	*Device
	Driver *driver.Driver
	Number int // as people give it: counted over the vendors

	integrated   bool    // for Caps, as bandwidth
	bandwidth    float64 // 0: unknown
	options      Options // it was opened with
	folder       string  // of the proofs' files
	verification Verification
}

// reopen opens a lost card again, if nothing else of this process is on it.
func (c *Card) reopen() error {
	// a lost card reports ErrLost for everything that it frees
	if err := c.Device.Close(); err != nil && !errors.Is(err, driver.ErrLost) {
		return err
	}
	dev, err := Open(c.Driver, c.options)
	if err == nil {
		c.Device = dev
	}
	return err
}

// Caps are the device's, with the driver's and the data sheet's facts about the card.
func (c *Card) Caps() engine.Caps {
	caps := c.Device.Caps()
	caps.Integrated, caps.Bandwidth = c.integrated, c.bandwidth
	return caps
}

// Libraries are the variables that name another driver library, in the order of the vendors.
var Libraries = []struct {
	API      driver.API
	Variable string
}{{driver.CUDA, "OSSRUN_LIBCUDA"}, {driver.HIP, "OSSRUN_LIBAMDHIP64"}}

// ErrNone is a driver.ErrNoLibrary: the machine has no driver library, as is usual without a GPU.
var ErrNone error = noDriver{}

type noDriver struct{}

func (noDriver) Error() string        { return "no GPU driver is installed" }
func (noDriver) Is(target error) bool { return target == driver.ErrNoLibrary }

// listing walks through the devices that the vendors' drivers show, NVIDIA's before AMD's.
type listing struct {
	count   int      // of devices so far
	refused []string // the drivers' reasons for showing none
}

func (l *listing) devices(yield func(d *driver.Driver, index int) bool) {
	for _, v := range Libraries {
		path := os.Getenv(v.Variable)
		if v.API == driver.HIP {
			SetEnvironment()
		}
		d, err := driver.Open(v.API, path)
		if err != nil {
			if !errors.Is(err, driver.ErrNoLibrary) || path != "" {
				l.refused = append(l.refused, err.Error())
			}
			continue
		}
		n, err := d.DeviceCount()
		if err != nil {
			l.refused = append(l.refused, fmt.Sprintf("%s: %s", v.API, err))
		}
		for i := range n {
			if l.count++; !yield(d, i) {
				return
			}
		}
	}
}

// Count is how many GPUs the drivers show.
func Count() int {
	var l listing
	for range l.devices {
	}
	return l.count
}

// OpenCard opens the first GPU of a list, all of which must exist, or the first that works. ErrNone
// is the only expected error.
func OpenCard(list []int) (*Card, error) {
	if len(list) > 1 {
		if most, n := slices.Max(list), Count(); n > 0 && most >= n {
			return nil, noSuchGPU(most, n)
		}
	}
	var l listing
	for d, i := range l.devices {
		number := l.count - 1
		if len(list) > 0 && list[0] != number {
			continue
		}
		options := Options{Index: i}
		dev, err := Open(d, options)
		if err == nil {
			c := &Card{Device: dev, Driver: d, Number: number, options: options,
				integrated: dev.Integrated()}
			total, _ := c.Memory()
			c.bandwidth = detect.Bandwidth(c.Title(), int(total>>20), c.ComputeUnits())
			return c, nil
		}
		l.refused = append(l.refused, err.Error())
	}
	switch {
	case len(l.refused) > 0:
		return nil, errors.New(strings.Join(l.refused, "; "))
	case l.count == 0:
		return nil, ErrNone
	}
	return nil, noSuchGPU(list[0], l.count)
}

func noSuchGPU(number, count int) error {
	return fmt.Errorf("there is no GPU %d: the drivers show %d", number, count)
}

// OpenCards opens the GPUs of a list, in its order, or all that work.
func OpenCards(list []int) (cards []*Card, _ error) {
	named := len(list) > 0
	if !named {
		for i := range max(1, Count()) { // if no driver shows a GPU, OpenCard knows why
			list = append(list, i)
		}
	}
	var refused []error
	for _, i := range list {
		c, err := OpenCard([]int{i})
		if err != nil {
			refused = append(refused, err)
			continue
		}
		cards = append(cards, c)
	}
	if len(cards) > 0 && (!named || len(refused) == 0) {
		return cards, nil
	}
	for _, c := range cards {
		refused = append(refused, c.Close())
	}
	return nil, errors.Join(refused...)
}

// machineFiles are the machine's files; nil on other systems than Linux.
var machineFiles = func() fs.FS {
	if runtime.GOOS == "linux" {
		return os.DirFS("/")
	}
	return nil
}()

// SetEnvironment sets the environment variables that this machine's cards need. Call it before
// opening AMD's library.
func SetEnvironment() { setVariables(machineFiles) }

// setVariables sets the variables that the cards of a machine need, from its files alone: it loads
// nothing and runs no tool.
func setVariables(files fs.FS) {
	if files == nil {
		return
	}
	for name, value := range detect.Detect(context.Background(),
		detect.Machine{Files: files}).Environment() {
		if _, set := os.LookupEnv(name); !set {
			// sets C's environment too; it fails only for invalid names, and this one is valid
			os.Setenv(name, value)
		}
	}
}

// Describe looks at a driver's device. If the kernel driver shows an AMD card, it knows the
// instruction set best; it shows none on Windows, in WSL and in some containers.
func Describe(d *driver.Driver, index int) (*driver.Device, error) {
	g, err := d.Device(index)
	if err == nil && d.API() == driver.HIP && machineFiles != nil {
		g.Arch = cmp.Or(detect.KFDArch(machineFiles, g.PCI), g.Arch)
	}
	return g, err
}
