// The matrix unit of matrix.h, which includes this for the host: the product of a warp by its last
// lane, from what the layout says each lane holds.
#ifndef OSSRUN_GPU_EMULATOR_MATRIX_H_
#define OSSRUN_GPU_EMULATOR_MATRIX_H_

// Where the hardware leaves a lane's i-th sum, written down once more: sum_row and sum_column are
// held to it, since the emulation multiplies by this and the kernels store by those.
inline int unit_row(int lane, int i) {
#if defined(MATRIX_NV)
  return (lane >> 2) + (i % 4 < 2 ? 0 : 8);
#elif defined(MATRIX_CDNA)
  return i + 4 * (lane >> 4);
#elif defined(MATRIX_GFX12)
  return i + 8 * (lane >> 4);
#else
  return (lane >> 4) + 2 * i;
#endif
}
inline int unit_column(int lane, int i) {
#if defined(MATRIX_NV)
  return 2 * (lane & 3) + i % 2 + (i < 4 ? 0 : 8);
#else
  (void)i;
  return lane & 15;
#endif
}

inline unsigned times_bf16x2(unsigned a, unsigned b) {
  return to_bf16x2(low_bf16(a) * low_bf16(b), high_bf16(a) * high_bf16(b));
}

// f16, which only the unit knows here: to nearest, ties to even.
inline unsigned to_f16(float f) {
  const unsigned u = __float_as_uint(f), size = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
  if (size > 0x7f800000u) return 0x7fff;
  if (size >= 0x477ff000u) return sign | 0x7c00;
  if (size < 0x38800000u)  // a multiple of 2^-24
    return sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000u);
  return sign | (((size + 0xfff + (size >> 13 & 1)) >> 13) - (112 << 10));
}
inline float from_f16(unsigned v) {
  const unsigned u = (v & 0x8000u) << 16 | (v & 0x7fffu) << 13;
  return (v & 0x7c00) == 0x7c00 ? __uint_as_float(u | 0x7f800000u) : __uint_as_float(u) * 0x1p112f;
}
inline unsigned to_f16x2(float low, float high) { return to_f16(low) | to_f16(high) << 16; }
// Half k % 2 of a word of what a cache of T is multiplied as.
template <class T>
inline float half_of(unsigned w, int k) {
  const unsigned v = w >> (k & 1) * 16 & 0xffff;
  return sizeof(T) == 1 ? from_f16(v) : from_bf16(v);
}

// Element (row, k) of the matrix whose fragments the lanes gave; the other operand has its own
// place for it on NVIDIA.
template <class T = bf16>
inline float a_element(const void* const* lanes, int row, int k) {
#if defined(MATRIX_NV)
  const int lane = row % 8 * 4 + k % 8 / 2, word = row / 8 + k / 8 * 2;
#elif defined(MATRIX_CDNA)
  const int lane = row + k / 4 * 16, word = k % 4 / 2;
#elif defined(MATRIX_GFX12)
  const int lane = row + k / 8 * 16, word = k % 8 / 2;
#else
  const int lane = row, word = k / 2;
#endif
  return half_of<T>(static_cast<const Fragment*>(lanes[lane])->w[word], k);
}
template <class T = bf16>
inline float b_element(const void* const* lanes, int row, int k) {
#if defined(MATRIX_NV)
  const int lane = row % 8 * 4 + k % 8 / 2, word = row / 8 * 2 + k / 8;
  return half_of<T>(static_cast<const Fragment*>(lanes[lane])->w[word], k);
#elif defined(MATRIX_GFX11)
  // The upper lanes must hold the same: take it from there.
  return half_of<T>(static_cast<const Fragment*>(lanes[row + 16])->w[k / 2], k);
#else
  return a_element<T>(lanes, row, k);
#endif
}

// A lane's part of a product.
struct Operands {
  Sums* c;
  const void *a, *b;  // its fragments
};

#if defined(__AVX__)
constexpr int kVector = 8;
#else
constexpr int kVector = 4;
#endif
typedef float Vector __attribute__((vector_size(kVector * 4)));

// Rows of 16 sums += four rows of A times the K rows of B's transpose, in the order of k.
template <int K>
inline void multiply_rows(float (*c)[16], const float (*a)[K], const float (&b)[K][16]) {
  for (int at = 0; at < 16; at += kVector) {
    Vector s0, s1, s2, s3, column;
    memcpy(&s0, c[0] + at, sizeof s0);
    memcpy(&s1, c[1] + at, sizeof s1);
    memcpy(&s2, c[2] + at, sizeof s2);
    memcpy(&s3, c[3] + at, sizeof s3);
    for (int k = 0; k < K; k++) {
      memcpy(&column, b[k] + at, sizeof column);
      s0 += a[0][k] * column;
      s1 += a[1][k] * column;
      s2 += a[2][k] * column;
      s3 += a[3][k] * column;
    }
    memcpy(c[0] + at, &s0, sizeof s0);
    memcpy(c[1] + at, &s1, sizeof s1);
    memcpy(c[2] + at, &s2, sizeof s2);
    memcpy(c[3] + at, &s3, sizeof s3);
  }
}

// The product of a warp, done by its last lane for all of them: what the layout says each lane
// holds is put together to matrices, and each lane gets the sums that the unit leaves it.
template <int K, class A, class B>
inline void multiply_all(const uint64_t* all, A a_at, B b_at) {
  const void *as[WARP], *bs[WARP];
  float a[16][K], b[K][16], c[16][16];
  for (int lane = 0; lane < WARP; lane++) {
    const Operands& own = *reinterpret_cast<const Operands*>(all[lane]);
    as[lane] = own.a;
    bs[lane] = own.b;
#pragma GCC unroll 8
    for (int i = 0; i < kFragmentSums; i++)
      c[unit_row(lane, i)][unit_column(lane, i)] = own.c->v[i];
  }
  for (int row = 0; row < 16; row++)
#pragma GCC unroll 16
    for (int k = 0; k < K; k++) {
      a[row][k] = a_at(as, row, k);
      b[k][row] = b_at(bs, row, k);
    }
  for (int row = 0; row < 16; row += 4) multiply_rows<K>(c + row, a + row, b);
  for (int lane = 0; lane < WARP; lane++)
#pragma GCC unroll 8
    for (int i = 0; i < kFragmentSums; i++)
      reinterpret_cast<const Operands*>(all[lane])->c->v[i] =
          c[unit_row(lane, i)][unit_column(lane, i)];
}

#endif  // OSSRUN_GPU_EMULATOR_MATRIX_H_
