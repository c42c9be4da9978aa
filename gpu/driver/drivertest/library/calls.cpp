#include "calls.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace fake {

namespace {
thread_local int current_device = -1;

bool known(const Stream* s) { return machine.streams.count(const_cast<Stream*>(s)) != 0; }
bool known(const Event* e) { return machine.events.count(const_cast<Event*>(e)) != 0; }

// Copies [from, from+n), which must still be memory when the copy runs.
Work copier(uintptr_t to, uintptr_t from, size_t n) {
  return [=] {
    if (machine.holding(to, n) == nullptr || machine.holding(from, n) == nullptr) {
      return static_cast<int>(kIllegalAddress);
    }
    memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), n);
    return static_cast<int>(kSuccess);
  };
}
bool on_device(uintptr_t at, size_t n) {
  const Allocation* a = machine.holding(at, n);
  return a != nullptr && a->device >= 0;
}
bool pinned(const void* at, size_t n) {
  const Allocation* a = machine.holding(reinterpret_cast<uintptr_t>(at), n);
  return a != nullptr && a->device < 0;
}
}  // namespace

void use(int device) { current_device = device; }
bool launchable(Stream* s) { return known(s) && s->device == current_device; }

int allocate(int device, size_t bytes, uintptr_t* at) {
  if (const int code = machine.uncaptured()) return code;
  return machine.allocate(device, bytes, at);
}

int release(int device, uintptr_t at, bool host) {
  if (const int code = machine.uncaptured()) return code;
  machine.drain(device);
  return machine.release(at, host);
}

int entered(const char* name, bool needs_context, Failing failing,
            const std::function<int(int)>& body) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  int code = kSuccess;
  const bool told = machine.fails(name, &code);
  if (told && failing == Failing::kNothing) return code;
  if (needs_context && current_device < 0) return kInvalidContext;
  const int lost = needs_context ? machine.devices[current_device].lost : 0;
  const int result = lost != 0 && failing == Failing::kNothing ? lost : body(current_device);
  return told ? code : result != kSuccess ? result : lost;
}

int initialize() {
  machine.initialized = true;
  return kSuccess;
}

int device_count(int* n) {
  if (!machine.initialized) return kNotInitialized;
  *n = static_cast<int>(machine.devices.size());
  return *n == 0 ? kNoDevice : kSuccess;
}

int device_get(int* device, int index) {
  if (index < 0 || index >= static_cast<int>(machine.devices.size())) return kInvalidDevice;
  *device = index;
  return kSuccess;
}

int device_name(char* to, int n, int device) {
  snprintf(to, n, "%s", machine.devices[device].name.c_str());
  return kSuccess;
}

int device_pci(char* to, int n, int device) {
  snprintf(to, n, "0000:%02x:00.0", device + 1);
  return kSuccess;
}

int device_total(size_t* bytes, int device) {
  *bytes = machine.devices[device].memory;
  return kSuccess;
}

int memory_info(size_t* free, size_t* total, int device) {
  const Device& d = machine.devices[device];
  *total = d.memory;
  *free = d.memory - d.used;
  return kSuccess;
}

int host_alloc(void** at, size_t bytes) {
  return allocate(-1, bytes, reinterpret_cast<uintptr_t*>(at));
}

// A stream copy of memory that is not pinned would be legal, and slow: it is a mistake here.
int copy_in(uintptr_t to, const void* from, size_t n, Stream* s) {
  if (!known(s)) return kInvalidHandle;
  if (!on_device(to, n) || !pinned(from, n)) return kInvalidValue;
  return machine.enqueue(s, copier(to, reinterpret_cast<uintptr_t>(from), n));
}

int copy_out(void* to, uintptr_t from, size_t n, Stream* s) {
  if (!known(s)) return kInvalidHandle;
  if (!on_device(from, n) || !pinned(to, n)) return kInvalidValue;
  return machine.enqueue(s, copier(reinterpret_cast<uintptr_t>(to), from, n));
}

int copy_inside(uintptr_t to, uintptr_t from, size_t n, Stream* s) {
  if (!known(s)) return kInvalidHandle;
  if (!on_device(from, n) || !on_device(to, n)) return kInvalidValue;
  return machine.enqueue(s, copier(to, from, n));
}

int memory_set(uintptr_t to, unsigned char value, size_t n, Stream* s) {
  if (!known(s)) return kInvalidHandle;
  if (!on_device(to, n)) return kInvalidValue;
  return machine.enqueue(s, [=] {
    if (!on_device(to, n)) return static_cast<int>(kIllegalAddress);
    memset(reinterpret_cast<void*>(to), value, n);
    return static_cast<int>(kSuccess);
  });
}

namespace {

template <class T>
T read(const char* at) {
  T v;
  memcpy(&v, at, sizeof v);
  return v;
}

bool is_elf(const char* image) {
  return memcmp(image,
                "\x7f"
                "ELF",
                4) == 0;
}

// A cubin is ELF for machine 190; the card that it was assembled for stands in its flags, at a
// place that depends on the version of the format.
int cubin_version(const std::string& image) {
  if (!is_elf(image.data()) || read<uint16_t>(image.data() + 18) != 190) return 0;
  const uint32_t flags = read<uint32_t>(image.data() + 48);
  return (image[8] >= 8 ? flags >> 8 : flags) & 0xff;
}

// The targets that an image says it is for: PTX runs on its own and later cards, "a" targets on
// their own only; machine code on later cards of its major number, from 9.0 on (all that is shipped
// is for "a" targets there) on its own only; of a code object the gfx name stands in its notes.
int fits(const std::string& image, const Device& d) {
  const int card = d.major * 10 + d.minor;
  if (const int version = cubin_version(image)) {
    const bool runs =
        version == card || (version < card && version / 10 == card / 10 && version < 90);
    return runs ? kSuccess : kNoBinary;
  }
  const size_t target = image.find(".target sm_");
  if (target == std::string::npos) return kSuccess;
  int version = 0;
  size_t i = target + strlen(".target sm_");
  for (; i < image.size() && isdigit(image[i]); i++) version = version * 10 + image[i] - '0';
  const bool exact = i < image.size() && image[i] == 'a';
  return version > card || (exact && version != card) ? kNoBinary : kSuccess;
}

// An ELF file ends where its section headers or its program headers do.
size_t elf_size(const char* image) {
  const uint64_t sections = read<uint64_t>(image + 0x28) +
                            uint64_t{read<uint16_t>(image + 0x3a)} * read<uint16_t>(image + 0x3c);
  const uint64_t programs = read<uint64_t>(image + 0x20) +
                            uint64_t{read<uint16_t>(image + 0x36)} * read<uint16_t>(image + 0x38);
  return std::max(sections, programs);
}

// What a kernel of a cubin declares of shared memory; 1 KiB of one in another image.
size_t own_shared(const std::string& image, const std::string& kernel) {
  if (cubin_version(image) == 0) return 1 << 10;
  const char* const at = image.data();
  const auto header = [&](int i) {
    return at + read<uint64_t>(at + 0x28) + uint64_t{read<uint16_t>(at + 0x3a)} * i;
  };
  const char* const names = at + read<uint64_t>(header(read<uint16_t>(at + 0x3e)) + 24);
  for (int i = 0; i < read<uint16_t>(at + 0x3c); i++)
    if (names + read<uint32_t>(header(i)) == ".nv.shared." + kernel)
      return read<uint64_t>(header(i) + 32);
  return 0;
}

}  // namespace

int module_load(Module** m, const char* image, int device) {
  if (const int code = machine.uncaptured()) return code;
  std::string text;
  if (is_elf(image)) {
    text.assign(image, elf_size(image));
  } else if (strstr(image, ".version") != nullptr && strstr(image, ".target") != nullptr) {
    text = image;
  } else {
    return kInvalidImage;
  }
  if (const int code = fits(text, machine.devices[device])) return code;
  *m = new Module{device, std::move(text)};
  machine.modules.insert(*m);
  return kSuccess;
}

int module_unload(Module* m) {
  if (const int code = machine.uncaptured()) return code;
  if (machine.modules.erase(m) == 0) return kInvalidHandle;
  machine.drain(m->device);
  for (auto it = machine.functions.begin(); it != machine.functions.end();) {
    it = it->first.first == m ? machine.functions.erase(it) : std::next(it);
  }
  delete m;
  return kSuccess;
}

// A kernel must be in the image and in the emulation. NVIDIA's drivers load a kernel when it is
// first asked for, which may wait for the device.
int module_function(Function** f, Module* m, const char* name) {
  if (machine.modules.count(m) == 0) return kInvalidHandle;
  if (const int code = machine.uncaptured()) return code;
  if (m->given != nullptr && memcmp(m->given, m->image.data(), m->image.size()) != 0) {
    return kInvalidImage;
  }
  std::string entry = std::string(".entry ") + name + "(";
  if (cubin_version(m->image) != 0) {
    entry = std::string(".text.") + name + '\0';
  } else if (is_elf(m->image.data())) {
    entry = std::string(name) + ".kd";
  }
  if (m->image.find(entry) == std::string::npos) return kNotFound;
  const emulated_kernel* kernel = emulator_find(name);
  if (kernel == nullptr) return kNotFound;
  // Of 48 KiB that need no permission a kernel's own shared memory is a part.
  auto& slot = machine.functions[{m, name}];
  if (!slot) slot.reset(new Function{m, kernel, (48 << 10) - own_shared(m->image, name)});
  *f = slot.get();
  return kSuccess;
}

int stream_create(Stream** s, int device) {
  *s = new Stream{device, {}, 0, 0, false, false, 0, {}};
  machine.streams.insert(*s);
  return kSuccess;
}

int stream_destroy(Stream* s) {
  if (!known(s)) return kInvalidHandle;
  machine.run_until(s, s->pushed);
  for (Event* e : machine.events) {
    if (e->stream == s) e->stream = nullptr;
  }
  machine.streams.erase(s);
  delete s;
  return kSuccess;
}

int stream_wait(Stream* s, Event* e) {
  if (!known(s) || !known(e)) return kInvalidHandle;
  if (e->stream == nullptr) return kSuccess;  // never recorded, or passed long ago
  Stream* other = e->stream;
  const uint64_t position = e->position;
  return machine.enqueue(s, [=] {
    return known(other) ? machine.run_until(other, position) : static_cast<int>(kSuccess);
  });
}

int stream_synchronize(Stream* s) {
  if (!known(s)) return kInvalidHandle;
  if (s->capturing) {
    s->invalidated = true;
    return kCaptureUnsupported;
  }
  return machine.run_until(s, s->pushed);
}

int event_create(Event** e, unsigned flags, int device) {
  *e = new Event{device, flags == 0};
  machine.events.insert(*e);
  return kSuccess;
}

int event_destroy(Event* e) {
  if (machine.events.erase(e) == 0) return kInvalidHandle;
  delete e;
  return kSuccess;
}

int event_record(Event* e, Stream* s) {
  if (!known(s) || !known(e) || e->device != s->device) return kInvalidHandle;
  if (!s->capturing) {
    e->stream = s;
    e->position = s->pushed + 1;
  }
  return machine.enqueue(s, [e] {
    if (known(e)) e->nanoseconds = machine.costs.empty() ? nanoseconds() : machine.spent;
    return static_cast<int>(kSuccess);
  });
}

int event_synchronize(Event* e) {
  if (!known(e)) return kInvalidHandle;
  if (const int code = machine.uncaptured()) return code;
  return e->stream == nullptr ? kSuccess : machine.run_until(e->stream, e->position);
}

int event_elapsed(float* ms, Event* start, Event* end) {
  if (!known(start) || !known(end) || !start->timing || !end->timing) return kInvalidHandle;
  if (start->device != end->device) return kInvalidHandle;
  for (const Event* e : {start, end}) {
    if (e->stream != nullptr && e->stream->done < e->position) return kNotReady;
    if (e->nanoseconds == 0) return kInvalidHandle;
  }
  *ms = static_cast<float>(static_cast<double>(end->nanoseconds - start->nanoseconds) * 1e-6);
  return kSuccess;
}

int capture_begin(Stream* s) {
  if (!known(s)) return kInvalidHandle;
  if (s->capturing) return kCaptureUnsupported;
  s->capturing = true;
  s->invalidated = false;
  s->thread = this_thread();
  s->captured.clear();
  return kSuccess;
}

int capture_end(Stream* s, Graph** g) {
  if (!known(s)) return kInvalidHandle;
  if (!s->capturing) return kCaptureUnsupported;
  if (s->thread != this_thread()) return kCaptureWrongThread;
  s->capturing = false;
  *g = nullptr;
  if (s->invalidated) return kCaptureInvalidated;
  *g = new Graph{std::move(s->captured)};
  s->captured.clear();
  machine.graphs.insert(*g);
  return kSuccess;
}

int graph_instantiate(Graph** exec, Graph* g) {
  if (machine.graphs.count(g) == 0) return kInvalidHandle;
  *exec = new Graph(*g);
  machine.executables.insert(*exec);
  return kSuccess;
}

int graph_launch(Graph* exec, Stream* s) {
  if (machine.executables.count(exec) == 0 || !launchable(s)) return kInvalidHandle;
  for (const Work& work : exec->work) {
    if (const int code = machine.enqueue(s, work)) return code;
  }
  return kSuccess;
}

int graph_destroy(Graph* g) {
  if (machine.graphs.erase(g) == 0) return kInvalidHandle;
  delete g;
  return kSuccess;
}

int graph_exec_destroy(Graph* g) {
  if (machine.executables.erase(g) == 0) return kInvalidHandle;
  delete g;
  return kSuccess;
}

namespace {
struct Words {
  int code;
  const char *name, *text;
};
const Words words[] = {
    {kSuccess, "SUCCESS", "no error"},
    {kInvalidValue, "ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "ERROR_NO_DEVICE", "no GPU is detected"},
    {kInvalidDevice, "ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidContext, "ERROR_INVALID_CONTEXT", "invalid device context"},
    {kNoBinary, "ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for this device"},
    {kInvalidHandle, "ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kOutOfResources, "ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {kLaunchFailed, "ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kCaptureUnsupported, "ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "not permitted when stream is capturing"},
    {kCaptureInvalidated, "ERROR_STREAM_CAPTURE_INVALIDATED", "the capture failed before"},
    {kCaptureWrongThread, "ERROR_STREAM_CAPTURE_WRONG_THREAD", "capture is on another thread"},
};
}  // namespace

const char* code_name(int code) {
  for (const Words& w : words) {
    if (w.code == code) return w.name;
  }
  return nullptr;
}

// The text of a kernel's end says what the emulation found.
const char* code_text(int code) {
  static std::string longer;
  if ((code == kLaunchFailed || code == kIllegalAddress) && !machine.fault.empty()) {
    longer = machine.fault;
    return longer.c_str();
  }
  for (const Words& w : words) {
    if (w.code == code) return w.text;
  }
  return nullptr;
}

}  // namespace fake
