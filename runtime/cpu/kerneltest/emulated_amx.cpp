// simd_amx.h with the tile registers as arrays: a table for the test only, so that all but the
// instructions runs on any machine with AVX-512.
#include "check.h"

#if defined(__x86_64__)

#include <immintrin.h>

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
// Of one thread; nothing is in them but between begin and end.
struct Registers {
  bool loaded = false;
  uint8_t bytes[8][16][64];

  void configure(const void* shapes) {
    uint8_t s[64];
    memcpy(s, shapes, sizeof s);
    loaded = s[0] == 1 && s[1] == 0;
    for (int i = 0; i < 8; i++) loaded = loaded && s[16 + 2 * i] == 64 && s[48 + i] == 16;
    for (int i = 2; i < 16; i++) loaded = loaded && s[i] == 0;
    for (int i = 8; i < 16; i++) loaded = loaded && s[16 + 2 * i] == 0 && s[48 + i] == 0;
    zero();
  }
  void zero() { memset(bytes, loaded ? 0 : 0xff, sizeof bytes); }
  void release() {
    loaded = false;
    zero();
  }
  void zero(int tile) { memset(bytes[tile], loaded ? 0 : 0xff, sizeof bytes[tile]); }
  void load(int tile, const void* from, int64_t stride) {
    for (int r = 0; loaded && r < 16; r++) {
      memcpy(bytes[tile][r], static_cast<const uint8_t*>(from) + r * stride, 64);
    }
  }
  void store(int tile, void* to, int64_t stride) const {
    for (int r = 0; r < 16; r++) memcpy(static_cast<uint8_t*>(to) + r * stride, bytes[tile][r], 64);
  }
  void multiply(int sums, int inputs, int weights) {
    float s[kTileSums];
    uint16_t a[kTileBf16], b[kTileBf16];
    memcpy(s, bytes[sums], sizeof s);
    memcpy(a, bytes[inputs], sizeof a);
    memcpy(b, bytes[weights], sizeof b);
    PortableTile::add_product(s, a, b);
    memcpy(bytes[sums], s, sizeof s);
  }
};
thread_local Registers registers;
}  // namespace

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig(shapes) registers.configure(shapes)
#define _tile_release() registers.release()
#define _tile_zero(tile) registers.zero(tile)
#define _tile_loadd(tile, from, stride) registers.load(tile, from, stride)
#define _tile_stored(tile, to, stride) registers.store(tile, to, stride)
#define _tile_dpbf16ps(sums, inputs, weights) registers.multiply(sums, inputs, weights)
#include "../simd_avx512.h"
#include "../simd_matmul.h"
#include "../simd_q8.h"
#include "../simd_dense_q8.h"
#include "../simd_matmul_tiles.h"
#include "../simd_amx.h"

static bool proved() { return tiles_hold<Amx>(); }
static Kernels table() { return with_tiles<Amx>("emulated amx", kernels_avx512()); }
SIMD_TARGET_END

#else

const Kernels* kernels_emulated_amx() { return nullptr; }

#endif
