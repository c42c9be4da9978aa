// The matrix unit of sm_90a: C[64x128] += A[64x16] · B[128x16]ᵀ by a warpgroup (four warps), bf16
// in, float32 out, both operands in shared memory.
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
  return static_cast<uint64_t>((at & 0x3ffffu) >> 4) | static_cast<uint64_t>(1) << 16 |
         static_cast<uint64_t>(1024 / 16) << 32 | static_cast<uint64_t>(1) << 62;
}

#if defined(GPU_HOST)
// What this thread has asked for and not waited for.
struct PendingProduct {
  float* c;
  uint64_t a, b;
};
constexpr int kMostPending = 16;
struct Pending {
  PendingProduct list[kMostPending];
  int count;
};

// 16 elements from k on of `rows` rows of the operand that descriptor d says, as the unit finds
// them.
inline void read_operand(uint64_t d, int first, int rows, float (*to)[16]) {
  const char* base = static_cast<const char*>(simt::dynamic_shared());
  const int64_t along_rows = static_cast<int64_t>(d >> 32 & 0x3fff) * 16;
  if (d >> 62 != 1) simt::fail("an operand without its swizzle");
  for (int i = 0; i < rows; i++) {
    const int row = first + i;
    for (int k = 0; k < 16; k++) {
      int64_t at =
          static_cast<int64_t>(d & 0x3fff) * 16 + row / 8 * along_rows + row % 8 * 128 + k * 2;
      at ^= (at >> 7 & 7) << 4;
      bf16 v;
      memcpy(&v, base + at, 2);
      to[i][k] = from_bf16(v);
    }
  }
}

// Where the hardware leaves a lane's i-th sum in the 16 rows of its warp, written down once more:
// wg_row and wg_column are held to it.
inline int wg_unit_row(int lane, int i) { return (lane >> 2) + (i & 2 ? 8 : 0); }
inline int wg_unit_column(int lane, int i) { return i / 4 * 8 + (lane & 3) * 2 + i % 2; }

// What a warp has asked for, done by its last lane: 16 rows of its warpgroup's products.
inline void multiply_pending(uint64_t* all) {
  const auto of = [&](int lane) { return reinterpret_cast<const Pending*>(all[lane]); };
  const Pending& asked = *of(0);
  float a[16][16], b[kWgColumns][16], columns[16][16], c[kWgColumns / 16][16][16];
  for (int p = 0; p < asked.count; p++) {
    for (int lane = 0; lane < WARP; lane++) {
      const PendingProduct& own = of(lane)->list[p];
      if (of(lane)->count != asked.count || own.a != asked.list[p].a || own.b != asked.list[p].b)
        simt::fail("the lanes of a warp want different products");
      for (int i = 0; i < kWgSums; i++)
        c[wg_unit_column(lane, i) / 16][wg_unit_row(lane, i)][wg_unit_column(lane, i) % 16] =
            own.c[i];
    }
    read_operand(asked.list[p].a, simt::self->warp % 4 * 16, 16, a);
    read_operand(asked.list[p].b, 0, kWgColumns, b);
    for (int n = 0; n < kWgColumns; n += 16) {
      for (int k = 0; k < 16; k++)
        for (int i = 0; i < 16; i++) columns[k][i] = b[n + i][k];
      for (int row = 0; row < 16; row += 4) multiply_rows<16>(c[n / 16] + row, a + row, columns);
    }
    for (int lane = 0; lane < WARP; lane++)
      for (int i = 0; i < kWgSums; i++)
        of(lane)->list[p].c[i] =
            c[wg_unit_column(lane, i) / 16][wg_unit_row(lane, i)][wg_unit_column(lane, i) % 16];
  }
}
#else
struct Pending {};
#endif

// Copies of 16 bytes from the GPU's memory into shared memory, by themselves. The emulation makes
// them as late as it may, in arrive().
#if defined(GPU_HOST)
struct Copies {
  struct {
    bf16* to;
    const bf16* from;  // null: zeros
  } list[32];
  int count, groups[2];  // how many there are, and how many of them belong to older groups
};
inline void make_copies(Copies& copies, int n) {
  for (int i = 0; i < n; i++) {
    if (copies.list[i].from)
      memcpy(copies.list[i].to, copies.list[i].from, 16);
    else
      memset(copies.list[i].to, 0, 16);
  }
  for (int i = n; i < copies.count; i++) copies.list[i - n] = copies.list[i];
  copies.count -= n;
}
#else
struct Copies {};
#endif

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

// Until all groups but the last are there, for this thread.
__device__ __forceinline__ void arrive([[maybe_unused]] Copies& copies) {
#if defined(GPU_NVIDIA)
  asm volatile("cp.async.wait_group 1;" ::: "memory");
#else
  const int n = copies.groups[0];
  make_copies(copies, n);
  copies.groups[0] = 0;
  copies.groups[1] -= n;
#endif
}

__device__ __forceinline__ void arrive_all([[maybe_unused]] Copies& copies) {
#if defined(GPU_NVIDIA)
  asm volatile("cp.async.wait_group 0;" ::: "memory");
#else
  make_copies(copies, copies.count);
  copies.groups[0] = copies.groups[1] = 0;
#endif
}

// What this thread stored to shared memory is seen by the matrix unit after the next barrier.
__device__ __forceinline__ void publish() {
#if defined(GPU_NVIDIA)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Before the first issue() and after this thread touched the accumulators. What it wrote to them is
// in its registers then: a compiler that put a constant there behind the fence would break the rule
// of the instruction.
__device__ __forceinline__ void begin_products([[maybe_unused]] float (&c)[kWgSums]) {
#if defined(GPU_NVIDIA)
#pragma unroll
  for (int i = 0; i < kWgSums; i++) asm volatile("" : "+f"(c[i])::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void issue([[maybe_unused]] Pending& pending, float (&c)[kWgSums],
                                      uint64_t a, uint64_t b) {
#if defined(GPU_NVIDIA)
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1, 1, 1, 0, 0;"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
        "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),
        "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]),
        "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]),
        "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]),
        "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]),
        "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]),
        "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]),
        "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]),
        "+f"(c[63])
      : "l"(a), "l"(b));
#else
  simt::sync_warp(simt::kMatrix);
  if (pending.count == kMostPending) simt::fail("too many products without a wait");
  pending.list[pending.count++] = {c, a, b};
#endif
}

// After the last issue() before a wait().
__device__ __forceinline__ void commit() {
#if defined(GPU_NVIDIA)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

// Until everything issued has been multiplied. The compiler may not move what reads c before it.
__device__ __forceinline__ void wait([[maybe_unused]] Pending& pending, float (&c)[kWgSums]) {
#if defined(GPU_NVIDIA)
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < kWgSums; i++) asm volatile("" : "+f"(c[i])::"memory");
#else
  (void)c;
  simt::together(simt::kMatrix, reinterpret_cast<uintptr_t>(&pending), multiply_pending);
  pending.count = 0;
#endif
}

#endif

#endif  // OSSRUN_GPU_WGMMA_H_
