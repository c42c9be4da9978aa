// What a test asks of the fake that no driver has: it is reached by dlsym like the rest.

#include <cstring>

#include "machine.h"

using namespace fake;

#define CONTROL extern "C" __attribute__((visibility("default")))

namespace {
uint64_t copy(const std::string& s, char* to, uint64_t n) {
  if (n > 0) {
    const uint64_t m = std::min<uint64_t>(s.size(), n - 1);
    memcpy(to, s.data(), m);
    to[m] = 0;
  }
  return s.size();
}
}  // namespace

// Forgets everything; the machine has one device again, and nothing was called.
CONTROL void ossrun_fake_reset() {
  const std::lock_guard<std::mutex> hold(machine.lock);
  machine.reset();
}

// The machine has n devices of this kind. Before the first context.
CONTROL void ossrun_fake_devices(uint64_t n, const char* name, uint64_t major, uint64_t minor,
                                 uint64_t memory) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  Device d;
  d.name = name;
  d.major = static_cast<int>(major);
  d.minor = static_cast<int>(minor);
  d.memory = memory;
  machine.devices.assign(n, d);
}

// The devices have so many multiprocessors.
CONTROL void ossrun_fake_multiprocessors(uint64_t n) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  for (Device& d : machine.devices) d.multiprocessors = static_cast<int>(n);
}

// This kernel loses the device from now on; "": none does.
CONTROL void ossrun_fake_break(const char* kernel) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  machine.broken = kernel;
}

// The nth launch of this kernel from now on does nothing, as after a lost race.
CONTROL void ossrun_fake_skip(const char* kernel, uint64_t nth) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  machine.skipped = kernel;
  machine.skip_in = static_cast<int>(nth);
}

// Launches of this kernel take so many nanoseconds by the clock of events, and others none.
CONTROL void ossrun_fake_cost(const char* kernel, uint64_t nanoseconds) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  machine.costs[kernel] = static_cast<int64_t>(nanoseconds);
}

// The devices share the host's memory.
CONTROL void ossrun_fake_integrate() {
  const std::lock_guard<std::mutex> hold(machine.lock);
  for (Device& d : machine.devices) d.integrated = 1;
}

// What AMD's runtime says of the devices' instruction set.
CONTROL void ossrun_fake_gcn(const char* name) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  machine.gcn = name;
}

// The driver gives this version as its own.
CONTROL void ossrun_fake_version(uint64_t version) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  machine.version = static_cast<int>(version);
}

// The nth call from now of a function ("": of any) fails with code.
CONTROL void ossrun_fake_fail(const char* function, uint64_t nth, uint64_t code) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  machine.rule.reset(new Rule{function, nth, static_cast<int>(code)});
}

// Whether the rule of ossrun_fake_fail still waits for its call.
CONTROL uint64_t ossrun_fake_failing() {
  const std::lock_guard<std::mutex> hold(machine.lock);
  return machine.rule ? 1 : 0;
}

// How often a function ("": any) was called.
CONTROL uint64_t ossrun_fake_calls(const char* function) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  return *function == 0 ? machine.calls : machine.by_name[function];
}

// The names of all calls so far, one a line; returns the length there is.
CONTROL uint64_t ossrun_fake_trace(char* to, uint64_t n) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  std::string all;
  for (const char* name : machine.trace) all.append(name).append("\n");
  return copy(all, to, n);
}

// The names of the kernels that the emulation has, one a line.
CONTROL uint64_t ossrun_fake_kernels(char* to, uint64_t n) {
  std::string all;
  for (int i = 0; i < emulator_count(); i++) all.append(emulator_at(i)->name).append("\n");
  return copy(all, to, n);
}

// What is held and was not given back: "2 device allocations, 1 streams"; empty when nothing is.
CONTROL uint64_t ossrun_fake_leaks(char* to, uint64_t n) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  return copy(machine.leaks(), to, n);
}

// Kernels run the threads of a block last to first, which finds other missing barriers.
CONTROL void ossrun_fake_reverse(uint64_t reverse) {
  const std::lock_guard<std::mutex> hold(machine.lock);
  machine.reverse = reverse != 0;
}
