// The machine that the fake driver pretends to be: devices, their memory, and everything a program
// can hold on to. One lock guards all of it.
//
// What must stay true:
//   - A queue runs as late as it may: not when work is put in, but when somebody waits for it. A
//     program that forgets to wait reads old bytes here, every time.
//   - Arguments and pinned addresses are taken at the call, bytes when the copy runs.
//   - Device memory ends at a page that cannot be touched, and freed memory cannot be touched at
//     all; a kernel that does gets "illegal address", after which the device is lost, as on a real
//     card.
//   - Codes are CUDA's; those used here have the same numbers in HIP.
#ifndef OSSRUN_FAKEDRIVER_MACHINE_H_
#define OSSRUN_FAKEDRIVER_MACHINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "emulator/emulator.h"

namespace fake {

enum Code {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinary = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kOutOfResources = 701,
  kLaunchFailed = 719,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureWrongThread = 908,
};

using Work = std::function<int()>;

struct Stream {
  int device;
  std::deque<Work> queue;
  uint64_t pushed = 0, done = 0;
  bool capturing = false, invalidated = false;
  uint64_t thread = 0;  // that began the capture
  std::vector<Work> captured;
};

struct Event {
  int device;
  bool timing;
  Stream* stream = nullptr;  // of the last record
  uint64_t position = 0;     // in that stream; passed when done >= position
  int64_t nanoseconds = 0;   // when it was passed
};

struct Module {
  int device;
  std::string image;
  const char* given = nullptr;  // AMD's runtime reads the caller's own bytes as long as it has them
};

struct Function {
  Module* module;
  const emulated_kernel* kernel;
  size_t allowed_shared;  // dynamic shared memory that may be asked for
};

struct Graph {
  std::vector<Work> work;
};

// A piece of address space with a page in front and behind that cannot be touched.
struct Allocation {
  int device;  // -1: pinned host memory
  size_t bytes;
  char* map;
  size_t mapped;
};

struct Device {
  std::string name = "Fake H100";
  int major = 9, minor = 0;
  int multiprocessors = 132;
  int shared_per_block = 232448;
  int integrated = 0;
  size_t memory = size_t{64} << 30;
  size_t used = 0;
  int retained = 0;
  int lost = 0;  // the code that every call returns from now on
};

struct Rule {
  std::string function;  // "": any
  uint64_t nth;          // the nth call from when the rule was made fails
  int code;
};

class Machine {
 public:
  std::mutex lock;
  bool initialized = false;
  std::vector<Device> devices{1};
  std::map<uintptr_t, Allocation> allocations;  // by the address the program has
  std::map<uintptr_t, size_t> freed;            // maps that stay as traps
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Module*> modules;
  std::map<std::pair<Module*, std::string>, std::unique_ptr<Function>> functions;
  std::set<Graph*> graphs, executables;

  // What launches of kernels take by the events' clock, which then knows nothing else.
  std::map<std::string, int64_t> costs;
  int64_t spent = 1;  // nanoseconds

  // Calls so far, by name and in order, and the rule for failures.
  uint64_t calls = 0;
  int version = 0;  // that the driver gives as its own; 0: the fake's
  std::vector<const char*> trace;
  std::map<std::string, uint64_t> by_name;
  std::unique_ptr<Rule> rule;
  bool reverse = false;  // threads of a block run last to first
  std::string gcn;       // AMD's name of the devices' instruction set
  std::string broken;    // a kernel that touches memory that is not there
  std::string skipped;   // a kernel, one launch of which does nothing
  int skip_in = 0;       // launches until then
  std::string fault;     // what the emulation said about the last kernel that it ended

  // Counts a call. True: the rule says that this one fails, with *code.
  bool fails(const char* name, int* code);

  int allocate(int device, size_t bytes, uintptr_t* at);
  int release(uintptr_t at, bool host);
  // The allocation that holds [at, at+bytes), null when none does.
  const Allocation* holding(uintptr_t at, size_t bytes) const;
  // Whether kernels of a device may use an address.
  bool reachable(int device, uintptr_t at) const;

  int run_until(Stream* s, uint64_t position);
  int drain(int device);
  int enqueue(Stream* s, Work work);
  // What a thread may not do while it captures: an error then, and the capture is lost.
  int uncaptured();
  int launch(Stream* s, Function* f, const unsigned grid[3], const unsigned block[3], size_t shared,
             void** arguments);
  // Blocks of so many threads and so much shared memory that a multiprocessor holds at once.
  int resident(int device, int threads, size_t shared) const;

  void reset();
  std::string leaks() const;
};

extern Machine machine;

// Runs something so that touching forbidden memory ends it instead of the process: kIllegalAddress.
int guarded(const std::function<void()>& kernel);

int64_t nanoseconds();
uint64_t this_thread();

}  // namespace fake

#endif  // OSSRUN_FAKEDRIVER_MACHINE_H_
