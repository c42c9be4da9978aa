//go:build !windows

package driver

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t W;

// Calls f with n words. Arguments of the functions in functions.go are integers and pointers, which
// x86-64 and AArch64 pass in one register or one stack slot of 8 bytes, whatever their width.
static W ossrun_driver_call(uintptr_t at, const W* a, int n) {
  void* f = (void*)at;
  switch (n) {
    case 0: return ((W(*)(void))f)();
    case 1: return ((W(*)(W))f)(a[0]);
    case 2: return ((W(*)(W, W))f)(a[0], a[1]);
    case 3: return ((W(*)(W, W, W))f)(a[0], a[1], a[2]);
    case 4: return ((W(*)(W, W, W, W))f)(a[0], a[1], a[2], a[3]);
    case 5: return ((W(*)(W, W, W, W, W))f)(a[0], a[1], a[2], a[3], a[4]);
    case 6: return ((W(*)(W, W, W, W, W, W))f)(a[0], a[1], a[2], a[3], a[4], a[5]);
    default: return ((W(*)(W, W, W, W, W, W, W, W, W, W, W))f)(
                 a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
  }
}

// dlerror returns the calling thread's last failure, in memory of that thread, and a goroutine may
// be on another thread at its next call: the text is copied inside the call that failed. The caller
// frees it.
static void* ossrun_driver_open(const char* name, char** why) {
  void* lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  *why = lib == NULL ? strdup(dlerror()) : NULL;
  return lib;
}
static char* ossrun_driver_close(void* lib) { return dlclose(lib) != 0 ? strdup(dlerror()) : NULL; }
static uintptr_t ossrun_driver_symbol(void* lib, const char* name) {
  return (uintptr_t)dlsym(lib, name);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// A driver library by the system's loader, and calls into it by address.

// library is an opened shared object.
type library struct{ handle unsafe.Pointer }

// mostArguments is how many words a call can have.
const mostArguments = 11

// Candidates are the paths of a driver library, in order: the running driver's name, then the
// folders of distributions. AMD's release 5 is last: /opt may have a newer one too.
func Candidates(api API) []string {
	if api == HIP {
		return []string{"libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so",
			"libamdhip64.so", "libamdhip64.so.5"}
	}
	return []string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
		"/run/opengl-driver/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
		"libcuda.so"}
}

func openLibrary(name string) (*library, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var why *C.char
	handle := C.ossrun_driver_open(text, &why)
	if handle == nil {
		return nil, loaderError(why)
	}
	return &library{handle}, nil
}

func (l *library) symbol(name string) (uintptr, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	address := C.ossrun_driver_symbol(l.handle, text)
	if address == 0 {
		return 0, fmt.Errorf("no symbol %s", name)
	}
	return uintptr(address), nil
}

//go:uintptrescapes
func (l *library) call(address uintptr, args ...uintptr) uintptr {
	var words [mostArguments]C.W
	for i, a := range args {
		words[i] = C.W(a)
	}
	return uintptr(C.ossrun_driver_call(C.uintptr_t(address), &words[0], C.int(len(args))))
}

func (l *library) close() error {
	if why := C.ossrun_driver_close(l.handle); why != nil {
		return loaderError(why)
	}
	return nil
}

// loaderError turns the loader's message into an error, and frees its copy.
func loaderError(why *C.char) error {
	defer C.free(unsafe.Pointer(why))
	return errors.New(C.GoString(why))
}
