// A whole decode step in one launch: its phases one after another, with a barrier over the grid
// between them.
//
// The launches that a step would have stand as a table in device memory, a record each: which
// kernel, of how many blocks, with which arguments. The blocks of this launch share out the blocks
// of every record. While a block waits at a barrier, it already asks for the weights that it reads
// first in the next phase; which experts those are is known for `down` alone.
//
// What must stay true: a record's kernel computes what it computes as a launch, bit for bit, so
// nothing here depends on how many blocks there are; the arguments are the kernel's parameters in
// their order, 8 bytes each.
#include "decode_attend.h"
#include "decode_dense.h"
#include "decode_experts.h"
#include "rope.h"
#include "rows.h"

// A record, in words of 8 bytes: the phase and, above it, blocks along x; blocks along y and z;
// then the arguments.
constexpr int kRecord = 24;
constexpr int kArguments = 2;

// gpu/kernels/decode_step.go has the same numbers.
enum Phase {
  kEmbed,
  kAngles,
  kGather,
  kQKV1,
  kQKV4,
  kAttend,
  kLinear1,
  kLinear4,
  kRoute,
  kGateUp,
  kDown,
};

template <class T>
struct Word {  // a number
  static __device__ __forceinline__ T get(int64_t w) { return static_cast<T>(w); }
};
template <class T>
struct Word<T*> {
  static __device__ __forceinline__ T* get(int64_t w) { return (T*)(IN_GPU_MEMORY T*)w; }
};
template <>
struct Word<float> {
  static __device__ __forceinline__ float get(int64_t w) {
    return __uint_as_float(static_cast<unsigned>(w));
  }
};

template <int... I>
struct Indices {};
template <int N, int... I>
struct Count : Count<N - 1, N - 1, I...> {};
template <int... I>
struct Count<0, I...> {
  typedef Indices<I...> all;
};

// Calls a phase with the words of a record as its arguments.
template <class F>
struct Taker;
template <class... A>
struct Taker<void (*)(const Place&, A...)> {
  static_assert(sizeof...(A) <= kRecord - kArguments, "a record has no room for these arguments");
  typedef typename Count<sizeof...(A)>::all all;
  template <void (*F)(const Place&, A...), int... I>
  static __device__ __forceinline__ void call(const Place& place, const int64_t* w, Indices<I...>) {
    F(place, Word<A>::get(same_in_warp(w[I]))...);
  }
};
#define PHASE(F) \
  Taker<decltype(&F)>::template call<&F>(place, w, typename Taker<decltype(&F)>::all())

template <class T>
__device__ __forceinline__ void run_phase(int phase, const Place& place, const int64_t* w) {
  switch (phase) {
    case kEmbed:
      return PHASE(embed_row);
    case kAngles:
      return PHASE(angles_row);
    case kGather:
      return PHASE(gather_row);
    case kQKV1:
      return PHASE((qkv_rows<1, T>));
    case kQKV4:
      return PHASE((qkv_rows<4, T>));
    case kAttend:
      return PHASE((attend_run<T, false>));
    case kLinear1:
      return PHASE((linear_rows<1>));
    case kLinear4:
      return PHASE((linear_rows<4>));
    case kRoute:
      return PHASE(route_row);
    case kGateUp:
      return PHASE((gate_up_slot<kInFlightMx>));
    case kDown:
      return PHASE(down_row);
  }
}

// What a block reads first of a phase, where that is known before the phase may begin.
template <class T>
__device__ __forceinline__ void ask_ahead(int phase, const Place& place, const int64_t* w) {
  switch (phase) {
    case kQKV1:
      return PHASE((qkv_ahead<1, T>));
    case kQKV4:
      return PHASE((qkv_ahead<4, T>));
    case kLinear1:
      return PHASE((linear_ahead<1>));
    case kLinear4:
      return PHASE((linear_ahead<4>));
    case kRoute:
      return PHASE(route_ahead);
    case kDown:
      return PHASE(down_ahead);
  }
}

__device__ __forceinline__ Place place_of(const int64_t* record, int block) {
  const int nx = static_cast<int>(record[0] >> 32), ny = static_cast<int>(record[1]);
  return {
      block % nx,    block / nx % ny, block / nx / ny, nx, ny, static_cast<int>(record[1] >> 32),
      thread_again()};
}

__device__ __forceinline__ int blocks_of(const int64_t* record) {
  return static_cast<int>(record[0] >> 32) * static_cast<int>(record[1]) *
         static_cast<int>(record[1] >> 32);
}

template <class T>
__device__ __forceinline__ void run_step(const int64_t* table, int phases, int* state, int fan) {
  const int first = static_cast<int>(blockIdx.x);
  int barrier = peek_gpu(state);  // nobody is past it before this block has been there
  for (int i = 0;; i++) {
    const int64_t* record = table + static_cast<int64_t>(i) * kRecord;
    const int blocks = blocks_of(record);
    for (int b = first; b < blocks; b += static_cast<int>(gridDim.x)) {
      if (b != first) __syncthreads();  // the block before has read what it shared
      run_phase<T>(static_cast<int>(record[0]), place_of(record, b), record + kArguments);
    }
    if (i + 1 == phases) return;
    grid_arrive(state, barrier, fan);
    const int64_t* next = record + kRecord;
#if defined(GPU_AMD)  // a load that is waited for: not by the warp that looks at the barrier
    if (threadIdx.x >= WARP)
#endif
      if (first < blocks_of(next))
        ask_ahead<T>(static_cast<int>(next[0]), place_of(next, first), next + kArguments);
    grid_wait(state, barrier);
    barrier = next_barrier(barrier);
  }
}

// A step of `phases` records, its grid's state at `state`: i32 [32 * (2 + groups)], 0 before the
// first step, groups of `fan` blocks. All blocks at once. grid (as many as are resident, or fewer),
// shared the most that a record's kernel wants
KERNEL(256)
decode_step_f32(const int64_t* table, int phases, int* state, int fan) {
  run_step<float>(table, phases, state, fan);
}
EMULATE(decode_step_f32, 256)

KERNEL(256)
decode_step_bf16(const int64_t* table, int phases, int* state, int fan) {
  run_step<bf16>(table, phases, state, fan);
}
EMULATE(decode_step_bf16, 256)
