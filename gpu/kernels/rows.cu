// Operations that copy rows: embed, the rows that have logits, and the copy behind a tap.
//
// `rows` points to the step's live count in device memory, since a captured graph is launched for
// as many rows as its bucket has: blocks past the count do nothing, and rows past it stay
// untouched.
#include "expert.h"

// x[row] = embedding[tokens[row]], eight elements a thread: a row's loads are all under way at
// once. x f32 [rows, hidden], embedding bf16 [vocab, hidden], hidden a multiple of 8. grid
// (ceil(hidden / 8 / 128), bucket rows)
KERNEL(128)
embed(const int* rows, float* x, const int* tokens, const bf16* embedding, int hidden) {
  await_grids();
  const int row = blockIdx.y, at = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (row >= *rows || at >= hidden) return;
  const uint4 v =
      *reinterpret_cast<const uint4*>(embedding + static_cast<int64_t>(tokens[row]) * hidden + at);
  float4* to = reinterpret_cast<float4*>(x + static_cast<int64_t>(row) * hidden + at);
  to[0] = float4{low_bf16(v.x), high_bf16(v.x), low_bf16(v.y), high_bf16(v.y)};
  to[1] = float4{low_bf16(v.z), high_bf16(v.z), low_bf16(v.w), high_bf16(v.w)};
}
EMULATE(embed, 128)

// x f32 [rows, width] rounded to bf16: in order, or, if form is not 0, as leave_rounded has it.
// width a multiple of 8, a thread a piece.
// grid (ceil(width rounded up to 64 / 8 / 128), bucket rows)
KERNEL(128)
round_rows(const int* rows, bf16* y, const float* x, int width, int form) {
  await_grids();
  const int row = blockIdx.y, piece = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= *rows || piece * 8 >= rounded_width(width, form)) return;
  float4 u = {0, 0, 0, 0}, v = {0, 0, 0, 0};
  if (piece * 8 < width) {
    const float* from = x + static_cast<int64_t>(row) * width + piece * 8;
    u = *reinterpret_cast<const float4*>(from);
    v = *reinterpret_cast<const float4*>(from + 4);
  }
  if (form)
    leave_rounded(y, row, piece, width, form, u, v);
  else
    reinterpret_cast<uint4*>(y + static_cast<int64_t>(row) * width)[piece] =
        uint4{to_bf16x2(u.x, u.y), to_bf16x2(u.z, u.w), to_bf16x2(v.x, v.y), to_bf16x2(v.z, v.w)};
}
EMULATE(round_rows, 128)

// y[row] = x[row], or x[list[row]] if list is not null; rows of `words` 32-bit words.
// grid (ceil(words / 256), bucket rows)
KERNEL(256)
copy_rows(const int* rows, unsigned* y, const unsigned* x, int words, const int* list) {
  await_grids();
  const int row = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= *rows || i >= words) return;
  y[static_cast<int64_t>(row) * words + i] =
      x[static_cast<int64_t>(list ? list[row] : row) * words + i];
}
EMULATE(copy_rows, 256)
