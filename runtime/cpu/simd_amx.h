// Tiles of bf16 in AMX's registers, and weights as such tiles, beside AVX-512's vocabulary.
//
// Tile registers: 0 to 3 are sums, 4 and 5 inputs, 6 and 7 weights. Their numbers are literals,
// since GCC makes text of them.
#ifndef OSSRUN_CPU_SIMD_AMX_H_
#define OSSRUN_CPU_SIMD_AMX_H_

namespace {

// What LDTILECFG reads.
struct alignas(64) TileShapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

struct Amx : Avx512AnyScales {
  // Tiles without rows keep the size 0. To use one is a fault, so products does not.
  static void shape(int tokens, int rows) {
    TileShapes s = {};
    s.palette = 1;
    const auto tile = [&](int i, int height, int lanes) {
      if (height <= 0 || lanes <= 0) return;
      s.rows[i] = static_cast<uint8_t>(height);
      s.row_bytes[i] = static_cast<uint16_t>(4 * lanes);
    };
    for (int side = 0; side < 2; side++) {
      const int height = smaller(kTileSide, tokens - side * kTileSide);
      tile(2 * side, height, smaller(kTileSide, rows));
      tile(2 * side + 1, height, rows - kTileSide);
      tile(4 + side, height, kTileSide);
    }
    tile(6, kTileSide, smaller(kTileSide, rows));
    tile(7, kTileSide, rows - kTileSide);
    __asm__ volatile("" : : "r"(&s) : "memory");
    _tile_loadconfig(&s);
  }
  // Without values in tiles the system need not save them.
  SIMD_INLINE void end() { _tile_release(); }

  static constexpr int64_t kPeakOperations = 4 * kTileSide * kTileBf16 * 2;
  SIMD_INLINE void peak_round() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }

  // As PortableTile's.
  static void products(float* y, int64_t ldy, const uint16_t* x, int64_t ldx,
                       const uint16_t* weights, int64_t blocks, int tokens, int rows) {
    const bool wide = rows > kTileSide, tall = tokens > kTileSide;
    float* below = y + kTileSide * ldy;
    ldy *= sizeof *y;
    // GCC 12 does not know that a load of a tile reads memory: all that was stored is there now.
    __asm__ volatile("" : : "r"(x), "r"(weights), "r"(y) : "memory");
    _tile_loadd(0, y, ldy);
    if (wide) _tile_loadd(1, y + kTileSide, ldy);
    if (tall) _tile_loadd(2, below, ldy);
    if (wide && tall) _tile_loadd(3, below + kTileSide, ldy);
    const int64_t next = ldx * sizeof *x;
    for (int64_t b = 0; b < blocks; b++, x += 32, weights += 2 * kTileBf16) {
      _tile_loadd(4, x, next);
      _tile_loadd(6, weights, 64);
      _tile_dpbf16ps(0, 4, 6);
      if (wide) {
        _tile_loadd(7, weights + kTileBf16, 64);
        _tile_dpbf16ps(1, 4, 7);
      }
      if (tall) {
        _tile_loadd(5, x + kTileSide * ldx, next);
        _tile_dpbf16ps(2, 5, 6);
        if (wide) _tile_dpbf16ps(3, 5, 7);
      }
    }
    _tile_stored(0, y, ldy);
    if (wide) _tile_stored(1, y + kTileSide, ldy);
    if (tall) _tile_stored(2, below, ldy);
    if (wide && tall) _tile_stored(3, below + kTileSide, ldy);
  }

  // turn4 gives four bytes of each row in a lane, each two columns. A byte goes to both halves of
  // the lane, the upper half takes its upper nibble, and both are looked up by their low bits. The
  // table's exponents are kRaised too high. Of that the row's scale is left, and the rest is
  // subtracted; a zero stays zero, since the subtraction saturates.
  SIMD_INLINE void mx_tile(uint16_t* to, const uint8_t* const rows[16], int64_t offset,
                           const uint8_t scales[16]) {
    // From 2^-125 to 2^125 all weights are normal numbers.
    const __m128i from_least = _mm_sub_epi8(load16(scales), _mm_set1_epi8(2));
    if (_mm_cmpgt_epu8_mask(from_least, _mm_set1_epi8(static_cast<char>(250))) != 0) {
      return any_mx_tile(to, rows, offset, scales);
    }
    const I wide = _mm512_maskz_cvtepu8_epi32(0xffff, load16(scales));
    const I lower = _mm512_sub_epi32(_mm512_set1_epi32(kRaised + 127), wide);
    const I off = _mm512_or_si512(_mm512_maskz_slli_epi32(0xffff, lower, 7),
                                  _mm512_maskz_slli_epi32(0xffff, lower, 23));
    const I table =
        _mm512_maskz_broadcast_i32x8(0xffff, load32(reinterpret_cast<const uint8_t*>(kE2m1Bf16)));
    const I upper = _mm512_set1_epi32(4 << 16);
    I d[4];
    turn4(d, rows, offset);
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) {
      SIMD_UNROLL
      for (int i = 0; i < 4; i++, to += 32) {
        const I place = _mm512_maskz_broadcast_i32x4(0xffff, load16(kBytePlace[i]));
        const I code = _mm512_maskz_srlv_epi16(~0u, _mm512_shuffle_epi8(d[j], place), upper);
        const I w = _mm512_maskz_permutexvar_epi16(~0u, code, table);
        _mm512_storeu_si512(to, _mm512_subs_epu16(w, off));
      }
    }
  }

 private:
  // bf16 of e2m1 with a higher exponent, so that no scale makes a sum of exponents wrap. The index
  // has four bits: the fifth is another column's. Of zero there is one sign.
  static constexpr int kRaised = 126;
  alignas(32) static constexpr uint16_t kE2m1Bf16[16] = {
      0x0000, 0x7e00, 0x7e80, 0x7ec0, 0x7f00, 0x7f40, 0x7f80, 0x7fc0,
      0x0000, 0xfe00, 0xfe80, 0xfec0, 0xff00, 0xff40, 0xff80, 0xffc0};
  alignas(16) static constexpr uint8_t kBytePlace[4][16] = {
      {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12},
      {1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13, 13, 13, 13},
      {2, 2, 2, 2, 6, 6, 6, 6, 10, 10, 10, 10, 14, 14, 14, 14},
      {3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15}};
};

}  // namespace

#endif  // OSSRUN_CPU_SIMD_AMX_H_
