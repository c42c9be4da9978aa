// The matrix unit of sm_90a: C[64xN] += A[64x16] · B[Nx16]ᵀ by a warpgroup (four warps), bf16 in,
// float32 out. B is in shared memory, N is 128 where A is too; A may be in registers.
//
// An operand's rows are 64 elements, 128 bytes, in eight pieces of 16 bytes. Piece p of row r lies
// where piece p ^ r % 8 would: the unit's swizzle of 128 bytes. So a copy fills whole rows of
// banks, and threads that write the same piece of neighbouring rows meet different ones. An operand
// begins at a multiple of 1024 bytes of shared memory (operands_in).
//
// The unit runs by itself: from issue() to wait() the accumulators and both operands belong to it,
// and what was stored before is seen by it after publish() and a barrier only. The emulation
// multiplies as late as it may, in wait(), from the descriptors.
#ifndef OSSRUN_GPU_WGMMA_H_
#define OSSRUN_GPU_WGMMA_H_

#include "matrix.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || (defined(GPU_HOST) && defined(MATRIX_NV))
#define MATRIX_WGMMA 1

constexpr int kWgRows = 64, kWgColumns = 128, kWgSums = 64;
constexpr int kWgStep = 64;  // of k in an operand

// Where element k of a row lies in an operand.
__device__ __forceinline__ constexpr int operand_at(int row, int k) {
  return row * kWgStep + ((k / 8 ^ row % 8) * 8) + k % 8;
}

// Row and column of a thread's i-th sum in its warpgroup's 64x128.
__device__ __forceinline__ int wg_row(int thread, int i) {
  return thread % 128 / 32 * 16 + thread % 32 / 4 + (i >> 1 & 1) * 8;
}
__device__ __forceinline__ int wg_column(int thread, int i) {
  return (i >> 2) * 8 + thread % 4 * 2 + (i & 1);
}

// Where operands may begin in the launch's dynamic shared memory, which has 1024 bytes more than
// they need.
__device__ __forceinline__ bf16* operands_in(void* dynamic) {
  char* const p = static_cast<char*>(dynamic);
#if defined(GPU_HOST)
  return reinterpret_cast<bf16*>(p);
#else
  return reinterpret_cast<bf16*>(p + ((1024 - (shared_address(p) & 1023)) & 1023));
#endif
}

// Its upper half: all but the address.
constexpr uint64_t kUpperDescriptor =
    static_cast<uint64_t>(1024 / 16) << 32 | static_cast<uint64_t>(1) << 62;

// The descriptor of an operand from row 0 on, a multiple of eight rows from where it begins, and
// from element k on, a multiple of 16: p is where row 0 begins, and k further. Addresses and
// distances are in units of 16 bytes: eight rows lie 1024 bytes apart, and the swizzle is number 1.
__device__ __forceinline__ uint64_t descriptor(const bf16* p) {
#if defined(GPU_HOST)
  const unsigned at = static_cast<unsigned>(reinterpret_cast<const char*>(p) -
                                            static_cast<char*>(simt::dynamic_shared()));
#else
  const unsigned at = shared_address(p);
#endif
  return kUpperDescriptor | 1u << 16 | (at & 0x3ffffu) >> 4;
}

#if defined(GPU_HOST)
#include "emulator/wgmma.h"
#else
struct Pending {};  // what this thread has asked for and not waited for
struct Copies {};   // likewise
#endif

// Copies of 16 bytes from the GPU's memory into shared memory, by themselves. The emulation makes
// them as late as it may, in arrive().
__device__ __forceinline__ void copy_ahead([[maybe_unused]] Copies& copies, bf16* to,
                                           const bf16* from, bool there) {
#if defined(GPU_NVIDIA)
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(to)), "l"(from), "r"(there ? 16 : 0)
               : "memory");
#else
  if (copies.count == 32) simt::fail("too many copies under way");
  copies.list[copies.count++] = {to, there ? from : nullptr};
#endif
}

// Ends a group of copies.
__device__ __forceinline__ void commit_copies([[maybe_unused]] Copies& copies) {
#if defined(GPU_NVIDIA)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  copies.groups[0] = copies.groups[1];
  copies.groups[1] = copies.count;
#endif
}

// Until all groups but the last are there, for this thread; ALL: that one too.
template <bool ALL = false>
__device__ __forceinline__ void arrive([[maybe_unused]] Copies& copies) {
#if defined(GPU_NVIDIA)
  asm volatile("cp.async.wait_group %0;" ::"n"(ALL ? 0 : 1) : "memory");
#else
  const int n = ALL ? copies.count : copies.groups[0];
  make_copies(copies, n);
  copies.groups[0] = 0;
  copies.groups[1] -= ALL ? copies.groups[1] : n;
#endif
}

// What this thread stored to shared memory is seen by the matrix unit after the next barrier.
__device__ __forceinline__ void publish() {
#if defined(GPU_NVIDIA)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// The compiler has c in registers here, and reads or writes it on its own side only.
template <int K>
__device__ __forceinline__ void keep([[maybe_unused]] float (&c)[K]) {
#if defined(GPU_NVIDIA)
#pragma unroll
  for (int i = 0; i < K; i++) asm volatile("" : "+f"(c[i])::"memory");
#endif
}

// The same for a part of A in the lanes' own words: before begin_products, and in wait_older.
template <int K>
__device__ __forceinline__ void keep([[maybe_unused]] unsigned (&a)[K][4]) {
#if defined(GPU_NVIDIA)
#pragma unroll
  for (int i = 0; i < K; i++)
    asm volatile("" : "+r"(a[i][0]), "+r"(a[i][1]), "+r"(a[i][2]), "+r"(a[i][3])::"memory");
#endif
}

// Before the first issue() and after this thread touched the accumulators. What it wrote to them is
// in its registers then: a compiler that put a constant there behind the fence would break the rule
// of the instruction.
template <int K>
__device__ __forceinline__ void begin_products([[maybe_unused]] float (&c)[K]) {
#if defined(GPU_NVIDIA)
  keep(c);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

#if defined(GPU_NVIDIA)
// Sixteen sums each in the text of an instruction, and 16 or 32 of them as its operands.
#define WG_HALF "%0, %1, %2, %3, %4, %5, %6, %7"
#define WG_0 WG_HALF ", %8, %9, %10, %11, %12, %13, %14, %15"
#define WG_1 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WG_2 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WG_3 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WG_FOUR(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define WG_8(i) WG_FOUR(i), WG_FOUR(i + 4)
#define WG_16(i) WG_8(i), WG_8(i + 8)
#define WG_32(i) WG_16(i), WG_16(i + 16)
#define WG_PRODUCT(N) "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 "
#define WG_BY_OWN(N, SUMS, ...)                                                            \
  asm volatile(WG_PRODUCT(N) "{" SUMS "}, {%[a0], %[a1], %[a2], %[a3]}, %[b], 1, 1, 1, 0;" \
               : __VA_ARGS__                                                               \
               : [a0] "r"(a[0]), [a1] "r"(a[1]), [a2] "r"(a[2]), [a3] "r"(a[3]), [b] "l"(b))
#endif

__device__ __forceinline__ void issue([[maybe_unused]] Pending& pending, float (&c)[kWgSums],
                                      uint64_t a, uint64_t b) {
#if defined(GPU_NVIDIA)
  asm volatile(WG_PRODUCT(128) "{" WG_0 WG_1 WG_2 WG_3 "}, %[a], %[b], 1, 1, 1, 0, 0;"
               : WG_32(0), WG_32(32)
               : [a] "l"(a), [b] "l"(b));
#else
  ask(pending, {c, nullptr, a, b, kWgColumns});
#endif
}

// The same for N columns with A in the lanes' own words of two bf16: rows lane / 4 and eight below
// by k = lane % 4 * 2, then both by k eight further. They belong to the unit until the wait, too.
template <int N>
__device__ __forceinline__ void issue([[maybe_unused]] Pending& pending, float (&c)[N / 2],
                                      const unsigned (&a)[4], uint64_t b) {
  static_assert(N == 16 || N == 24 || N == 32 || N == 64 || N == 96 || N == 128,
                "columns that have an instruction here");
#if defined(GPU_NVIDIA)
  if constexpr (N == 16) WG_BY_OWN(16, WG_HALF, WG_8(0));
  if constexpr (N == 24) WG_BY_OWN(24, WG_HALF ", %8, %9, %10, %11", WG_8(0), WG_FOUR(8));
  if constexpr (N == 32) WG_BY_OWN(32, WG_0, WG_16(0));
  if constexpr (N == 64) WG_BY_OWN(64, WG_0 WG_1, WG_32(0));
  if constexpr (N == 96) WG_BY_OWN(96, WG_0 WG_1 WG_2, WG_32(0), WG_16(32));
  if constexpr (N == 128) WG_BY_OWN(128, WG_0 WG_1 WG_2 WG_3, WG_32(0), WG_32(32));
#else
  ask(pending, {c, a, 0, b, N});
#endif
}

// After the last issue() of a group.
__device__ __forceinline__ void commit([[maybe_unused]] Pending& pending) {
#if defined(GPU_NVIDIA)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  pending.older = pending.last;
  pending.last = pending.count;
#endif
}

// Asks for a group of two products, 16 of k behind each other. b is the lower half of the second
// operand's descriptor: the compiler keeps it where the unit reads it.
template <int N>
__device__ __forceinline__ void issue_two(Pending& pending, float (&c)[N / 2], unsigned (&a)[2][4],
                                          unsigned b) {
  keep(a);
  begin_products(c);
  issue<N>(pending, c, a[0], kUpperDescriptor | b);
  issue<N>(pending, c, a[1], kUpperDescriptor | (b + 2));  // 32 bytes further
  commit(pending);
}

// Until everything issued has been multiplied. The compiler may not move what reads c before it.
template <int K>
__device__ __forceinline__ void wait([[maybe_unused]] Pending& pending, float (&c)[K]) {
#if defined(GPU_NVIDIA)
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  keep(c);
#else
  (void)c;
  multiply_due(pending, pending.count);
#endif
}

// Until the groups before the last have been multiplied, whose part of A the lanes had in a.
template <int K>
__device__ __forceinline__ void wait_older([[maybe_unused]] Pending& pending,
                                           [[maybe_unused]] unsigned (&a)[K][4]) {
#if defined(GPU_NVIDIA)
  asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  keep(a);
#else
  multiply_due(pending, pending.older);
#endif
}

#endif

#endif  // OSSRUN_GPU_WGMMA_H_
