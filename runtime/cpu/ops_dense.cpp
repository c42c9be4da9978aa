// Operations on dense rows: embed, norm, linear, gather, copy.
#include <cstring>

#include "ops.h"

namespace ossrun {
namespace {

// x[row] = the token's row of the embedding.
class EmbedOp : public RowOp<EmbedOp> {
 public:
  EmbedOp(const ossrun_tape& t, float* x, const uint16_t* embedding)
      : RowOp(OSSRUN_PER_ROW, 0), k_(t.kernels), hidden_(t.shape.hidden), x_(x), w_(embedding) {}

  void row(const ossrun_batch& b, int64_t i) const {
    k_->bf16_to_f32(x_ + i * hidden_, w_ + b.tokens[i] * hidden_, hidden_);
  }

 private:
  const Kernels* k_;
  int64_t hidden_;
  float* x_;
  const uint16_t* w_;
};

// y[row] = RMSNorm(x[row]) * w.
class NormOp : public RowOp<NormOp> {
 public:
  NormOp(const ossrun_tape& t, ossrun_extent rows, float* y, const float* x, const uint16_t* w,
         int64_t width, float eps)
      : RowOp(rows, t.shape.experts_per_token),
        k_(t.kernels),
        y_(y),
        x_(x),
        w_(w),
        width_(width),
        eps_(eps) {}

  void row(const ossrun_batch&, int64_t i) const {
    k_->rmsnorm(y_ + i * width_, x_ + i * width_, w_, width_, eps_);
  }

 private:
  const Kernels* k_;
  float* y_;
  const float* x_;
  const uint16_t* w_;
  int64_t width_;
  float eps_;
};

// y[:, part 0 | part 1 | ...] = x · partᵀ + bias, or += where `add`. A task is some tiles of the
// parts' rows for all rows of the step, so each weight is read from memory once a step.
class LinearOp : public Op {
 public:
  LinearOp(const ossrun_tape& t, ossrun_extent rows, float* y, const float* x, int64_t k,
           const ossrun_matrix* parts, int count, bool add)
      : tape_(&t),
        k_(t.kernels),
        multiply_(t.shape.rounding && k_->matmul_bf16_halves ? k_->matmul_bf16_halves
                                                             : k_->matmul_bf16),
        extent_(rows),
        per_token_(t.shape.experts_per_token),
        y_(y),
        x_(x),
        width_(k),
        add_(add) {
    for (int i = 0; i < count; i++) {
      parts_[i] = parts[i];
      columns_ += parts[i].n;
      tiles_ += divide_up(parts[i].n, kTile);
    }
  }

  int64_t tasks(const ossrun_batch& b) const override {
    return rows_of(b, extent_, per_token_) > 0 ? Shares(tiles_, tape_->threads).count() : 0;
  }

  void run(const ossrun_batch& b, int64_t task) const override {
    const Shares::Range share = Shares(tiles_, tape_->threads)[task];
    for (int64_t tile = share.begin; tile < share.end; tile++) run_tile(b, tile);
  }

  Stretch first(const ossrun_batch& b, int thread) const override {
    if (thread >= tasks(b)) return {};
    const auto [part, column, tile] = place(Shares(tiles_, tape_->threads)[thread].begin);
    const uint16_t* begin = part->weight + tile * kTile * width_;
    return {begin, (part->n - tile * kTile) * width_ * int64_t{sizeof *begin}};
  }

 private:
  static constexpr int64_t kTile = 64;   // rows of a weight that the kernel takes at a time
  static constexpr int64_t kChunk = 64;  // rows of activations whose sums wait on the stack

  struct Place {
    const ossrun_matrix* part;
    int64_t column, tile;  // of the result, where the part begins; of the part
  };
  Place place(int64_t tile) const {
    int64_t column = 0;
    const ossrun_matrix* part = parts_;
    for (; tile >= divide_up(part->n, kTile); part++) {
      tile -= divide_up(part->n, kTile);
      column += part->n;
    }
    return {part, column, tile};
  }

  void run_tile(const ossrun_batch& b, int64_t index) const {
    const auto [part, column, tile] = place(index);
    const int64_t r0 = tile * kTile, r1 = std::min(part->n, r0 + kTile);
    const int64_t n = rows_of(b, extent_, per_token_);
    float* y = (y_ ? y_ : b.logits) + column;
    if (add_) {
      accumulate(y, n, *part, r0, r1);
    } else {
      multiply_(y, columns_, x_, width_, n, part->weight, width_, r0, r1, part->bias);
    }
  }

  void accumulate(float* y, int64_t n, const ossrun_matrix& m, int64_t r0, int64_t r1) const {
    float tile[kChunk * kTile];
    const uint16_t* w = m.weight + r0 * width_;
    const uint16_t* bias = m.bias ? m.bias + r0 : nullptr;
    for (int64_t t = 0; t < n; t += kChunk) {
      const int64_t rows = std::min(kChunk, n - t);
      multiply_(tile, kTile, x_ + t * width_, width_, rows, w, width_, 0, r1 - r0, bias);
      for (int64_t i = 0; i < rows; i++) {
        k_->add(y + (t + i) * columns_ + r0, tile + i * kTile, r1 - r0);
      }
    }
  }

  const ossrun_tape* tape_;
  const Kernels* k_;
  decltype(Kernels::matmul_bf16) multiply_;
  ossrun_extent extent_;
  int64_t per_token_;
  float* y_;
  const float* x_;
  int64_t width_;
  ossrun_matrix parts_[OSSRUN_MAX_PARTS] = {};
  bool add_;
  int64_t columns_ = 0, tiles_ = 0;
};

// LinearOp on 8-bit weights and 12-bit rows: q and d in place of x.
class LinearQ8Op : public Op {
 public:
  LinearQ8Op(const ossrun_tape& t, ossrun_extent rows, float* y, const int16_t* q, const float* d,
             int64_t k, const ossrun_q8_matrix* parts, int count, bool add)
      : tape_(&t),
        k_(t.kernels),
        extent_(rows),
        per_token_(t.shape.experts_per_token),
        y_(y),
        q_(q),
        d_(d),
        width_(k),
        add_(add) {
    for (int i = 0; i < count; i++) {
      parts_[i] = parts[i];
      columns_ += parts[i].n;
      tiles_ += divide_up(parts[i].n, kTile);
    }
  }

  int64_t tasks(const ossrun_batch& b) const override {
    return rows_of(b, extent_, per_token_) > 0 ? Shares(tiles_, tape_->threads).count() : 0;
  }

  void run(const ossrun_batch& b, int64_t task) const override {
    const Shares::Range share = Shares(tiles_, tape_->threads)[task];
    for (int64_t tile = share.begin; tile < share.end; tile++) run_tile(b, tile);
  }

  Stretch first(const ossrun_batch& b, int thread) const override {
    if (thread >= tasks(b)) return {};
    const auto [part, column, tile] = place(Shares(tiles_, tape_->threads)[thread].begin);
    return {part->weight + bytes_of(tile * kTile), bytes_of(part->n - tile * kTile)};
  }

 private:
  static constexpr int64_t kTile = 64;    // rows of a weight that the kernel takes at a time
  static constexpr int64_t kChunk = 128;  // rows of activations at a time

  struct Place {
    const ossrun_q8_matrix* part;
    int64_t column, tile;  // of the result, where the part begins; of the part
  };
  Place place(int64_t tile) const {
    int64_t column = 0;
    const ossrun_q8_matrix* part = parts_;
    for (; tile >= divide_up(part->n, kTile); part++) {
      tile -= divide_up(part->n, kTile);
      column += part->n;
    }
    return {part, column, tile};
  }
  // Of that many rows of a weight, a whole number of groups.
  int64_t bytes_of(int64_t rows) const { return rows * (width_ / kMxBlock) * (2 + kMxBlock); }

  void run_tile(const ossrun_batch& b, int64_t index) const {
    const auto [part, column, tile] = place(index);
    const int64_t r0 = tile * kTile, r1 = std::min(part->n, r0 + kTile);
    const int64_t n = rows_of(b, extent_, per_token_);
    float* y = (y_ ? y_ : b.logits) + column;
    for (int64_t t = 0; t < n; t += kChunk) chunk(y, t, std::min(kChunk, n - t), *part, r0, r1);
  }

  void chunk(float* y, int64_t t, int64_t rows, const ossrun_q8_matrix& m, int64_t r0,
             int64_t r1) const {
    const int16_t* q[kChunk];
    const float* d[kChunk];
    for (int64_t i = 0; i < rows; i++) {
      q[i] = q_ + (t + i) * width_;
      d[i] = d_ + (t + i) * (width_ / kMxBlock);
    }
    if (!add_) {
      k_->matmul_q8(y + t * columns_, columns_, q, d, rows, m.weight, width_, r0, r1, m.bias);
      return;
    }
    alignas(64) float tile[kChunk * kTile];
    const uint8_t* w = m.weight + bytes_of(r0);
    k_->matmul_q8(tile, kTile, q, d, rows, w, width_, 0, r1 - r0, m.bias ? m.bias + r0 : nullptr);
    for (int64_t i = 0; i < rows; i++) {
      k_->add(y + (t + i) * columns_ + r0, tile + i * kTile, r1 - r0);
    }
  }

  const ossrun_tape* tape_;
  const Kernels* k_;
  ossrun_extent extent_;
  int64_t per_token_;
  float* y_;
  const int16_t* q_;
  const float* d_;
  int64_t width_;
  ossrun_q8_matrix parts_[OSSRUN_MAX_PARTS] = {};
  bool add_;
  int64_t columns_ = 0, tiles_ = 0;
};

// q and d of each row, for LinearQ8Op.
class QuantizeQ12Op : public RowOp<QuantizeQ12Op> {
 public:
  QuantizeQ12Op(const ossrun_tape& t, ossrun_extent rows, int16_t* q, float* d, const float* x,
                int64_t width)
      : RowOp(rows, t.shape.experts_per_token), k_(t.kernels), q_(q), d_(d), x_(x), width_(width) {}

  void row(const ossrun_batch&, int64_t i) const {
    k_->quantize_q12(q_ + i * width_, d_ + i * (width_ / kMxBlock), x_ + i * width_, width_);
  }

 private:
  const Kernels* k_;
  int16_t* q_;
  float* d_;
  const float* x_;
  int64_t width_;
};

// y[i] = x[the i-th row whose logits are asked].
class GatherOp : public RowOp<GatherOp> {
 public:
  GatherOp(const ossrun_tape& t, float* y, const float* x)
      : RowOp(OSSRUN_PER_LOGIT, 0), hidden_(t.shape.hidden), y_(y), x_(x) {}

  void row(const ossrun_batch& b, int64_t i) const {
    std::memcpy(y_ + i * hidden_, x_ + b.logit_row[i] * hidden_, hidden_ * sizeof(float));
  }

 private:
  int64_t hidden_;
  float* y_;
  const float* x_;
};

class CopyOp : public RowOp<CopyOp> {
 public:
  CopyOp(const ossrun_tape& t, ossrun_extent rows, void* y, const void* x, int64_t row_bytes)
      : RowOp(rows, t.shape.experts_per_token),
        y_(static_cast<char*>(y)),
        x_(static_cast<const char*>(x)),
        bytes_(row_bytes) {}

  void row(const ossrun_batch&, int64_t i) const {
    std::memcpy(y_ + i * bytes_, x_ + i * bytes_, bytes_);
  }

 private:
  char* y_;
  const char* x_;
  int64_t bytes_;
};

}  // namespace
}  // namespace ossrun

using namespace ossrun;

int ossrun_embed(ossrun_tape* t, float* x, const uint16_t* embedding) {
  return append(t, EmbedOp(*t, x, embedding));
}

int ossrun_norm(ossrun_tape* t, ossrun_extent rows, float* y, const float* x, const uint16_t* w,
                int64_t width, float eps) {
  return append(t, NormOp(*t, rows, y, x, w, width, eps));
}

int ossrun_linear(ossrun_tape* t, ossrun_extent rows, float* y, const float* x, int64_t k,
                  const ossrun_matrix* parts, int count, int add) {
  return append(t, LinearOp(*t, rows, y, x, k, parts, count, add != 0));
}

int ossrun_linear_q8(ossrun_tape* t, ossrun_extent rows, float* y, const int16_t* q, const float* d,
                     int64_t k, const ossrun_q8_matrix* parts, int count, int add) {
  return append(t, LinearQ8Op(*t, rows, y, q, d, k, parts, count, add != 0));
}

int ossrun_quantize_q12(ossrun_tape* t, ossrun_extent rows, int16_t* q, float* d, const float* x,
                        int64_t width) {
  return append(t, QuantizeQ12Op(*t, rows, q, d, x, width));
}

int ossrun_gather(ossrun_tape* t, float* y, const float* x) {
  return append(t, GatherOp(*t, y, x));
}

int ossrun_copy(ossrun_tape* t, ossrun_extent rows, void* y, const void* x, int64_t row_bytes) {
  return append(t, CopyOp(*t, rows, y, x, row_bytes));
}
