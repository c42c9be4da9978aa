// Tiles of bf16 in AMX's registers, and weights as such tiles, beside AVX-512's vocabulary.
//
// Tile registers: 0 to 3 are sums, 4 and 5 inputs, 6 and 7 weights. Their numbers are literals,
// since GCC makes text of them.
#ifndef OSSRUN_CPU_SIMD_AMX_H_
#define OSSRUN_CPU_SIMD_AMX_H_

namespace {

// What LDTILECFG reads: all eight tiles whole, 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
constexpr TileShapes kTileShapes = {
    1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

// Where the upper halves of 32 lanes are.
struct UpperHalves {
  alignas(64) uint16_t word[32];
  constexpr UpperHalves() : word() {
    for (int i = 0; i < 32; i++) word[i] = static_cast<uint16_t>(2 * i + 1);
  }
};
constexpr UpperHalves kUpperHalves;

struct Amx : Avx512AnyScales {
  static inline const Kernels* below = nullptr;

  SIMD_INLINE void begin() { _tile_loadconfig(&kTileShapes); }
  // Without values in tiles the system need not save them.
  SIMD_INLINE void end() { _tile_release(); }

  static constexpr int64_t kPeakOperations = 4 * kTileSums * kMxBlock * 2;
  SIMD_INLINE void peak_round() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }

  // As PortableTile's.
  SIMD_INLINE void products(float* sums, const uint16_t* inputs, int terms, int64_t next,
                            const uint16_t* weights) {
    // GCC 12 does not know that a load of a tile reads memory: all that was stored is there now.
    __asm__ volatile("" : : "r"(inputs), "r"(weights) : "memory");
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(6, weights, 64);
    _tile_loadd(7, weights + kTileBf16, 64);
    for (int term = 0; term < terms; term++, inputs += next) {
      _tile_loadd(4, inputs, 64);
      _tile_loadd(5, inputs + kTileBf16, 64);
      peak_round();
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + kTileSums, 64);
    _tile_stored(2, sums + 2 * kTileSums, 64);
    _tile_stored(3, sums + 3 * kTileSums, 64);
  }

  SIMD_INLINE void bf16_inputs(uint16_t* to, const int8_t* q) {
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(q);
    store_bf16_of(to, _mm512_maskz_cvtepi8_epi32(0xffff, load16(bytes)),
                  _mm512_maskz_cvtepi8_epi32(0xffff, load16(bytes + 16)));
  }
  SIMD_INLINE void bf16_inputs(uint16_t* to, uint16_t* low, const int16_t* q) {
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(q);
    const I first = _mm512_maskz_cvtepi16_epi32(0xffff, load32(bytes));
    const I last = _mm512_maskz_cvtepi16_epi32(0xffff, load32(bytes + 32));
    const I left = _mm512_set1_epi32(15), most = _mm512_set1_epi32(-16);
    store_bf16_of(to, _mm512_and_si512(most, first), _mm512_and_si512(most, last));
    store_bf16_of(low, _mm512_and_si512(left, first), _mm512_and_si512(left, last));
  }

  // turn4 gives four bytes of each row in a lane: columns 0 2 4 6 are their lower nibbles, 1 3 5 7
  // the upper ones. A byte goes to each half of the lane, and that is looked up by its low bits.
  SIMD_INLINE void mx_tile(uint16_t* to, const uint8_t* const rows[16], int64_t offset) {
    I d[4];
    turn4(d, rows, offset);
    const I twice =
        _mm512_maskz_broadcast_i32x8(0xffff, load32(reinterpret_cast<const uint8_t*>(kTwiceE2m1)));
    const I first = _mm512_maskz_broadcast_i32x4(0xffff, load16(kFirstBytes));
    const I last = _mm512_maskz_broadcast_i32x4(0xffff, load16(kLastBytes));
    SIMD_UNROLL
    for (int j = 0; j < 4; j++, to += 4 * 32) {
      const I low = _mm512_shuffle_epi8(d[j], first), high = _mm512_shuffle_epi8(d[j], last);
      store_pairs(to, looked_up(twice, low));
      store_pairs(to + 32, looked_up(twice, high));
      store_pairs(to + 64, looked_up(twice, _mm512_srli_epi16(low, 4)));
      store_pairs(to + 96, looked_up(twice, _mm512_srli_epi16(high, 4)));
    }
  }

  // Of every four columns the first and third, then the second and fourth.
  SIMD_INLINE void dense_inputs(uint16_t* to, const int8_t* q) {
    const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(q);
    F v[2];
    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
      const __m128i placed = _mm_shuffle_epi8(load16(bytes + 16 * i), order);
      v[i] = mul(to_float(_mm512_maskz_cvtepi8_epi32(0xffff, placed)), set1(kDenseUnit));
    }
    store_uppers(to, v[0], v[1]);
  }

  // load_dense gives two of a row's columns in a lane, as quantize_q12 has the inputs.
  SIMD_INLINE void dense_tile(uint16_t* to, const uint8_t* p, const uint8_t* second) {
    SIMD_UNROLL
    for (int i = 0; i < 8; i++, to += 2 * 32) {
      const Dense four = load_dense(p + 32 * i, second + 32 * i);
      store_pairs(to, pair_of_bf16(four.evens));
      store_pairs(to + 32, pair_of_bf16(four.odds));
    }
  }

 private:
  // bf16 of 2 e2m1, twice: the fifth bit of what is looked up is another column's.
  static constexpr uint16_t kTwiceE2m1[16] = {0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40c0,
                                              0x4100, 0x4140, 0x8000, 0xbf80, 0xc000, 0xc040,
                                              0xc080, 0xc0c0, 0xc100, 0xc140};
  static constexpr uint8_t kFirstBytes[16] = {0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13};
  static constexpr uint8_t kLastBytes[16] = {2,  2,  3,  3,  6,  6,  7,  7,
                                             10, 10, 11, 11, 14, 14, 15, 15};

  // Whole numbers that bf16 has, sixteen and sixteen: the upper halves of their float32.
  SIMD_INLINE void store_bf16_of(uint16_t* to, I first, I last) {
    store_uppers(to, to_float(first), to_float(last));
  }
  SIMD_INLINE void store_uppers(uint16_t* to, F first, F last) {
    const I upper = _mm512_load_si512(kUpperHalves.word);
    const I a = _mm512_castps_si512(first), b = _mm512_castps_si512(last);
    store_pairs(to, _mm512_maskz_permutex2var_epi16(0xffffffff, a, upper, b));
  }
  SIMD_INLINE void store_pairs(uint16_t* to, I pairs) { _mm512_storeu_si512(to, pairs); }
  SIMD_INLINE I looked_up(I table, I at) {
    return _mm512_maskz_permutexvar_epi16(0xffffffff, at, table);
  }
  // Two int16 that bf16 has.
  SIMD_INLINE I pair_of_bf16(I a) {
    const I first = upper_as_float(_mm512_maskz_slli_epi32(0xffff, a, 16));
    return _mm512_or_si512(_mm512_maskz_srli_epi32(0xffff, first, 16), upper_as_float(a));
  }
  SIMD_INLINE I upper_as_float(I a) {
    return _mm512_castps_si512(to_float(_mm512_maskz_srai_epi32(0xffff, a, 16)));
  }
};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_AMX_H_
