// The kernels on tiles without any instruction set: a table for the test only.
#include "../kernels.h"

#include <math.h>
#include <string.h>

#include "../simd_e2m1.h"
#include "../simd_target.h"
#include "../simd_tile.h"
#include "check.h"
#include "simd_portable16.h"
#include "../simd_matmul.h"
#include "../simd_q8.h"
#include "../simd_dense_q8.h"
#include "../simd_matmul_tiles.h"

namespace {

struct PortableAmx : Portable16AnyScales, PortableTile {
  static inline const Kernels* below = nullptr;

  static constexpr int64_t kPeakOperations = 0;  // there is no peak to measure
  static void peak_round() {}

  static void bf16_inputs(uint16_t* to, const int8_t* q) {
    for (int i = 0; i < 32; i++) to[i] = whole_bf16(q[i]);
  }
  static void bf16_inputs(uint16_t* to, uint16_t* low, const int16_t* q) {
    for (int i = 0; i < 32; i++) {
      low[i] = whole_bf16(q[i] & 15);
      to[i] = whole_bf16(q[i] - (q[i] & 15));
    }
  }

  // Column i of a block is in the byte i / 2, and at this place of its tile.
  static void mx_tile(uint16_t* to, const uint8_t* const rows[16], int64_t offset) {
    for (int r = 0; r < kLanes; r++) {
      for (int i = 0; i < 32; i++) {
        const int code = rows[r][offset + i / 2] >> i % 2 * 4 & 15;
        const int place = i / 8 * 8 + i % 2 * 4 + i % 8 / 2;
        to[(place / 2 * kLanes + r) * 2 + place % 2] =
            static_cast<uint16_t>(e2m1_bits(code, 128) >> 16);
      }
    }
  }
  static void dense_inputs(uint16_t* to, const int8_t* q) { bf16_inputs(to, q); }
  static void dense_tile(uint16_t* to, const uint8_t* p, const uint8_t* second) {
    for (int r = 0; r < kLanes; r++) {
      const uint8_t* group = r < 8 ? p : second;
      for (int i = 0; i < 32; i++) {
        to[(i / 2 * kLanes + r) * 2 + i % 2] =
            whole_bf16(static_cast<int8_t>(group[(i / 4 * 8 + r % 8) * 4 + i % 4]));
      }
    }
  }
};

}  // namespace

const Kernels* kernels_portable_amx() {
  static const Kernels kTable = with_tiles<PortableAmx>("portable amx", kernels_portable16());
  return &kTable;
}
