// The dialect: the only words a kernel may use, for every compiler that builds it.
//
//   clang -x cuda --cuda-device-only -nocudainc -nocudalib   PTX
//   clang -x hip  --cuda-device-only -nogpuinc  -nogpulib    AMD code objects
//   any C++17 compiler with EMULATED_LAYOUT                  the host emulation (emulator/)
//
// It is ordinary CUDA with four words of our own:
//   KERNEL(256) name(...)          a kernel for blocks of at most 256 threads
//   KERNEL(256, 3) name(...)       and with registers for three of them on a processor of NVIDIA's
//   EMULATE(name, 256)             after its body: makes it known to the emulation
//   SHARED(float, part, 32)        a shared array; NaN at first in the emulation
//   DYNAMIC_SHARED(float, buffer)  the launch's dynamic shared memory
// WARP is 32 or 64, a constant of the target. Blocks are whole warps for both: multiples of 64.
//
// What must stay true: no SDK header, no math library (no compiler here has one for its target), no
// flag that flushes subnormals (e2m1.h needs them), no early return of single threads in a
// kernel that has barriers or warp collectives after it.
#ifndef OSSRUN_GPU_GPU_H_
#define OSSRUN_GPU_GPU_H_

#if defined(__NVPTX__)
#define GPU_NVIDIA 1
#elif defined(__AMDGCN__)
#define GPU_AMD 1
#else
#define GPU_HOST 1
#endif

#if defined(GPU_AMD) && defined(__GFX9__)
#define WARP 64
#elif !defined(WARP)
#define WARP 32
#endif

#if defined(GPU_HOST)
#include "emulator/simt.h"
#else

// ---- CUDA's words, for clang without SDK headers
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#if defined(GPU_NVIDIA)
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#else  // clang does not apply launch_bounds to AMD GPUs: blocks would be taken to have 1,024
       // threads
#define __launch_bounds__(n, blocks) __attribute__((amdgpu_flat_work_group_size(1, n)))
#endif
typedef __SIZE_TYPE__ size_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __INT8_TYPE__ int8_t;
typedef unsigned uint4 __attribute__((ext_vector_type(4)));
typedef unsigned uint2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float2 __attribute__((ext_vector_type(2)));

// threadIdx and its kin: reading threadIdx.x calls the getter.
#define GPU_INDEX(NAME, OF)                                                \
  struct NAME##_t {                                                        \
    __declspec(property(get = get_x)) unsigned x;                          \
    __declspec(property(get = get_y)) unsigned y;                          \
    __declspec(property(get = get_z)) unsigned z;                          \
    static __device__ __forceinline__ unsigned get_x() { return OF##x(); } \
    static __device__ __forceinline__ unsigned get_y() { return OF##y(); } \
    static __device__ __forceinline__ unsigned get_z() { return OF##z(); } \
  };                                                                       \
  extern const __device__ NAME##_t NAME __attribute__((weak));
#if defined(GPU_NVIDIA)
GPU_INDEX(threadIdx, __nvvm_read_ptx_sreg_tid_)
GPU_INDEX(blockIdx, __nvvm_read_ptx_sreg_ctaid_)
GPU_INDEX(blockDim, __nvvm_read_ptx_sreg_ntid_)
GPU_INDEX(gridDim, __nvvm_read_ptx_sreg_nctaid_)
// __syncthreads is a builtin of clang for this target.
__device__ __forceinline__ void __syncwarp(unsigned lanes = 0xffffffffu) {
  __nvvm_bar_warp_sync(lanes);
}
__device__ __forceinline__ int __shfl_xor_sync(unsigned lanes, int v, int d) {
  return __nvvm_shfl_sync_bfly_i32(lanes, v, d, 31);
}
__device__ __forceinline__ int __shfl_sync(unsigned lanes, int v, int lane) {
  return __nvvm_shfl_sync_idx_i32(lanes, v, lane, 31);
}
// Picks four of the bytes of a (0 to 3) and b (4 to 7) by the nibbles of the third argument; with 8
// more a nibble gives the byte's sign bit eight times.
#define permute_bytes __nvvm_prmt
#else
#define GPU_GRID(D) __builtin_amdgcn_grid_size_##D() / __builtin_amdgcn_workgroup_size_##D
#define gpu_grid_x GPU_GRID(x)
#define gpu_grid_y GPU_GRID(y)
#define gpu_grid_z GPU_GRID(z)
// Bytes of {high, low} by the four of an index; those of low are 0 to 3.
#define bytes_at __builtin_amdgcn_perm
GPU_INDEX(threadIdx, __builtin_amdgcn_workitem_id_)
GPU_INDEX(blockIdx, __builtin_amdgcn_workgroup_id_)
GPU_INDEX(blockDim, __builtin_amdgcn_workgroup_size_)
GPU_INDEX(gridDim, gpu_grid_)
__device__ __forceinline__ void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ __forceinline__ void __syncwarp(unsigned = 0xffffffffu) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
__device__ __forceinline__ unsigned gpu_lane() {
#if WARP == 64
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
#else
  return __builtin_amdgcn_mbcnt_lo(~0u, 0u);
#endif
}
__device__ __forceinline__ int __shfl_xor_sync(unsigned, int v, int d) {
  return __builtin_amdgcn_ds_bpermute(static_cast<int>(gpu_lane() ^ static_cast<unsigned>(d)) << 2,
                                      v);
}
__device__ __forceinline__ int __shfl_sync(unsigned, int v, int lane) {
  return __builtin_amdgcn_ds_bpermute(lane << 2, v);
}
#endif
__device__ __forceinline__ float __uint_as_float(unsigned v) {
  return __builtin_bit_cast(float, v);
}
__device__ __forceinline__ unsigned __float_as_uint(float v) {
  return __builtin_bit_cast(unsigned, v);
}
__device__ __forceinline__ long long __double_as_longlong(double v) {
  return __builtin_bit_cast(long long, v);
}
__device__ __forceinline__ float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__device__ __forceinline__ double fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
__device__ __forceinline__ float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
__device__ __forceinline__ float fminf(float a, float b) { return __builtin_fminf(a, b); }
__device__ __forceinline__ float fabsf(float a) { return __builtin_fabsf(a); }
#endif

__device__ __forceinline__ float __shfl_xor_sync(unsigned lanes, float v, int d) {
  return __uint_as_float(
      static_cast<unsigned>(__shfl_xor_sync(lanes, static_cast<int>(__float_as_uint(v)), d)));
}
__device__ __forceinline__ float __shfl_sync(unsigned lanes, float v, int lane) {
  return __uint_as_float(
      static_cast<unsigned>(__shfl_sync(lanes, static_cast<int>(__float_as_uint(v)), lane)));
}

#define FULL 0xffffffffu  // all lanes of a warp

// Of a pointer whose origin the compiler does not see (out of a table, or null where there is
// nothing): or loads would ask which memory it is, and wait for shared memory's.
#if defined(GPU_NVIDIA) || defined(GPU_AMD)
#define IN_GPU_MEMORY __attribute__((address_space(1)))
#else
#define IN_GPU_MEMORY
#endif
template <class T>
__device__ __forceinline__ T from_gpu_memory(const void* p) {
  return *(const IN_GPU_MEMORY T*)p;
}

// *p += v for all threads of the GPU, in no order; returns what was there.
template <class T>
__device__ __forceinline__ T atomic_add(T* p, T v) {
#if defined(GPU_AMD)
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#elif defined(GPU_HOST)
  const T was = __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
  simt::pause_block();
  return was;
#else
  return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
#endif
}

// What this thread wrote is seen by all threads of the GPU before what it writes next.
__device__ __forceinline__ void fence_gpu() {
#if defined(GPU_NVIDIA)
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#elif defined(GPU_AMD)
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  // What was under way is over by now, and the second cache of a chiplet is written back. LLVM
  // before 23 drops its own waits for what comes over the back edge of a loop, and for buffer_wbl2
  // where no store is under way (it did not know that this counts in vmcnt).
#if defined(__GFX12__)
  asm volatile("s_wait_loadcnt 0x0\n\ts_wait_storecnt 0x0" : : : "memory");
#elif defined(__GFX11__)
  asm volatile("s_waitcnt vmcnt(0)\n\ts_waitcnt_vscnt null, 0x0" : : : "memory");
#else
  asm volatile("s_waitcnt vmcnt(0)" : : : "memory");
#endif
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
#else
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}

// Waits for the grids that were launched before this one, then lets the next one begin. With
// programmatic launches (driver.Stream) a grid begins once all blocks of the one before are here:
// its launch and its first loads of weights hide behind that one.
//
// Every kernel calls it: then a grid that is here knows all earlier ones to be complete. Before it
// a kernel reads weights, and what a copy wrote before the step, and writes nothing.
__device__ __forceinline__ void await_grids() {
#if defined(GPU_NVIDIA) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// ---- our own words
#define KERNEL_BOUNDS(threads, blocks, ...) \
  extern "C" __global__ void __launch_bounds__(threads, blocks)
#define KERNEL(...) KERNEL_BOUNDS(__VA_ARGS__, 1, )
#if defined(GPU_HOST)
#define EMULATE(name, threads) static simt::Register registered_##name{#name, name, threads};
#define SHARED(type, name, count)    \
  static const char name##_site = 0; \
  type* const name = static_cast<type*>(simt::shared_array(&name##_site, sizeof(type) * (count)))
#define DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(simt::dynamic_shared())
#else
#define EMULATE(name, threads)
#define SHARED(type, name, count)                                                               \
  __shared__ uint4 name##_memory[(sizeof(type) * (count) + sizeof(uint4) - 1) / sizeof(uint4)]; \
  type* const name = reinterpret_cast<type*>(name##_memory)
// One symbol of one type for all kernels.
extern "C" {
extern __shared__ uint4 gpu_dynamic_shared[];
}
#define DYNAMIC_SHARED(type, name) type* const name = reinterpret_cast<type*>(gpu_dynamic_shared)
#endif

#endif  // OSSRUN_GPU_GPU_H_
