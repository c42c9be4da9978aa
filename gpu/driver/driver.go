// Package driver reaches a GPU through the vendor's driver library alone: libcuda.so.1 or
// libamdhip64.so, nvcuda.dll or amdhip64.dll, opened at run time. Building needs no SDK; without a
// driver everything still runs, and Open says in one sentence why it is missing.
//
// One vocabulary serves both vendors: Driver, Context, Module, Function, Stream, Event, Graph. What
// must stay true:
//   - Every error names the call, the driver's own code and the driver's own text (Error).
//   - A call makes its device current on its thread: goroutines move between threads.
//   - Nothing is freed by a finalizer: the maker of a thing frees it.
//   - Pointers into Go memory reach the library only for the length of a call. Copies that continue
//     after the call take HostMemory, which is pinned and not Go's; images that AMD's runtime keeps
//     reading live as long as their Module.
//   - A library whose functions were called is never unloaded: it has threads and exit handlers.
package driver

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

type API string

const (
	CUDA API = "CUDA"
	HIP  API = "HIP"
)

func (a API) vendor() string {
	if a == HIP {
		return "AMD"
	}
	return "NVIDIA"
}

// ErrNoLibrary is an error of Open when the machine has no driver library.
var ErrNoLibrary = errors.New("no driver library")

// Driver is an opened and initialised library.
type Driver struct {
	api       API
	path      string
	lib       *library
	addresses []uintptr // of Declarations
}

// Open opens the library at path, or with "" the first of Candidates. With an error other than
// ErrNoLibrary a driver is there and does not work.
func Open(api API, path string) (*Driver, error) {
	candidates := []string{path}
	if path == "" {
		candidates = Candidates(api)
	}
	var attempts []string
	for _, name := range candidates {
		lib, err := openLibrary(name)
		if err != nil {
			attempts = append(attempts, err.Error())
			continue
		}
		d := &Driver{api: api, path: name, lib: lib}
		if err := d.find(); err != nil {
			return nil, errors.Join(err, lib.close()) // none of its functions was called
		}
		if err := d.start(); err != nil {
			return nil, err
		}
		return d, nil
	}
	return nil, fmt.Errorf("%w of %s on this machine: %s", ErrNoLibrary, api.vendor(),
		strings.Join(attempts, "; "))
}

func (d *Driver) find() error {
	d.addresses = make([]uintptr, len(Declarations))
	for f := range d.addresses {
		name := function(f).symbol(d.api)
		if name == "" {
			continue
		}
		address, err := d.lib.symbol(name)
		if err != nil {
			return fmt.Errorf("the %s driver library %s is too old: it has no %s", d.api.vendor(),
				d.path, name)
		}
		d.addresses[f] = address
	}
	return nil
}

// oldestHIP is 6.1: kernels with dynamic shared memory have a hidden last argument
// (hidden_dynamic_lds_size) that earlier runtimes take for a pointer in the launch.
const oldestHIP = 60100000

// start initialises the library. AMD's is asked for its version first, which needs no card.
func (d *Driver) start() error {
	if d.api == HIP {
		have, err := d.Version()
		if err != nil {
			return err
		}
		if have < oldestHIP {
			return fmt.Errorf("AMD's HIP runtime %s is version %d.%d, which does not load our "+
				"kernels: 6.1 or newer is needed", d.path, have/10000000, have/100000%100)
		}
	}
	return d.call(initialize, 0)
}

// call runs a function that returns a code. Pointers among args must be converted in the argument
// list: then they do not move until the call is over.
//
//go:uintptrescapes
func (d *Driver) call(f function, args ...uintptr) error {
	code := int(int32(d.lib.call(d.addresses[f], args...)))
	if code == codeSuccess {
		return nil
	}
	return &Error{Call: f.symbol(d.api), Code: code,
		Name: cmp.Or(d.describe(errorName, code), "unknown"),
		Text: cmp.Or(d.describe(errorText, code), "the driver does not say why")}
}

func (d *Driver) API() API { return d.api }

// Version is the driver's newest interface: 12040 is CUDA 12.4, 60342134 is HIP 6.3.42134.
func (d *Driver) Version() (int, error) {
	var v int32
	err := d.call(driverVersion, uintptr(unsafe.Pointer(&v)))
	return int(v), err
}

// DeviceCount is how many devices the library shows to this process.
func (d *Driver) DeviceCount() (int, error) {
	var n int32
	err := d.call(deviceCount, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

// Symbol is another exported symbol, 0 when there is none: for tests.
func (d *Driver) Symbol(name string) uintptr {
	address, err := d.lib.symbol(name)
	if err != nil {
		return 0
	}
	return address
}

// Raw calls an address that Symbol gave. It is for tests.
//
//go:uintptrescapes
func (d *Driver) Raw(address uintptr, args ...uintptr) uintptr {
	return d.lib.call(address, args...)
}

// Close drops the library, which stays loaded: unloading one that was initialised crashes, at once
// or when the process ends. Contexts must have been closed before.
func (d *Driver) Close() error {
	d.lib = nil
	return nil
}

// pointer turns an address that the library returned into one that Go can read.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

func text(p uintptr) string {
	if p == 0 {
		return ""
	}
	start := (*byte)(pointer(p))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(start), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(start, n))
}
