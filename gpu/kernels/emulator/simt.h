// What a kernel sees when it is compiled for the host: CUDA's words, carried out by fibers.
//
// One fiber is one GPU thread, all of a launch on one OS thread. A fiber runs until it meets
// a collective (barrier, shuffle, matrix product) and then hands over to another one of its own
// warp, and only when its whole warp waits to another warp: a warp runs as far ahead as it can, so
// that a missing barrier between warps shows as a wrong result. simt.cpp has the scheduler of a
// block's threads, launch.cpp that of blocks.
//
// What must stay true:
//   - Shared memory is NaN when a block starts and has guards behind every array.
//   - What CUDA leaves undefined is an error here, never a lucky result: barriers reached at
//     different lines or after some threads returned, warps whose lanes meet different collectives,
//     blocks that are not whole warps, shared memory that was not asked for.
//   - An error ends the launch with a sentence; the process lives on.
#ifndef OSSRUN_GPU_EMULATOR_SIMT_H_
#define OSSRUN_GPU_EMULATOR_SIMT_H_

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tuple>
#include <utility>

#ifndef WARP
#define WARP 32
#endif

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline  // g++ chooses: forced, it compiles far slower
#define __launch_bounds__(...)

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// Bytes of {high, low} by the four indices in `at`, AMD's v_perm_b32; those of low are 0 to 3.
inline unsigned bytes_at(unsigned high, unsigned low, unsigned at) {
  const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
  unsigned r = 0;
  for (int i = 0; i < 32; i += 8) r |= static_cast<unsigned>(both >> (at >> i & 7) * 8 & 0xff) << i;
  return r;
}
// NVIDIA's prmt: bytes of a, 0 to 3, and b, 4 to 7, by the nibbles of `at`; with 8 a byte's sign,
// eight times.
inline unsigned permute_bytes(unsigned a, unsigned b, unsigned at) {
  const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++, at >>= 4) {
    const unsigned byte = both >> (at & 7) * 8 & 0xff;
    r |= (at & 8 ? byte / 128 * 255 : byte) << 8 * i;
  }
  return r;
}

namespace simt {

// The kinds of warp collectives: all lanes of a warp must meet the same one.
enum Collective { kShuffle = 1, kSyncWarp, kMatrix };
// What the last lane to arrive does for its warp: all[i] is what lane i brought, and then its
// result.
typedef void (*Work)(uint64_t* all);

struct Fiber {
  void* stack_pointer;
  int state;
  unsigned waits_for;  // generation of the warp or the block
  int lane, warp;
  dim3 thread;
};

struct Block;
// Read at every word of a kernel: at a fixed place of the thread, not through the loader's call
// that variables of an opened library take otherwise.
#define FIXED_PLACE __attribute__((tls_model("initial-exec")))
extern __thread Fiber* self FIXED_PLACE;  // the fiber that runs on this OS thread
extern __thread Block* block FIXED_PLACE;
extern __thread dim3 block_index FIXED_PLACE, block_dim FIXED_PLACE, grid_dim FIXED_PLACE;

void sync_block(const char* file, int line);
void sync_warp(int collective);
// Every lane gives v and receives what lane `from` gave.
uint64_t exchange(uint64_t v, int from);
// Every lane brings a value or the address of one, and the last lane to arrive does the work for
// all: one change of fibers a lane, whatever the work is. All must want the same work.
uint64_t together(int collective, uint64_t mine, Work work);
// The shared array declared at `site`, the same for the whole block; NaN when first asked for.
void* shared_array(const void* site, size_t bytes);
// Dynamic shared memory of the launch.
void* dynamic_shared();
// Lets other blocks run while this thread waits for them in memory.
void yield_block();
// Behind an atomic operation: another block may go first.
void pause_block();
// Ends the launch with an error.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// A kernel the emulator can launch by name.
struct Kernel {
  const char* name;
  int max_threads;
  int count;         // of parameters
  const int* sizes;  // bytes of each
  void (*call)(void (*function)(), void* const* args);
  void (*function)();
  Kernel* next;
};
void add(Kernel* k);

template <class... A>
struct Caller {
  static constexpr int count = sizeof...(A);
  static const int* sizes() {
    static const int s[] = {int{sizeof(A)}..., 0};
    return s;
  }
  static void call(void (*function)(), void* const* args) {
    apply(function, args, std::index_sequence_for<A...>());
  }
  template <size_t... I>
  static void apply(void (*function)(), void* const* args, std::index_sequence<I...>) {
    reinterpret_cast<void (*)(A...)>(function)(*static_cast<std::remove_const_t<A>*>(args[I])...);
  }
};

struct Register {
  Kernel kernel;
  template <class... A>
  Register(const char* name, void (*f)(A...), int max_threads) {
    kernel = {name,
              max_threads,
              Caller<A...>::count,
              Caller<A...>::sizes(),
              Caller<A...>::call,
              reinterpret_cast<void (*)()>(f),
              nullptr};
    add(&kernel);
  }
};

}  // namespace simt

#define threadIdx (simt::self->thread)
#define blockIdx (simt::block_index)
#define blockDim (simt::block_dim)
#define gridDim (simt::grid_dim)
#define __syncthreads() simt::sync_block(__FILE__, __LINE__)

// The larger, the smaller one; of a number and NaN the number. The library's are calls.
static inline float simt_fmaxf(float a, float b) { return b != b || a > b ? a : b; }
static inline float simt_fminf(float a, float b) { return b != b || a < b ? a : b; }
#define fmaxf simt_fmaxf
#define fminf simt_fminf

static inline float __uint_as_float(unsigned v) {
  float f;
  memcpy(&f, &v, 4);
  return f;
}
static inline unsigned __float_as_uint(float f) {
  unsigned v;
  memcpy(&v, &f, 4);
  return v;
}
static inline double __longlong_as_double(long long v) {
  double d;
  memcpy(&d, &v, 8);
  return d;
}
static inline long long __double_as_longlong(double d) {
  long long v;
  memcpy(&v, &d, 8);
  return v;
}
static inline void __syncwarp(unsigned = 0) { simt::sync_warp(simt::kSyncWarp); }
static inline int __shfl_sync(unsigned, int v, int lane) {
  return static_cast<int>(simt::exchange(static_cast<unsigned>(v), lane));
}
static inline int __shfl_xor_sync(unsigned, int v, int d) {
  return static_cast<int>(simt::exchange(static_cast<unsigned>(v), simt::self->lane ^ d));
}
#endif  // OSSRUN_GPU_EMULATOR_SIMT_H_
