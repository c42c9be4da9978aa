// The matrix unit of wgmma.h, which includes this for the host: products and copies that are under
// way until the latest moment that their waits allow.
#ifndef OSSRUN_GPU_EMULATOR_WGMMA_H_
#define OSSRUN_GPU_EMULATOR_WGMMA_H_

// What this thread has asked for and not waited for.
struct PendingProduct {
  float* c;
  const unsigned* own;  // the lane's part of A, or null: descriptor a has it
  uint64_t a, b;
  int columns;
};
constexpr int kMostPending = 16;
struct Pending {
  PendingProduct list[kMostPending];
  int count, last, older, due;  // up to the last group, and the one before; due: multiplied next
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

// What a warp has asked for and is due, done by its last lane: 16 rows of its warpgroup's products.
inline void multiply_pending(uint64_t* all) {
  const auto of = [&](int lane) { return reinterpret_cast<const Pending*>(all[lane]); };
  const Pending& asked = *of(0);
  float a[16][16], b[kWgColumns][16] = {}, columns[16][16], c[kWgColumns / 16][16][16];
  for (int p = 0; p < asked.due; p++) {
    const PendingProduct& first = asked.list[p];
    for (int lane = 0; lane < WARP; lane++) {
      const PendingProduct& own = of(lane)->list[p];
      if (of(lane)->due != asked.due || own.a != first.a || own.b != first.b)
        simt::fail("the lanes of a warp want different products");
      for (int i = 0; i < first.columns / 2; i++)
        c[wg_unit_column(lane, i) / 16][wg_unit_row(lane, i)][wg_unit_column(lane, i) % 16] =
            own.c[i];
      // word i of A: two of k, i / 2 of its halves, of the upper rows or the lower ones
      for (int i = 0; own.own && i < 4; i++) {
        float* const to = a[lane / 4 + i % 2 * 8] + i / 2 * 8 + lane % 4 * 2;
        to[0] = low_bf16(own.own[i]);
        to[1] = high_bf16(own.own[i]);
      }
    }
    if (!first.own) read_operand(first.a, simt::self->warp % 4 * 16, 16, a);
    read_operand(first.b, 0, first.columns, b);
    for (int n = 0; n < first.columns; n += 16) {
      for (int k = 0; k < 16; k++)
        for (int i = 0; i < 16; i++) columns[k][i] = b[n + i][k];
      for (int row = 0; row < 16; row += 4) multiply_rows<16>(c[n / 16] + row, a + row, columns);
    }
    for (int lane = 0; lane < WARP; lane++)
      for (int i = 0; i < first.columns / 2; i++)
        of(lane)->list[p].c[i] =
            c[wg_unit_column(lane, i) / 16][wg_unit_row(lane, i)][wg_unit_column(lane, i) % 16];
  }
}

inline void ask(Pending& pending, PendingProduct product) {
  simt::sync_warp(simt::kMatrix);
  if (pending.count == kMostPending) simt::fail("too many products without a wait");
  pending.list[pending.count++] = product;
}
inline void multiply_due(Pending& pending, int due) {
  pending.due = due;
  simt::together(simt::kMatrix, reinterpret_cast<uintptr_t>(&pending), multiply_pending);
  for (int i = due; i < pending.count; i++) pending.list[i - due] = pending.list[i];
  pending.count -= due;
  pending.last -= due;
  pending.older = 0;
}

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

#endif  // OSSRUN_GPU_EMULATOR_WGMMA_H_
