// HIP's names, as libamdhip64.so exports them. A device is chosen by its number, there are no
// contexts, and a thread that chose none uses the first.

#include <cstdio>
#include <cstring>

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

API hipInit(unsigned) { return PLAIN(initialize()); }
API hipDriverGetVersion(int* version) {
  return PLAIN((*version = machine.version != 0 ? machine.version : 60342134, 0));
}
extern "C" __attribute__((visibility("default"))) const char* hipGetErrorName(int code) {
  const char* name = code_name(code);
  return name == nullptr ? "hipErrorUnknown" : name;
}
extern "C" __attribute__((visibility("default"))) const char* hipGetErrorString(int code) {
  const char* text = code_text(code);
  return text == nullptr ? "unknown error" : text;
}
API hipGetDeviceCount(int* n) { return PLAIN(device_count(n)); }
API hipDeviceGet(int* device, int index) { return PLAIN(device_get(device, index)); }
API hipDeviceGetName(char* to, int n, int d) { return PLAIN(device_name(to, n, d)); }
API hipDeviceGetPCIBusId(char* to, int n, int d) { return PLAIN(device_pci(to, n, d)); }
API hipDeviceTotalMem(size_t* bytes, int d) { return PLAIN(device_total(bytes, d)); }

namespace {
int attribute(int* v, int a, const Device& d) {
  switch (a) {
    case 10:
      *v = 1;
      break;
    case 16:
      *v = 0;
      break;
    case 19:
      *v = 4 << 20;
      break;
    case 23:
      *v = d.major;
      break;
    case 56:
      *v = 1024;
      break;
    case 61:
      *v = d.minor;
      break;
    case 63:
      *v = d.multiprocessors;
      break;
    case 74:
      *v = 64 << 10;
      break;
    case 87:
      *v = emulator_warp();
      break;
    default:
      return kInvalidValue;
  }
  return kSuccess;
}
}  // namespace

API hipDeviceGetAttribute(int* v, int a, int d) {
  return PLAIN(attribute(v, a, machine.devices[d]));
}
// Of the structure only the name of the instruction set. It is not counted among the calls: nothing
// depends on its success.
API hipGetDevicePropertiesR0600(char* properties, int) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  memset(properties, 0, 1472);
  snprintf(properties + 1160, 256, "%s", machine.gcn.c_str());
  return kSuccess;
}
API hipSetDevice(int d) {
  return entered(__func__, false, Failing::kNothing, [&](int) -> int {
    if (d < 0 || d >= static_cast<int>(machine.devices.size())) return kInvalidDevice;
    use(d);
    return kSuccess;
  });
}

API hipMemGetInfo(size_t* free, size_t* total) { return HERE(memory_info(free, total, here)); }
API hipMalloc(uintptr_t* at, size_t n) { return HERE(allocate(here, n, at)); }
API hipFree(uintptr_t at) {
  return entered(__func__, true, Failing::kWorks,
                 [&](int here) -> int { return release(here, at, false); });
}
API hipHostMalloc(void** at, size_t n, unsigned) { return HERE(host_alloc(at, n)); }
API hipHostFree(void* at) {
  return entered(__func__, true, Failing::kWorks, [&](int here) -> int {
    return release(here, reinterpret_cast<uintptr_t>(at), true);
  });
}

API hipMemcpyHtoDAsync(uintptr_t to, const void* from, size_t n, Stream* s) {
  return HERE(copy_in(to, from, n, s));
}
API hipMemcpyDtoHAsync(void* to, uintptr_t from, size_t n, Stream* s) {
  return HERE(copy_out(to, from, n, s));
}
API hipMemcpyDtoDAsync(uintptr_t to, uintptr_t from, size_t n, Stream* s) {
  return HERE(copy_inside(to, from, n, s));
}
API hipMemcpyPeerAsync(uintptr_t to, int, uintptr_t from, int, size_t n, Stream* s) {
  return HERE(copy_inside(to, from, n, s));
}
API hipMemsetD8Async(uintptr_t to, unsigned char v, size_t n, Stream* s) {
  return HERE(memory_set(to, v, n, s));
}

API hipModuleLoadDataEx(Module** m, const void* image, unsigned, int*, void**) {
  return entered(__func__, true, Failing::kNothing, [&](int here) -> int {
    const int code = module_load(m, static_cast<const char*>(image), here);
    if (code == kSuccess) (*m)->given = static_cast<const char*>(image);
    return code;
  });
}
API hipModuleUnload(Module* m) { return FREES(module_unload(m)); }
// LDS needs no permission: a kernel may have all 64 KiB.
API hipModuleGetFunction(Function** f, Module* m, const char* name) {
  return entered(__func__, true, Failing::kNothing, [&](int) -> int {
    const int code = module_function(f, m, name);
    if (code == kSuccess) (*f)->allowed_shared = 64 << 10;
    return code;
  });
}
API hipFuncSetAttribute(const void*, int, int) { return HERE(kInvalidValue); }
API hipModuleLaunchKernel(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, Stream* s, void** arguments,
                          void**) {
  return entered(__func__, true, Failing::kNothing, [&](int) -> int {
    if (!launchable(s)) return kInvalidHandle;
    const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    return machine.launch(s, f, grid, block, shared, arguments);
  });
}

API hipStreamCreateWithFlags(Stream** s, unsigned) { return HERE(stream_create(s, here)); }
API hipStreamDestroy(Stream* s) { return FREES(stream_destroy(s)); }
API hipStreamWaitEvent(Stream* s, Event* e, unsigned) { return HERE(stream_wait(s, e)); }
API hipStreamSynchronize(Stream* s) { return HERE(stream_synchronize(s)); }
API hipEventCreateWithFlags(Event** e, unsigned flags) {
  return HERE(event_create(e, flags, here));
}
API hipEventDestroy(Event* e) { return FREES(event_destroy(e)); }
API hipEventRecord(Event* e, Stream* s) { return HERE(event_record(e, s)); }
API hipEventSynchronize(Event* e) { return HERE(event_synchronize(e)); }
API hipEventElapsedTime(float* ms, Event* a, Event* b) { return HERE(event_elapsed(ms, a, b)); }
API hipStreamBeginCapture(Stream* s, int) { return HERE(capture_begin(s)); }
API hipStreamEndCapture(Stream* s, Graph** g) {
  return entered(__func__, true, Failing::kWorks, [&](int) { return capture_end(s, g); });
}
API hipGraphInstantiateWithFlags(Graph** e, Graph* g, unsigned long long) {
  return HERE(graph_instantiate(e, g));
}
API hipGraphLaunch(Graph* e, Stream* s) { return HERE(graph_launch(e, s)); }
API hipGraphExecDestroy(Graph* g) { return FREES(graph_exec_destroy(g)); }
API hipGraphDestroy(Graph* g) { return FREES(graph_destroy(g)); }
