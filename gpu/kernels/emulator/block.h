// A block of the emulation: its fibers, its warps, its shared memory. simt.cpp runs one, launch.cpp
// the blocks of a launch.
#ifndef OSSRUN_GPU_EMULATOR_BLOCK_H_
#define OSSRUN_GPU_EMULATOR_BLOCK_H_

#include "simt.h"

#include <memory>
#include <vector>

namespace simt {

struct Warp {
  unsigned generation;
  int arrived, returned, collective;
  Work work;                           // of the collective that some lanes wait in
  alignas(64) uint64_t slot[2][WARP];  // two, so that a fast lane may enter the next collective
};

struct SharedArray {
  const void* site;
  std::unique_ptr<char[]> memory;
  size_t bytes;
  bool live;
};

// Why a block gave the processor back.
enum class Left {
  kReturned,  // all threads have
  kFailed,    // error says why
  kWaits,     // in memory, for another block: yield_block
  kPaused,    // behind an atomic operation, so that another block may go first
};

struct Block {
  // Of the launch.
  const Kernel* kernel = nullptr;
  void* const* args = nullptr;
  int step = 1;  // -1: the last thread first
  size_t dynamic_bytes = 0;
  bool pauses = false;  // behind atomic operations

  dim3 index;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<SharedArray> arrays;
  std::vector<char> dynamic;
  char* stacks = nullptr;
  int capacity = 0;
  int threads = 0, returned = 0, arrived = 0, waiting = 0;
  unsigned generation = 0;
  const char* file = nullptr;  // of the barrier that some threads wait at
  int line = 0;
  void* launcher = nullptr;  // its stack
  Fiber* next = nullptr;     // the one to go on with
  Left left = Left::kReturned;
  uint64_t switches = 0;
  uint64_t progress = 0;  // collectives and atomic operations: what waiting alone does not raise
  char error[512] = {};

  ~Block();
  // Makes the threads of the block with this index, none of which has run.
  void begin(dim3 index);
  // Runs until the block leaves the processor.
  Left resume();

 private:
  void reserve(int n);
  void check_guards();
};

}  // namespace simt

#endif  // OSSRUN_GPU_EMULATOR_BLOCK_H_
