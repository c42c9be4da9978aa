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
  static constexpr int64_t kPeakOperations = 0;  // there is no peak to measure
  static void peak_round() {}

  static void mx_tile(uint16_t* to, const uint8_t* const rows[16], int64_t offset,
                      const uint8_t scales[16]) {
    any_mx_tile(to, rows, offset, scales);
  }
  static void q8_tile(uint16_t* to, const uint8_t* first, const uint8_t* second) {
    for (int r = 0; r < kTileSide; r++) {
      const uint8_t* group = r < 8 ? first : second;
      uint16_t half;
      memcpy(&half, group + r % 8 * 2, sizeof half);
      const float scale = bf16_value(&half);
      for (int i = 0; i < 32; i++) {
        const int at = i / 8 * 2 + i % 2;  // columns 0 2 4 6 1 3 5 7 of every eight
        const uint8_t byte = group[16 + (at * 8 + r % 8) * 4 + i % 8 / 2];
        const float w = static_cast<float>(static_cast<int8_t>(byte)) * scale;
        uint32_t bits;
        memcpy(&bits, &w, sizeof bits);
        to[i / 2 * kTwoSides + 2 * r + i % 2] = static_cast<uint16_t>((bits + 0x8000) >> 16);
      }
    }
  }
};

}  // namespace

const Kernels* kernels_portable_amx() {
  static const Kernels kTable = with_tiles<PortableAmx>("portable amx", kernels_portable16());
  return &kTable;
}
