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
// parts' rows for all rows of the step, so each weight is read from memory once a step. Derive, and
// say how many bytes rows of a weight have (bytes_of), and how rows of activations are multiplied
// with rows of a part (multiply).
template <class Self, class Matrix>
class TiledOp : public Op {
 public:
  TiledOp(const ossrun_tape& t, ossrun_extent rows, float* y, int64_t k, const Matrix* parts,
          int count, bool add)
      : k_(t.kernels),
        width_(k),
        tape_(&t),
        extent_(rows),
        per_token_(t.shape.experts_per_token),
        y_(y),
        add_(add) {
    for (; count_ < count; count_++) {
      parts_[count_] = parts[count_];
      rows_[count_] = parts[count_].n;
      columns_ += parts[count_].n;
    }
  }

  int64_t tasks(const ossrun_batch& b) const override {
    return rows(b) > 0 ? shares(height(b)).count() : 0;
  }

  void run(const ossrun_batch& b, int64_t task) const override {
    const int64_t tall = height(b);
    const Shares::Range share = shares(tall)[task];
    for (int64_t tile = share.begin; tile < share.end; tile++) run_tile(b, tile, tall);
  }

  Stretch first(const ossrun_batch& b, int thread) const override {
    if (thread >= tasks(b)) return {};
    const int64_t tall = height(b);
    const auto [part, column, tile] = place(shares(tall)[thread].begin, tall);
    return {reinterpret_cast<const char*>(part->weight) + self().bytes_of(tile * tall),
            self().bytes_of(part->n - tile * tall)};
  }

 protected:
  static constexpr int64_t kChunk = 128;  // rows of activations at a time

  const Kernels* k_;
  int64_t width_;

 private:
  struct Place {
    const Matrix* part;
    int64_t column, tile;  // of the result, where the part begins; of the part
  };

  const Self& self() const { return *static_cast<const Self*>(this); }

  int64_t rows(const ossrun_batch& b) const {
    const Range r = range(b, extent_, per_token_);
    return r.end - r.begin;
  }

  int64_t height(const ossrun_batch& b) const {
    if (rows(b) > kFewRows) return kTile;
    return tile_height(rows_, count_, 1, tape_->threads);
  }

  Shares shares(int64_t tall) const {
    int64_t tiles = 0;
    for (int i = 0; i < count_; i++) tiles += divide_up(rows_[i], tall);
    return Shares(tiles, tape_->threads);
  }

  Place place(int64_t tile, int64_t tall) const {
    int64_t column = 0;
    const Matrix* part = parts_;
    for (; tile >= divide_up(part->n, tall); part++) {
      tile -= divide_up(part->n, tall);
      column += part->n;
    }
    return {part, column, tile};
  }

  void run_tile(const ossrun_batch& b, int64_t index, int64_t tall) const {
    const auto [part, column, tile] = place(index, tall);
    const int64_t r0 = tile * tall, r1 = std::min(part->n, r0 + tall);
    if (!y_ && b.wanted) {
      wanted_only(b, *part, r0, r1);
    } else {
      multiply_all(b, (y_ ? y_ : b.logits) + column, *part, r0, r1);
    }
  }

  // Logits in groups of eight, of which the 8-bit weights are made. A group without a wanted token
  // is zero: what the caller's memory holds need not be a finite number.
  void wanted_only(const ossrun_batch& b, const Matrix& m, int64_t r0, int64_t r1) const {
    const auto wanted = [&](int64_t r) { return (b.wanted[r / 64] >> (r % 64) & 0xff) != 0; };
    for (int64_t end; r0 < r1; r0 = end) {
      const bool any = wanted(r0);
      for (end = r0 + 8; end < r1 && wanted(end) == any; end += 8) {
      }
      end = std::min(end, r1);
      if (any) {
        multiply_all(b, b.logits, m, r0, end);
      } else {
        const Range rows = range(b, extent_, per_token_);
        for (int64_t i = rows.begin; i < rows.end; i++) {
          std::fill(b.logits + i * columns_ + r0, b.logits + i * columns_ + end, 0.0F);
        }
      }
    }
  }

  void multiply_all(const ossrun_batch& b, float* y, const Matrix& m, int64_t r0,
                    int64_t r1) const {
    const auto [begin, end] = range(b, extent_, per_token_);
    const int64_t most = add_ ? kChunk : Self::kMostRows;
    for (int64_t t = begin, rows; t < end; t += rows) {
      rows = std::min(most, end - t);
      if (add_) {
        accumulate(b, y + t * columns_, t, rows, m, r0, r1);
      } else {
        self().multiply(b, y + t * columns_, columns_, t, rows, m, r0, r1);
      }
    }
  }

  // The sums of a tile come to the stack, as rows 0 to r1 - r0, and are added from there.
  void accumulate(const ossrun_batch& b, float* y, int64_t t, int64_t rows, Matrix part, int64_t r0,
                  int64_t r1) const {
    alignas(64) float sums[kChunk * kTile];
    auto weight = reinterpret_cast<const char*>(part.weight) + self().bytes_of(r0);
    part.weight = reinterpret_cast<decltype(part.weight)>(weight);
    if (part.bias) part.bias += r0;
    self().multiply(b, sums, kTile, t, rows, part, 0, r1 - r0);
    for (int64_t i = 0; i < rows; i++) {
      k_->add(y + i * columns_ + r0, sums + i * kTile, r1 - r0);
    }
  }

  const ossrun_tape* tape_;
  ossrun_extent extent_;
  int64_t per_token_;
  float* y_;
  Matrix parts_[OSSRUN_MAX_PARTS] = {};
  int64_t rows_[OSSRUN_MAX_PARTS] = {};
  int count_ = 0;
  bool add_;
  int64_t columns_ = 0;
};

// On float32 rows and bf16 weights; rows of prompts by tiles, if they are there as bf16.
class LinearOp : public TiledOp<LinearOp, ossrun_matrix> {
 public:
  LinearOp(const ossrun_tape& t, ossrun_extent rows, float* y, const float* x,
           const ossrun_rounded& bf16, int64_t k, const ossrun_matrix* parts, int count, bool add)
      : TiledOp(t, rows, y, k, parts, count, add),
        multiply_(t.shape.rounding && k_->matmul_bf16_halves ? k_->matmul_bf16_halves
                                                             : k_->matmul_bf16),
        x_(x),
        bf16_(bf16) {}

  static constexpr int64_t kMostRows = INT64_MAX;

  int64_t bytes_of(int64_t rows) const { return rows * width_ * int64_t{sizeof(uint16_t)}; }

  void multiply(const ossrun_batch& b, float* y, int64_t ldy, int64_t t, int64_t rows,
                const ossrun_matrix& m, int64_t r0, int64_t r1) const {
    const int64_t end = t + rows;
    for (int64_t same; t < end; y += (same - t) * ldy, t = same) {
      const bool tiles = bf16_.rows && on_tiles(b, t);
      for (same = t + 1; same < end && (bf16_.rows && on_tiles(b, same)) == tiles;) same++;
      if (!tiles) {
        multiply_(y, ldy, x_ + t * width_, width_, same - t, m.weight, width_, r0, r1, m.bias);
        continue;
      }
      for (int64_t i = 0; i < same - t; i++) std::fill(y + i * ldy + r0, y + i * ldy + r1, 0.0F);
      k_->matmul_bf16_tiles(y, ldy, bf16_.rows + t * bf16_.stride, bf16_.stride, same - t, m.weight,
                            width_, r0, r1, m.bias);
    }
  }

 private:
  decltype(Kernels::matmul_bf16) multiply_;
  const float* x_;
  ossrun_rounded bf16_;
};

// On 8-bit weights and rows of Q: 12 bits, or 8 with two numbers a block.
template <class Q>
class LinearQ8Op : public TiledOp<LinearQ8Op<Q>, ossrun_q8_matrix> {
  typedef TiledOp<LinearQ8Op<Q>, ossrun_q8_matrix> Tiled;
  using Tiled::k_;
  using Tiled::kChunk;
  using Tiled::width_;

 public:
  LinearQ8Op(const ossrun_tape& t, ossrun_extent rows, float* y, const Q* q, const float* d,
             int64_t k, const ossrun_q8_matrix* parts, int count, bool add)
      : Tiled(t, rows, y, k, parts, count, add), q_(q), d_(d) {}

  static constexpr int64_t kMostRows = kChunk;

  // Of a whole number of groups.
  int64_t bytes_of(int64_t rows) const { return rows * (width_ / kMxBlock) * (2 + kMxBlock); }

  void multiply(const ossrun_batch&, float* y, int64_t ldy, int64_t t, int64_t rows,
                const ossrun_q8_matrix& m, int64_t r0, int64_t r1) const {
    constexpr int64_t kNumbers = sizeof(Q) == 1 ? 2 : 1;
    const Q* q[kChunk];
    const float* d[kChunk];
    int64_t i = 0;
    do {
      q[i] = q_ + (t + i) * width_;
      d[i] = d_ + (t + i) * (width_ / kMxBlock) * kNumbers;
    } while (++i < rows);
    if constexpr (sizeof(Q) == 1) {
      k_->matmul_q8_q8(y, ldy, q, d, rows, m.weight, width_, r0, r1, m.bias);
    } else {
      k_->matmul_q8(y, ldy, q, d, rows, m.weight, width_, r0, r1, m.bias);
    }
  }

 private:
  const Q* q_;
  const float* d_;
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

// append for an operation that gives the logits where y is null.
template <class T>
static int append_linear(ossrun_tape* t, const float* y, T op) {
  const int done = append(t, std::move(op));
  if (done && !y) t->unembeddings++;
  return done;
}

int ossrun_linear(ossrun_tape* t, ossrun_extent rows, float* y, const float* x, ossrun_rounded bf16,
                  int64_t k, const ossrun_matrix* parts, int count, int add) {
  return append_linear(t, y, LinearOp(*t, rows, y, x, bf16, k, parts, count, add != 0));
}

int ossrun_linear_q8(ossrun_tape* t, ossrun_extent rows, float* y, const int16_t* q, const float* d,
                     int64_t k, const ossrun_q8_matrix* parts, int count, int add) {
  return append_linear(t, y, LinearQ8Op(*t, rows, y, q, d, k, parts, count, add != 0));
}

int ossrun_linear_q8_q8(ossrun_tape* t, ossrun_extent rows, float* y, const int8_t* q,
                        const float* d, int64_t k, const ossrun_q8_matrix* parts, int count,
                        int add) {
  return append_linear(t, y, LinearQ8Op(*t, rows, y, q, d, k, parts, count, add != 0));
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
