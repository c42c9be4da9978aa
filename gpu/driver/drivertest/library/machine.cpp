// Queues, launches, failures on demand, and the count of what was not given back.

#include "machine.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>

namespace fake {

Machine machine;

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t this_thread() { return static_cast<uint64_t>(pthread_self()); }

bool Machine::fails(const char* name, int* code) {
  calls++;
  trace.push_back(name);
  by_name[name]++;
  if (!rule || (!rule->function.empty() && rule->function != name)) return false;
  if (--rule->nth > 0) return false;
  *code = rule->code;
  rule.reset();
  return true;
}

// A failure of the work itself loses the device.
int Machine::run_until(Stream* s, uint64_t position) {
  while (s->done < position && !s->queue.empty()) {
    const Work work = std::move(s->queue.front());
    s->queue.pop_front();
    s->done++;
    const int code = devices[s->device].lost != 0 ? 0 : work();
    if (code != kSuccess) devices[s->device].lost = code;
  }
  return devices[s->device].lost;
}

int Machine::drain(int device) {
  for (Stream* s : streams) {
    if (s->device == device) run_until(s, s->pushed);
  }
  return devices[device].lost;
}

int Machine::uncaptured() {
  int code = kSuccess;
  for (Stream* s : streams) {
    if (!s->capturing || s->thread != this_thread()) continue;
    s->invalidated = true;
    code = kCaptureUnsupported;
  }
  return code;
}

int Machine::enqueue(Stream* s, Work work) {
  if (s->capturing) {
    if (s->thread != this_thread()) return kCaptureWrongThread;
    s->captured.push_back(std::move(work));
    return kSuccess;
  }
  s->queue.push_back(std::move(work));
  s->pushed++;
  return kSuccess;
}

int Machine::launch(Stream* s, Function* f, const unsigned grid[3], const unsigned block[3],
                    size_t shared, void** arguments) {
  const emulated_kernel& k = *f->kernel;
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    const unsigned most = i == 0 ? 0x7fffffffu : 65535u;
    if (grid[i] == 0 || grid[i] > most || block[i] == 0) return kInvalidValue;
    threads *= block[i];
  }
  if (block[2] > 64 || threads > 1024) return kInvalidValue;
  if (threads > static_cast<uint64_t>(k.max_threads)) return kOutOfResources;
  if (shared > f->allowed_shared) return kInvalidValue;
  if (f->module->device != s->device) return kInvalidHandle;
  const unsigned room = static_cast<unsigned>(
      resident(s->device, static_cast<int>(threads), shared) * devices[s->device].multiprocessors);
  std::vector<uint64_t> copy(k.params);
  for (int i = 0; i < k.params; i++) {
    if (arguments[i] == nullptr) return kInvalidValue;
    memcpy(&copy[i], arguments[i], k.sizes[i]);
    // What looks like an address must be one that this device reaches. A real card finds out when
    // the kernel touches it; here the launch is refused with the same code, so that the stack shows
    // who passed it.
    if (k.sizes[i] == 8 && copy[i] >> 32 != 0 && !reachable(s->device, copy[i])) {
      fault = std::string(k.name) + ": argument " + std::to_string(i) + " points nowhere";
      return kIllegalAddress;
    }
  }
  const std::array<unsigned, 3> g{grid[0], grid[1], grid[2]}, b{block[0], block[1], block[2]};
  return enqueue(s, [this, &k, copy = std::move(copy), g, b, shared, room] {
    if (broken == k.name) {
      fault = broken + ": touched memory that is not there";
      return static_cast<int>(kIllegalAddress);
    }
    if (const auto cost = costs.find(k.name); cost != costs.end()) spent += cost->second;
    if (skipped == k.name && --skip_in == 0) return static_cast<int>(kSuccess);
    std::vector<void*> at;
    for (const uint64_t& v : copy) at.push_back(const_cast<uint64_t*>(&v));
    const char* wrong = nullptr;
    emulator_reverse(reverse);
    emulator_blocks(reverse ? kOldestFirst : kInTurn, room);
    const int code =
        guarded([&] { wrong = emulator_launch(&k, g.data(), b.data(), shared, at.data()); });
    if (code != kSuccess) {
      fault = std::string(k.name) + ": touched memory that is not there";
      return code;
    }
    if (wrong == nullptr) return static_cast<int>(kSuccess);
    fault = wrong;
    return static_cast<int>(kLaunchFailed);
  });
}

// Threads and shared memory as one of NVIDIA's multiprocessors has them; registers are not known
// here.
int Machine::resident(int device, int threads, size_t shared) const {
  const size_t most = static_cast<size_t>(devices[device].shared_per_block) + 1024;
  return std::min(2048 / std::max(threads, 1), static_cast<int>(most / (shared + 1024)));
}

void Machine::reset() {
  for (Stream* s : streams) delete s;
  for (Event* e : events) delete e;
  for (Module* m : modules) delete m;
  for (Graph* g : graphs) delete g;
  for (Graph* g : executables) delete g;
  streams.clear();
  events.clear();
  modules.clear();
  graphs.clear();
  executables.clear();
  functions.clear();
  while (!allocations.empty()) {
    const auto& [at, a] = *allocations.begin();
    release(at, a.device < 0);
  }
  devices.assign(1, Device());
  calls = 0;
  version = 0;
  trace.clear();
  by_name.clear();
  rule.reset();
  fault.clear();
  reverse = false;
  broken.clear();
  skipped.clear();
  costs.clear();
  gcn.clear();
}

std::string Machine::leaks() const {
  std::ostringstream s;
  size_t device = 0, host = 0, retained = 0;
  for (const auto& [at, a] : allocations) {
    (void)at;
    (a.device < 0 ? host : device)++;
  }
  for (const Device& d : devices) retained += d.retained;
  const std::pair<size_t, const char*> counts[] = {{device, "device allocations"},
                                                   {host, "pinned allocations"},
                                                   {modules.size(), "modules"},
                                                   {streams.size(), "streams"},
                                                   {events.size(), "events"},
                                                   {graphs.size(), "graphs"},
                                                   {executables.size(), "executable graphs"},
                                                   {retained, "contexts"}};
  for (const auto& [n, what] : counts) {
    if (n != 0) s << (s.tellp() > 0 ? ", " : "") << n << " " << what;
  }
  return s.str();
}

}  // namespace fake
