// MXFP4 weights straight from memory into the matrix unit's A: no shared memory and no barrier lies
// between.
//
// A lane loads blocks of 32 weights, 16 bytes each, which are its share of a row's k in a chunk of
// kShares blocks, and unpacks them into words of two bf16. Words hold codes four apart, so pieces
// of eight activations have the order 0 4 1 5 2 6 3 7.
//
// What must stay true: weights with scales of 2^-93 to 2^33 are exact; larger scales count as 2^33,
// smaller ones may lose bits. Loads reach up to 512 bytes past a matrix, which must be readable
// (kernels.WeightsBehind).
#ifndef OSSRUN_GPU_STREAM_H_
#define OSSRUN_GPU_STREAM_H_

#include "decode.h"
#include "wgmma.h"

// Chunks of 16 rows that a warp has under way: 6 KB of an H200's 23 that Little's law wants of a
// processor, which has 16 warps.
#if defined(MATRIX_NV)
constexpr int kStreamDepth = 3;
#elif defined(MATRIX_GFX11)
constexpr int kStreamDepth = 8;
#else
constexpr int kStreamDepth = 6;
#endif

constexpr int kStreamWords = 16;  // of two bf16, in a block

#if defined(MATRIX_NV)
// Weights are left times 2^-32: codes are subnormal bf16 of 2^-126 their value, and the factor that
// makes both of a word right is a bf16 too.
constexpr float kStreamUnscale = 0x1p32f;

// What unpacks the codes of a block with this scale.
struct Unpacker {
  unsigned factor;
  __device__ __forceinline__ explicit Unpacker(unsigned scale) {
    factor = ((scale < 160 ? scale : 160) + 94) * 0x00800080u;
  }
  // Two codes that are four apart, by a product in place of shifts: the integer unit has half the
  // rate of the others.
  __device__ __forceinline__ unsigned pair(unsigned q, unsigned mask, unsigned by) const {
    return times_bf16x2(((q & mask) * by) & 0x81c081c0u, factor);
  }
  __device__ __forceinline__ void unpack(unsigned* w, unsigned q) const {
    const unsigned upper = q >> 8;
    w[0] = pair(q, 0x000f000fu, 0x1040u);
    w[1] = pair(q, 0x00f000f0u, 0x0104u);
    w[2] = pair(upper, 0x000f000fu, 0x1040u);
    w[3] = pair(upper, 0x00f000f0u, 0x0104u);
  }
};
#else
constexpr float kStreamUnscale = 1;

// No packed product of bf16 there: the bf16 of all eight sizes times the scale are looked up, by
// their lower and upper bytes.
struct Unpacker {
  unsigned low[2], high[2];
  __device__ __forceinline__ explicit Unpacker(unsigned scale) {
    const unsigned one = (scale < 2 ? 2 : scale < 160 ? scale : 160) << 7, two = one | one << 16;
    const unsigned t01 = (one - 0x80) << 16, t23 = two + 0x00400000u;
    const unsigned t45 = two + 0x00c00080u, t67 = two + 0x01400100u;
    low[0] = bytes_at(t23, t01, 0x06040200u);
    high[0] = bytes_at(t23, t01, 0x07050301u);
    low[1] = bytes_at(t67, t45, 0x06040200u);
    high[1] = bytes_at(t67, t45, 0x07050301u);
  }
  // Bytes 0 and 2, or with `odd` 1 and 3, of four codes' halves as two bf16.
  static __device__ __forceinline__ unsigned joined(unsigned high, unsigned low, bool odd) {
    return bytes_at(high, low, odd ? 0x07030501u : 0x06020400u);
  }
  __device__ __forceinline__ void unpack(unsigned* w, unsigned q) const {
    const unsigned even = q & 0x07070707u, odd = q >> 4 & 0x07070707u;
    const unsigned le = bytes_at(low[1], low[0], even), he = bytes_at(high[1], high[0], even);
    const unsigned lo = bytes_at(low[1], low[0], odd), ho = bytes_at(high[1], high[0], odd);
    w[0] = joined(he, le, false) | (q << 12 & 0x80008000u);
    w[1] = joined(ho, lo, false) | (q << 8 & 0x80008000u);
    w[2] = joined(he, le, true) | (q << 4 & 0x80008000u);
    w[3] = joined(ho, lo, true) | (q & 0x80008000u);
  }
};
#endif

// A lane's blocks of one chunk of 16 rows, on their way.
struct StreamChunk {
  uint4 q[kOperandRows];
  unsigned scale[kOperandRows];
};

// Where a lane's blocks of a warp's rows are.
struct StreamRows {
  const uint8_t* blocks[kOperandRows];
  const uint8_t* scales[kOperandRows];

  // The chunk that is so many after this one; 0: this one.
  __device__ __forceinline__ void ask(StreamChunk& c, int after) const {
#pragma unroll
    for (int r = 0; r < kOperandRows; r++) {
      c.q[r] = stream16(blocks[r] + after * (kShares * kBlock / 2));
      c.scale[r] = from_gpu_memory<uint8_t>(scales[r] + after * kShares);
    }
  }
  __device__ __forceinline__ void advance(int chunks) {
#pragma unroll
    for (int r = 0; r < kOperandRows; r++) {
      blocks[r] += chunks * (kShares * kBlock / 2);
      scales[r] += chunks * kShares;
    }
  }
};

// A staged column is pieces of eight bf16, four to a block. In a chunk the first pieces of all
// blocks are neighbours, then the second ones, and columns are a multiple of a chunk and a few
// pieces apart: lanes that read together meet different banks, and no lane computes where.
constexpr int kChunkPieces = 4 * kShares, kPitchMore = kOperandRows == 2 ? 4 : 1;

__device__ __forceinline__ int stream_at(int p) {
  return p / kChunkPieces * kChunkPieces + p % 4 * kShares + p / 4 % kShares;
}

// sum += a chunk of 16 rows times COLUMNS staged columns, `pitch` pieces apart. `staged` is the
// chunk in the lane's first column, with its share.
template <int COLUMNS>
__device__ __forceinline__ void multiply_chunk(Sums (&sum)[(COLUMNS + 15) / 16],
                                               const StreamChunk& c, const uint4* staged,
                                               int pitch) {
  constexpr int kTiles = (COLUMNS + 15) / 16, kWide = COLUMNS < 16 ? COLUMNS : 16;
  constexpr int kHalves = kWide == 8 ? 1 : kOperandRows;  // of NVIDIA's columns
  unsigned a[kOperandRows][kStreamWords];
#pragma unroll
  for (int r = 0; r < kOperandRows; r++) {
    const Unpacker u(c.scale[r]);
    u.unpack(a[r], c.q[r].x);
    u.unpack(a[r] + 4, c.q[r].y);
    u.unpack(a[r] + 8, c.q[r].z);
    u.unpack(a[r] + 12, c.q[r].w);
  }
#pragma unroll
  for (int t = 0; t < kTiles; t++) {
    unsigned b[kOperandRows][kStreamWords] = {};
#pragma unroll
    for (int r = 0; r < kHalves; r++)
#pragma unroll
      for (int w = 0; w < 4; w++)
        put_words(b[r] + 4 * w, staged[(t * 16 + r * kRowsApart) * pitch + w * kShares]);
#pragma unroll
    for (int w = 0; w < kStreamWords; w += kShareWords) {
      unsigned wa[kOperandRows][kShareWords], wb[kOperandRows][kShareWords];
#pragma unroll
      for (int r = 0; r < kOperandRows; r++)
#pragma unroll
        for (int i = 0; i < kShareWords; i++) {
          wa[r][i] = a[r][w + i];
          wb[r][i] = b[r][w + i];
        }
      multiply<kWide>(sum[t], fragment_a(wa), fragment_b(wb));
    }
  }
}

#if defined(MATRIX_WGMMA)
// Both matrices of experts, by warpgroups: y of type Y, as gate_up or down, of x in shares.
template <class Y>
struct WgExperts {
  Y* y;
  const int* order;
  const int* groups;
  const bf16* x;
  const uint8_t* blocks;
  const uint8_t* scales;
  const bf16* bias;
  int n, k, top;
  float limit;
};

// The first operands of two products by warpgroups, from word `i` of each row's codes: word j of
// each is row j % 2.
__device__ __forceinline__ void unpack_wg(unsigned (&a)[2][4], const StreamChunk& w, int i) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const uint4 q = w.q[r];
    unsigned words[4];
    Unpacker(w.scale[r]).unpack(words, i == 0 ? q.x : i == 1 ? q.y : i == 2 ? q.z : q.w);
#pragma unroll
    for (int j = 0; j < 4; j++) a[j / 2][j % 2 * 2 + r] = words[j];
  }
}

// Asks for two products, and waits for the two before, whose first operands were in `older`.
template <int N>
__device__ __forceinline__ void multiply_wg(Pending& pending, float (&sum)[N / 2],
                                            unsigned (&a)[2][4], unsigned (&older)[2][4],
                                            unsigned b) {
  issue_two<N>(pending, sum, a, b);
  wait_older(pending, older);
}
// The unit's rows lane / 4 and eight below are an expert's gate and up, or eight apart too.
template <bool GATED>
constexpr int kWgNext = GATED ? 1 : 8;

// Leaves a lane's sums: of rows own and the next of an expert's n, by a tile's tokens.
template <int N, bool GATED, class Y>
__device__ __forceinline__ void leave_wg(const WgExperts<Y>& e, const float (&sum)[N / 2],
                                         int thread, int own, const TokenTile& tile) {
  const int n = e.n, next = own + kWgNext<GATED>;
  const bf16* const bias = e.bias + static_cast<int64_t>(tile.expert) * n;
  const float bias0 = from_bf16(bias[own < n ? own : 0]);
  const float bias1 = from_bf16(bias[next < n ? next : 0]);
  if constexpr (GATED) {
    // Lanes with elements of h four apart have the halves of words: each leaves one of two tokens'.
    const int element = own / 2, wide = rounded_width(n / 2, kInShares), upper = element % 8 / 4;
    const int word = share_word(element / 8, element % 4, wide);
    const unsigned keep = own < n ? ~0u : 0;  // zeros past the last element
#pragma unroll
    for (int i = 0; i < N / 2; i += 4) {  // of the gate; the up has its sums two behind
      float v[2];
#pragma unroll
      for (int c = 0; c < 2; c++)
        v[c] = quick_swiglu(fmaf(sum[i + c], kStreamUnscale, bias0),
                            fmaf(sum[i + c + 2], kStreamUnscale, bias1), e.limit);
      const float other = __shfl_xor_sync(FULL, upper ? v[0] : v[1], 16);
      const unsigned two = upper ? to_bf16x2(other, v[1]) : to_bf16x2(v[0], other);
      const int place = tile.begin + wg_column(thread, i) + upper;
      if (place < tile.end && element < wide)
        reinterpret_cast<unsigned*>(e.y)[static_cast<int64_t>(e.order[place]) * (wide / 2) + word] =
            two & keep;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < N / 2; i += i % 2 ? 3 : 1) {  // row 0; row 1 has its sums two behind
    const int place = tile.begin + wg_column(thread, i);
    if (place >= tile.end || own >= n) continue;
    float* const to = reinterpret_cast<float*>(e.y) + static_cast<int64_t>(e.order[place]) * n;
    to[own] = fmaf(sum[i], kStreamUnscale, bias0);
    if (next < n) to[next] = fmaf(sum[i + 2], kStreamUnscale, bias1);
  }
}
#endif

#endif  // OSSRUN_GPU_STREAM_H_
