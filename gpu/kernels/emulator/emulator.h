// The emulator's C face: what tests and the fake driver call. The kernels are linked in; they are
// found by name, as in a module.
#ifndef OSSRUN_GPU_EMULATOR_EMULATOR_H_
#define OSSRUN_GPU_EMULATOR_EMULATOR_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char* name;
  int max_threads;   // of a block; a larger one is refused, as by a driver
  int params;        // how many parameters it has
  const int* sizes;  // [params] bytes of each
} emulated_kernel;

// The kernels linked in, sorted by name.
int emulator_count(void);
const emulated_kernel* emulator_at(int i);
// Null when there is none of that name.
const emulated_kernel* emulator_find(const char* name);

// Lanes of a warp, and the fragment layout: "nv", "cdna", "gfx11" or "gfx12".
int emulator_warp(void);
const char* emulator_layout(void);

// The threads of a block: with reverse the last runs first, which finds other missing barriers.
// Here and below, options are the calling thread's own, and 0 at first.
void emulator_reverse(int reverse);

// The blocks of a launch: one after another, or all at once, in one of several orders; every number
// above kOldestFirst is another random one. Resident is how many can be there at once; 0: all.
enum { kInTurn, kNewestFirst, kOldestFirst };
void emulator_blocks(int order, unsigned resident);

// Runs a kernel and returns when all its blocks have; null, or a sentence about what was wrong that
// is good until this thread's next launch. args[i] points to the i-th parameter, as in
// cuLaunchKernel.
const char* emulator_launch(const emulated_kernel* kernel, const unsigned grid[3],
                            const unsigned block[3], size_t shared_bytes, void* const* args);

// Switches between fibers so far: the emulation's cost.
uint64_t emulator_switches(void);

#ifdef __cplusplus
}
#endif

#endif  // OSSRUN_GPU_EMULATOR_EMULATOR_H_
