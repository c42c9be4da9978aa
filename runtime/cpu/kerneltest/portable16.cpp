// The kernel templates at sixteen lanes without any instruction set: a table for the test only.
#include "../kernels.h"

#include <math.h>
#include <string.h>

#include "../simd_e2m1.h"
#include "../simd_target.h"
#include "simd_portable16.h"
#include "../simd_table.h"

const Kernels* kernels_portable16() {
  static constexpr Kernels kTable = kernels_of<Portable16, Portable16Dense8>("portable16");
  return &kTable;
}
