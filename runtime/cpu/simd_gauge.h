// What the kernels are measured against: plain reads and plain 8-bit multiplications.
//
// Decode is as fast as memory can be read and prefill as fast as bytes can be multiplied, so both
// roofs are measured beside every figure, by the instruction set that the figure was made with.
#ifndef OSSRUN_CPU_SIMD_GAUGE_H_
#define OSSRUN_CPU_SIMD_GAUGE_H_

namespace {

template <class S>
uint64_t read_all(const uint8_t* p, int64_t bytes) {
  constexpr int64_t kVector = 4 * S::kLanes, kStep = 8 * kVector;
  typename S::I sums[8];
  SIMD_UNROLL
  for (int j = 0; j < 8; j++) sums[j] = S::zero_ints();
  for (int64_t i = 0; i + kStep <= bytes; i += kStep) {
    for (int64_t line = 0; line < kStep; line += 64) prefetch(p + i + 4096 + line);
    SIMD_UNROLL
    for (int j = 0; j < 8; j++) sums[j] = S::mix(sums[j], S::load_bytes(p + i + j * kVector));
  }
  uint64_t sum = 0;
  for (int j = 0; j < 8; j++) {
    uint8_t kept[kVector];
    S::store_bytes(kept, sums[j]);
    uint64_t first;
    memcpy(&first, kept, sizeof first);
    sum += first;
  }
  return sum;
}

template <class S>
int64_t multiply_peak(int64_t rounds) {
  typename S::I a[8];
  SIMD_UNROLL
  for (int j = 0; j < 8; j++) a[j] = S::zero_ints();
  for (int64_t i = 0; i < rounds; i++) S::peak_round(a);
  return rounds * S::kPeakOperations;
}

}  // namespace

#endif  // OSSRUN_CPU_SIMD_GAUGE_H_
