// Operations that copy rows: embed, gather, and the copy behind a tap.
//
// `rows` points to the step's live count in device memory, since a captured graph is launched for
// as many rows as its bucket has: blocks past the count do nothing, and rows past it stay
// untouched.
#include "rows.h"

// x[row] = embedding[tokens[row]]. x f32 [rows, hidden], embedding bf16 [vocab, hidden].
// grid (bucket rows)
KERNEL(256)
embed(const int* rows, float* x, const int* tokens, const bf16* embedding, int hidden) {
  embed_row(own_place(), rows, x, tokens, embedding, hidden);
}
EMULATE(embed, 256)

// y[i] = x[logit_row[i]]. x f32 [rows, hidden], y f32 [logit rows, hidden].
// grid (bucket rows)
KERNEL(256)
gather(const int* logit_rows, float* y, const float* x, const int* logit_row, int hidden) {
  gather_row(own_place(), logit_rows, y, x, logit_row, hidden);
}
EMULATE(gather, 256)

// y = x, rows of `words` 32-bit words.
// grid (bucket rows)
KERNEL(256)
copy_rows(const int* rows, unsigned* y, const unsigned* x, int words) {
  const int row = blockIdx.x;
  if (row >= *rows) return;
  for (int i = threadIdx.x; i < words; i += blockDim.x)
    y[static_cast<int64_t>(row) * words + i] = x[static_cast<int64_t>(row) * words + i];
}
EMULATE(copy_rows, 256)
