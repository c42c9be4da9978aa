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
#include "../simd_matmul_tiles.h"

namespace {

struct PortableAmx : Portable16AnyScales, PortableTile {
  static constexpr int64_t kPeakOperations = 0;  // there is no peak to measure
  static void peak_round() {}

  static void mx_tile(uint16_t* to, const uint8_t* const rows[16], int64_t offset,
                      const uint8_t scales[16]) {
    any_mx_tile(to, rows, offset, scales);
  }
};

}  // namespace

const Kernels* kernels_portable_amx() {
  static const Kernels kTable = with_tiles<PortableAmx>("portable amx", kernels_portable16());
  return &kTable;
}
