// Operations that copy rows, as phases: rows.cu says what they do.
#ifndef OSSRUN_GPU_ROWS_H_
#define OSSRUN_GPU_ROWS_H_

#include "grid.h"
#include "number.h"

// embed.
__device__ __forceinline__ void embed_row(const Place& place, const int* rows, float* x,
                                          const int* tokens, const bf16* embedding, int hidden) {
  const int row = place.x;
  if (row >= *rows) return;
  const bf16* from = embedding + static_cast<int64_t>(tokens[row]) * hidden;
  for (int i = place.thread; i < hidden; i += blockDim.x)
    x[static_cast<int64_t>(row) * hidden + i] = from_bf16(from[i]);
}

// gather.
__device__ __forceinline__ void gather_row(const Place& place, const int* logit_rows, float* y,
                                           const float* x, const int* logit_row, int hidden) {
  const int row = place.x;
  if (row >= *logit_rows) return;
  const float* from = x + static_cast<int64_t>(logit_row[row]) * hidden;
  for (int i = place.thread; i < hidden; i += blockDim.x)
    y[static_cast<int64_t>(row) * hidden + i] = from[i];
}

#endif  // OSSRUN_GPU_ROWS_H_
