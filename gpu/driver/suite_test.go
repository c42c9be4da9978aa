package driver_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// What the tests of this folder share: an opened context on the fake of either vendor.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs a test on both APIs.
func each(t *testing.T, m drivertest.Machine, test func(t *testing.T, f *drivertest.Fake,
	c *driver.Context)) {
	for _, api := range []driver.API{driver.CUDA, driver.HIP} {
		t.Run(string(api), func(t *testing.T) {
			f := hosttest.Must(drivertest.Open(api, m))(t)
			c := context(t, f, 0)
			test(t, f, c)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if left := f.Leaks(); left != "" {
				t.Errorf("not given back: %s", left)
			}
			hosttest.Check(t, f.Close())
		})
	}
}

func context(t *testing.T, f *drivertest.Fake, index int) *driver.Context {
	t.Helper()
	g := hosttest.Must(f.Device(index))(t)
	return hosttest.Must(g.Open())(t)
}

// must ends a test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	hosttest.Check(t, err)
}

// code is the driver's number of an error, 0 for none.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// bench is what most tests need: a queue, pinned and device memory of one size.
type bench struct {
	c      *driver.Context
	s      *driver.Stream
	host   *driver.HostMemory
	device driver.Pointer
	n      int
}

func newBench(t *testing.T, c *driver.Context, n int) *bench {
	t.Helper()
	b := &bench{c: c, n: n}
	var err error
	b.s, err = c.NewStream()
	must(t, err)
	b.host, err = c.AllocHost(n)
	must(t, err)
	b.device, err = c.Alloc(int64(n))
	must(t, err)
	return b
}

func (b *bench) close(t *testing.T) {
	t.Helper()
	must(t, errors.Join(b.c.Free(b.device), b.host.Free(), b.s.Close()))
}

// read is what the device memory holds now.
func (b *bench) read(t *testing.T) []byte {
	t.Helper()
	must(t, b.s.CopyOut(b.host, 0, b.device, b.n))
	must(t, b.s.Synchronize())
	return bytes.Clone(b.host.Bytes())
}

// kernel loads a kernel of the fake.
func kernel(t *testing.T, f *drivertest.Fake, c *driver.Context, name string) (*driver.Module,
	*driver.Function) {
	t.Helper()
	m, err := c.Load(f.Image())
	must(t, err)
	k, err := m.Function(name)
	must(t, err)
	return m, k
}

func contains(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}
