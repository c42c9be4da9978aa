// simd_amx.h with the tile registers as arrays: a table for the test only, so that all but the
// instructions runs on any machine with AVX-512.
#include "check.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdlib.h>

#include "../simd_detect.h"
#include "../simd_e2m1.h"
#include "../simd_target.h"
#include "../simd_tile.h"

static bool proved();
static Kernels table();

const Kernels* kernels_emulated_amx() {
  if (!cpu_has_avx512_vnni() || !proved()) return nullptr;
  static const Kernels kTable = table();
  return &kTable;
}

SIMD_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")

namespace {
// Of one thread; nothing is in them but between shape and end.
struct Registers {
  int rows[8] = {}, row_bytes[8] = {};
  uint8_t bytes[8][16][64];

  void configure(const void* shapes) {
    uint8_t s[64];
    memcpy(s, shapes, sizeof s);
    bool valid = s[0] == 1;
    for (int i = 1; i < 16; i++) valid = valid && s[i] == 0;
    for (int i = 0; i < 16; i++) {
      const int width = s[16 + 2 * i] + 256 * s[17 + 2 * i], height = s[48 + i];
      valid = valid && height <= 16 && width <= 64 && (height == 0) == (width == 0);
      valid = valid && (i < 8 || height == 0);
      if (i < 8) rows[i] = height, row_bytes[i] = width;
    }
    if (!valid) abort();  // the processor faults
    memset(bytes, 0, sizeof bytes);
  }
  void release() { memset(rows, 0, sizeof rows); }
  void load(int tile, const void* from, int64_t stride) {
    if (rows[tile] == 0) abort();
    memset(bytes[tile], 0, sizeof bytes[tile]);
    for (int r = 0; r < rows[tile]; r++) {
      memcpy(bytes[tile][r], static_cast<const uint8_t*>(from) + r * stride, row_bytes[tile]);
    }
  }
  void store(int tile, void* to, int64_t stride) const {
    if (rows[tile] == 0) abort();
    for (int r = 0; r < rows[tile]; r++) {
      memcpy(static_cast<uint8_t*>(to) + r * stride, bytes[tile][r], row_bytes[tile]);
    }
  }
  void multiply(int sums, int inputs, int weights) {
    if (rows[sums] == 0 || rows[sums] != rows[inputs] || row_bytes[sums] != row_bytes[weights] ||
        row_bytes[inputs] != 4 * rows[weights]) {
      abort();
    }
    uint16_t b[kTileBf16];
    memcpy(b, bytes[weights], sizeof b);
    for (int t = 0; t < rows[sums]; t++) {
      uint16_t a[32];
      float s[16];
      memcpy(a, bytes[inputs][t], sizeof a);
      memcpy(s, bytes[sums][t], sizeof s);
      for (int r = 0; r < row_bytes[sums] / 4; r++) {
        s[r] = PortableTile::add_product(s[r], a, b + 2 * r);
      }
      memcpy(bytes[sums][t], s, sizeof s);
    }
  }
};
thread_local Registers registers;
}  // namespace

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(shapes) registers.configure(shapes)
#define _tile_release() registers.release()
#define _tile_loadd(tile, from, stride) registers.load(tile, from, stride)
#define _tile_stored(tile, to, stride) registers.store(tile, to, stride)
#define _tile_dpbf16ps(sums, inputs, weights) registers.multiply(sums, inputs, weights)
#include "../simd_avx512.h"
#include "../simd_matmul.h"
#include "../simd_q8.h"
#include "../simd_matmul_tiles.h"
#include "../simd_amx.h"

static bool proved() { return tiles_hold<Amx>(); }
static Kernels table() { return with_tiles<Amx>("emulated amx", kernels_avx512()); }
SIMD_TARGET_END

#else

const Kernels* kernels_emulated_amx() { return nullptr; }

#endif
