package device

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
)

// A GPU as a user names it: a number counted across vendors, or none for the first that works.

// Card is a device and the driver under it.
type Card struct {
	*Device
	Driver *driver.Driver
	Number int // as people give it: counted over the vendors

	integrated   bool
	bandwidth    float64
	options      Options // it was opened with
	folder       string  // where Verification keeps its records
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

// Caps gives the device's, with what the driver and the data sheet say of the card.
func (c *Card) Caps() engine.Caps {
	caps := c.Device.Caps()
	caps.Integrated, caps.Bandwidth = c.integrated, c.bandwidth
	return caps
}

// describe asks once for what Caps adds; what the driver does not answer stays unknown.
func (c *Card) describe() *Card {
	total, _ := c.Memory()
	c.integrated, c.bandwidth = c.Integrated(), detect.Bandwidth(c.Title(), int(total>>20),
		c.Units())
	return c
}

// Close closes the device and its driver.
func (c *Card) Close() error {
	if err := c.Device.Close(); err != nil {
		return err
	}
	return c.Driver.Close()
}

// Libraries lists the variables that name a driver library other than the machine's own, in the
// order in which vendors are counted.
var Libraries = []struct {
	API      driver.API
	Variable string
}{{driver.CUDA, "OSSRUN_LIBCUDA"}, {driver.HIP, "OSSRUN_LIBAMDHIP64"}}

// decodeKernel is the variable that chooses how decode steps are launched; "" is the default.
const decodeKernel = "OSSRUN_DECODE_KERNEL"

// ErrNone says that the machine has no driver library, which is usual without a GPU. It is a
// driver.ErrNoLibrary.
var ErrNone error = none{}

type none struct{}

func (none) Error() string        { return "no GPU driver is on this machine" }
func (none) Is(target error) bool { return target == driver.ErrNoLibrary }

// OpenCard opens the first GPU of a list, all of which must exist; with an empty list, the first
// GPU that works. NVIDIA's are counted before AMD's. ErrNone is the only expected error.
func OpenCard(list []int) (*Card, error) {
	if len(list) > 1 {
		n, err := Count()
		if err != nil {
			return nil, err
		}
		if most := slices.Max(list); n > 0 && most >= n {
			return nil, missing(most, n)
		}
		list = list[:1]
	}
	decode, err := ParseDecodeKernel(os.Getenv(decodeKernel))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", decodeKernel, err)
	}
	var refused []string
	seen := 0
	for _, l := range Libraries {
		d, err := openVendor(l.API, os.Getenv(l.Variable))
		if err != nil {
			if !errors.Is(err, driver.ErrNoLibrary) || os.Getenv(l.Variable) != "" {
				refused = append(refused, err.Error())
			}
			continue
		}
		count, err := d.DeviceCount()
		if err != nil {
			refused = append(refused, fmt.Sprintf("%s: %s", l.API, err))
		}
		for i := range count {
			if len(list) == 1 && list[0] != seen+i {
				continue
			}
			options := Options{Index: i, DecodeKernel: decode}
			dev, err := Open(d, options)
			if err == nil {
				c := &Card{Device: dev, Driver: d, Number: seen + i, options: options}
				return c.describe(), nil
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
		return nil, ErrNone
	}
	return nil, missing(list[0], seen)
}

func missing(number, shown int) error {
	return fmt.Errorf("there is no GPU %d: the drivers show %d", number, shown)
}
