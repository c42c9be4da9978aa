// CUDA's names, as libcuda.so.1 exports them. The values of attributes are those that the machine's
// devices have; one that nobody asks for yet is an error, so that it is noticed.

#include "calls.h"

using namespace fake;

#define API extern "C" __attribute__((visibility("default"))) int
#define PLAIN(body) entered(__func__, false, Failing::kNothing, [&](int) -> int { return body; })
#define HERE(body)                                                  \
  entered(__func__, true, Failing::kNothing, [&](int here) -> int { \
    (void)here;                                                     \
    return body;                                                    \
  })
#define FREES(body) entered(__func__, true, Failing::kWorks, [&](int) -> int { return body; })

namespace {
struct Context {
  int device;
};
Context contexts[16];
}  // namespace

API cuInit(unsigned) { return PLAIN(initialize()); }
API cuDriverGetVersion(int* version) {
  return PLAIN((*version = machine.version != 0 ? machine.version : 12080, 0));
}
API cuGetErrorName(int code, const char** name) {
  *name = code_name(code);
  return *name == nullptr ? kInvalidValue : kSuccess;
}
API cuGetErrorString(int code, const char** text) {
  *text = code_text(code);
  return *text == nullptr ? kInvalidValue : kSuccess;
}
API cuDeviceGetCount(int* n) { return PLAIN(device_count(n)); }
API cuDeviceGet(int* device, int index) { return PLAIN(device_get(device, index)); }
API cuDeviceGetName(char* to, int n, int d) { return PLAIN(device_name(to, n, d)); }
API cuDeviceGetPCIBusId(char* to, int n, int d) { return PLAIN(device_pci(to, n, d)); }
API cuDeviceTotalMem_v2(size_t* bytes, int d) { return PLAIN(device_total(bytes, d)); }

namespace {
int attribute(int* v, int a, const Device& d) {
  switch (a) {
    case 1:
      *v = 1024;
      break;
    case 10:
      *v = emulator_warp();
      break;
    case 16:
      *v = d.multiprocessors;
      break;
    case 18:
      *v = d.integrated;
      break;
    case 38:
      *v = 50 << 20;
      break;
    case 75:
      *v = d.major;
      break;
    case 76:
      *v = d.minor;
      break;
    case 95:
      *v = 1;
      break;
    case 97:
      *v = d.shared_per_block;
      break;
    default:
      return kInvalidValue;
  }
  return kSuccess;
}
}  // namespace

API cuDeviceGetAttribute(int* v, int a, int d) {
  return PLAIN(attribute(v, a, machine.devices[d]));
}

API cuDevicePrimaryCtxRetain(Context** c, int d) {
  return PLAIN((contexts[d].device = d, *c = &contexts[d], machine.devices[d].retained++, 0));
}
API cuDevicePrimaryCtxRelease_v2(int d) {
  return entered(__func__, false, Failing::kWorks, [&](int) -> int {
    Device& device = machine.devices[d];
    if (device.retained == 0) return kInvalidContext;
    if (--device.retained == 0) device.lost = 0;  // the last one out resets the device
    return kSuccess;
  });
}
API cuCtxSetCurrent(Context* c) {
  return entered(__func__, false, Failing::kNothing, [&](int) -> int {
    if (c != nullptr && machine.devices[c->device].retained == 0) return kInvalidContext;
    use(c == nullptr ? -1 : c->device);
    return kSuccess;
  });
}

API cuMemGetInfo_v2(size_t* free, size_t* total) { return HERE(memory_info(free, total, here)); }
API cuMemAlloc_v2(uintptr_t* at, size_t n) { return HERE(allocate(here, n, at)); }
API cuMemFree_v2(uintptr_t at) {
  return entered(__func__, true, Failing::kWorks,
                 [&](int here) -> int { return release(here, at, false); });
}
API cuMemHostAlloc(void** at, size_t n, unsigned) { return HERE(host_alloc(at, n)); }
API cuMemFreeHost(void* at) {
  return entered(__func__, true, Failing::kWorks, [&](int here) -> int {
    return release(here, reinterpret_cast<uintptr_t>(at), true);
  });
}

API cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t n, Stream* s) {
  return HERE(copy_in(to, from, n, s));
}
API cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t n, Stream* s) {
  return HERE(copy_out(to, from, n, s));
}
API cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t n, Stream* s) {
  return HERE(copy_inside(to, from, n, s));
}
API cuMemcpyPeerAsync(uintptr_t to, Context*, uintptr_t from, Context*, size_t n, Stream* s) {
  return HERE(copy_inside(to, from, n, s));
}
API cuMemsetD8Async(uintptr_t to, unsigned char v, size_t n, Stream* s) {
  return HERE(memory_set(to, v, n, s));
}

API cuModuleLoadDataEx(Module** m, const void* image, unsigned, int*, void**) {
  return HERE(module_load(m, static_cast<const char*>(image), here));
}
API cuModuleUnload(Module* m) { return FREES(module_unload(m)); }
API cuModuleGetFunction(Function** f, Module* m, const char* name) {
  return HERE(module_function(f, m, name));
}
API cuFuncSetAttribute(Function* f, int a, int v) {
  return entered(__func__, true, Failing::kNothing, [&](int here) -> int {
    if (a != 8 || v < 0 || v > machine.devices[here].shared_per_block) return kInvalidValue;
    f->allowed_shared = v;
    return kSuccess;
  });
}
API cuLaunchKernel(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, Stream* s, void** arguments, void**) {
  return entered(__func__, true, Failing::kNothing, [&](int) -> int {
    if (!launchable(s)) return kInvalidHandle;
    const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    return machine.launch(s, f, grid, block, shared, arguments);
  });
}

struct LaunchAttribute {
  int id;
  char padding[4];
  int value;
  char rest[60];
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  Stream* stream;
  const LaunchAttribute* attributes;
  unsigned count;
};
API cuLaunchKernelEx(const LaunchConfig* c, Function* f, void** arguments, void**) {
  return entered(__func__, true, Failing::kNothing, [&](int) -> int {
    if (!launchable(c->stream)) return kInvalidHandle;
    for (unsigned i = 0; i < c->count; i++)  // programmatic stream serialization alone
      if (c->attributes[i].id != 6 || c->attributes[i].value != 1) return kInvalidValue;
    return machine.launch(c->stream, f, c->grid, c->block, c->shared, arguments);
  });
}

API cuStreamCreate(Stream** s, unsigned) { return HERE(stream_create(s, here)); }
API cuStreamDestroy_v2(Stream* s) { return FREES(stream_destroy(s)); }
API cuStreamWaitEvent(Stream* s, Event* e, unsigned) { return HERE(stream_wait(s, e)); }
API cuStreamSynchronize(Stream* s) { return HERE(stream_synchronize(s)); }
API cuEventCreate(Event** e, unsigned flags) { return HERE(event_create(e, flags, here)); }
API cuEventDestroy_v2(Event* e) { return FREES(event_destroy(e)); }
API cuEventRecord(Event* e, Stream* s) { return HERE(event_record(e, s)); }
API cuEventSynchronize(Event* e) { return HERE(event_synchronize(e)); }
API cuEventElapsedTime(float* ms, Event* a, Event* b) { return HERE(event_elapsed(ms, a, b)); }
API cuStreamBeginCapture_v2(Stream* s, int) { return HERE(capture_begin(s)); }
// Ends the capture even where it is told to fail: a stream cannot be left capturing.
API cuStreamEndCapture(Stream* s, Graph** g) {
  return entered(__func__, true, Failing::kWorks, [&](int) { return capture_end(s, g); });
}
API cuGraphInstantiateWithFlags(Graph** e, Graph* g, unsigned long long) {
  return HERE(graph_instantiate(e, g));
}
API cuGraphLaunch(Graph* e, Stream* s) { return HERE(graph_launch(e, s)); }
API cuGraphExecDestroy(Graph* g) { return FREES(graph_exec_destroy(g)); }
API cuGraphDestroy(Graph* g) { return FREES(graph_destroy(g)); }
