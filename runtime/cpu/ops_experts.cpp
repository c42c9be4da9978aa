// Operations of the experts: route, quantize, gate and up, down, combine.
#include <cmath>
#include <cstring>

#include "disk.h"
#include "ops.h"

namespace ossrun {
namespace {

// Chooses experts for every row and sorts the slots by expert. One task: it compares R*E numbers,
// which is nothing next to the experts themselves, and the sort needs all rows anyway.
class RouteOp : public Op {
 public:
  RouteOp(const ossrun_tape& t, int32_t* experts, float* weights, int32_t* order, int32_t* groups,
          const float* router)
      : k_(t.kernels),
        e_(t.shape.experts),
        top_(t.shape.experts_per_token),
        experts_(experts),
        weights_(weights),
        order_(order),
        groups_(groups),
        router_(router) {}

  int64_t tasks(const ossrun_batch&) const override { return 1; }

  void run(const ossrun_batch& b, int64_t) const override {
    for (int64_t i = 0; i < b.rows; i++) {
      choose(router_ + i * e_, experts_ + i * top_, weights_ + i * top_);
      k_->softmax(weights_ + i * top_, top_);
    }
    group(b);
    if (gate_up_.blocks) ask_for_experts();
  }

  void on_disk(const ossrun_expert_matrix& gate_up, const ossrun_expert_matrix& down,
               int64_t hidden, int64_t intermediate) {
    gate_up_ = gate_up, down_ = down;
    hidden_ = hidden, intermediate_ = intermediate;
  }

 private:
  // The disk works best with many requests at once, so all are made before the first product.
  void ask_for_experts() const {
    for (int32_t a = 0; a < groups_[0]; a++) {
      const int32_t expert = groups_[1 + 2 * a];
      ask_for_expert(gate_up_, expert, 2 * intermediate_ * hidden_);
      ask_for_expert(down_, expert, hidden_ * intermediate_);
    }
  }

  static void ask_for_expert(const ossrun_expert_matrix& w, int64_t expert, int64_t weights) {
    const int64_t blocks = weights / 2, scales = weights / kMxBlock;
    ask_disk(w.blocks + expert * blocks, blocks);
    ask_disk(w.scales + expert * scales, scales);
  }

  // The largest logits, largest first; of equal ones the lower expert. NaN never wins, unless there
  // is nothing else: an expert is named in any case.
  void choose(const float* logits, int32_t* experts, float* chosen) const {
    for (int64_t j = 0; j < top_; j++) {
      int32_t best = -1;
      for (int32_t e = 0; e < e_; e++) {
        if (std::find(experts, experts + j, e) != experts + j) continue;
        if (best < 0 || logits[e] > logits[best] || (logits[best] != logits[best])) best = e;
      }
      experts[j] = best;
      chosen[j] = logits[best];
    }
  }

  // A counting sort; groups itself holds the counts on the way. See Op in program.go. An expert's
  // slots whose rows go by tiles are its last.
  void group(const ossrun_batch& b) const {
    const int64_t slots = b.rows * top_;
    int32_t* count = groups_ + 1 + e_;  // the upper half, free until the pairs are written
    std::fill(count, count + e_, 0);
    for (int64_t i = 0; i < slots; i++) count[experts_[i]]++;
    int32_t begin = 0;
    for (int64_t e = 0; e < e_; e++) {  // counts become first places
      const int32_t n = count[e];
      count[e] = begin;
      begin += n;
    }
    for (int tiles = 0; tiles < 1 + (b.prompts != nullptr); tiles++) {
      for (int64_t i = 0; i < slots; i++) {
        if (on_tiles(b, i / top_) == (tiles != 0)) order_[count[experts_[i]]++] = int32_t(i);
      }
    }
    // Now count[e] is the end of e's slots. Pair a is written at 2a+1, 2a+2 <= e's own place
    // 1 + e_ + e, since a <= e < e_: nothing is overwritten before it was read.
    int32_t active = 0, last = 0;
    for (int32_t e = 0; e < e_; e++) {
      const int32_t end = count[e];
      if (end == last) continue;
      groups_[1 + 2 * active] = e;
      groups_[2 + 2 * active] = end;
      active++;
      last = end;
    }
    groups_[0] = active;
  }

  const Kernels* k_;
  int64_t e_, top_;
  int32_t* experts_;
  float* weights_;
  int32_t *order_, *groups_;
  const float* router_;
  ossrun_expert_matrix gate_up_ = {}, down_ = {};  // no blocks: all are in memory
  int64_t hidden_ = 0, intermediate_ = 0;
};

class QuantizeOp : public RowOp<QuantizeOp> {
 public:
  QuantizeOp(const ossrun_tape& t, ossrun_extent rows, int8_t* q, float* d, const float* x,
             int64_t width)
      : RowOp(rows, t.shape.experts_per_token), k_(t.kernels), q_(q), d_(d), x_(x), width_(width) {}

  void row(const ossrun_batch&, int64_t i) const {
    k_->quantize_q8(q_ + i * width_, d_ + i * (width_ / kMxBlock * 2), x_ + i * width_, width_);
  }

 private:
  const Kernels* k_;
  int8_t* q_;
  float* d_;
  const float* x_;
  int64_t width_;
};

// Rows of prompts as bf16, for tiles.
class RoundOp : public RowOp<RoundOp> {
 public:
  RoundOp(const ossrun_tape& t, uint16_t* y, int64_t stride, const float* x, bool per_slot,
          int64_t width, const int32_t* order)
      : RowOp(order ? OSSRUN_PER_SLOT : OSSRUN_PER_ROW, t.shape.experts_per_token),
        k_(t.kernels),
        top_(t.shape.experts_per_token),
        y_(y),
        stride_(stride),
        x_(x),
        per_slot_(per_slot),
        width_(width),
        order_(order) {}

  int64_t tasks(const ossrun_batch& b) const override { return b.prompts ? RowOp::tasks(b) : 0; }

  void row(const ossrun_batch& b, int64_t i) const {
    const int64_t slot = order_ ? order_[i] : i, row = order_ ? slot / top_ : i;
    if (!on_tiles(b, row)) return;
    k_->f32_to_bf16(y_ + i * stride_, x_ + (per_slot_ ? slot : row) * width_, width_);
  }

 private:
  const Kernels* k_;
  int64_t top_;
  uint16_t* y_;
  int64_t stride_;
  const float* x_;
  bool per_slot_;
  int64_t width_;
  const int32_t* order_;
};

// The walk that gate_up and down share: a task is some tiles of rows of the chosen experts'
// matrices, for all the slots that chose them, so each weight is read from memory once a step.
class ExpertOp : public Op {
 public:
  ExpertOp(const ossrun_tape& t, const int32_t* order, const int32_t* groups, const float* x,
           const int8_t* q, const float* d, const ossrun_rounded& bf16,
           const ossrun_expert_matrix& w, int64_t n, int64_t k, int64_t slots_per_input)
      : tape_(&t),
        k_(t.kernels),
        order_(order),
        groups_(groups),
        x_(x),
        q_(q),
        d_(d),
        bf16_(bf16),
        w_(w),
        n_(n),
        width_(k),
        slots_per_input_(slots_per_input) {}

  int64_t tasks(const ossrun_batch& b) const override { return shares(height(b)).count(); }

  void run(const ossrun_batch& b, int64_t task) const override {
    const int64_t tall = height(b), tiles = divide_up(n_, tall);
    const Shares::Range share = shares(tall)[task];
    for (int64_t i = share.begin; i < share.end; i++) {
      run_tile(b, i / tiles, i % tiles * tall, tall);
    }
  }

  // It depends on groups_, which a thread that waits must not look at: Route may be at it by then.
  Stretch first(const ossrun_batch&, int) const override { return kUnknown; }

 protected:
  // Receives the sums of rows [r0, r0+rows) for one slot; may overwrite them.
  virtual void put(int64_t slot, int64_t r0, float* sums, int64_t rows) const = 0;

  const ossrun_tape* tape_;
  const Kernels* k_;

 private:
  static constexpr int64_t kChunk = 128;  // slots whose sums wait on the stack

  int64_t height(const ossrun_batch& b) const {
    return b.rows > kFewRows ? kExpertTile : tile_height(&n_, 1, groups_[0], tape_->threads);
  }

  Shares shares(int64_t tall) const {
    return Shares(groups_[0] * divide_up(n_, tall), tape_->threads);
  }

  void run_tile(const ossrun_batch& b, int64_t a, int64_t r0, int64_t tall) const {
    const int64_t rows = std::min(tall, n_ - r0);
    const int64_t row = groups_[1 + 2 * a] * n_ + r0;  // of [experts * n, k]
    const int64_t begin = a > 0 ? groups_[2 * a] : 0, end = groups_[2 + 2 * a];
    const int32_t* first = std::partition_point(order_ + begin, order_ + end, [&](int32_t slot) {
      return !on_tiles(b, slot / tape_->shape.experts_per_token);
    });
    const int64_t tiles = bf16_.rows ? first - order_ : end;  // from here on rows go by tiles
    const uint8_t* blocks = w_.blocks + row * (width_ / 2);
    const uint8_t* scales = w_.scales + row * (width_ / kMxBlock);
    alignas(64) float tile[kChunk * kExpertTile];
    for (int64_t at = begin, count; at < end; at += count) {
      count = std::min(kChunk, (at < tiles ? tiles : end) - at);
      if (at < tiles) {
        multiply(tile, order_ + at, count, blocks, scales, rows, w_.bias + row);
      } else {
        std::fill(tile, tile + count * kExpertTile, 0.0F);
        k_->matmul_mxfp4_tiles(tile, kExpertTile, bf16_.rows + at * bf16_.stride, bf16_.stride,
                               count, blocks, scales, width_, 0, rows, w_.bias + row);
      }
      for (int64_t i = 0; i < count; i++) put(order_[at + i], r0, tile + i * kExpertTile, rows);
    }
  }

  void multiply(float* tile, const int32_t* slots, int64_t count, const uint8_t* blocks,
                const uint8_t* scales, int64_t rows, const uint16_t* bias) const {
    if (x_) {
      const float* x[kChunk];
      for (int64_t i = 0; i < count; i++) x[i] = x_ + slots[i] / slots_per_input_ * width_;
      k_->matmul_mxfp4(tile, kExpertTile, x, count, blocks, scales, width_, 0, rows, bias);
      return;
    }
    const int8_t* q[kChunk];
    const float* d[kChunk];
    for (int64_t i = 0; i < count; i++) {
      q[i] = q_ + slots[i] / slots_per_input_ * width_;
      d[i] = d_ + slots[i] / slots_per_input_ * (width_ / kMxBlock * 2);
    }
    k_->matmul_mxfp4_q8(tile, kExpertTile, q, d, count, blocks, scales, width_, 0, rows, bias);
  }

  const int32_t *order_, *groups_;
  const float* x_;
  const int8_t* q_;
  const float* d_;
  ossrun_rounded bf16_;
  ossrun_expert_matrix w_;
  int64_t n_, width_, slots_per_input_;
};

// h[slot] = SwiGLU(gate and up of the slot's row). Rows 2i and 2i+1 of the matrix are gate i and
// up i, so a tile has both halves of its pairs.
class GateUpOp : public ExpertOp {
 public:
  GateUpOp(const ossrun_tape& t, float* h, const int32_t* order, const int32_t* groups,
           const float* x, const int8_t* q, const float* d, const ossrun_rounded& bf16,
           const ossrun_expert_matrix& w, float limit)
      : ExpertOp(t, order, groups, x, q, d, bf16, w, 2 * t.shape.intermediate, t.shape.hidden,
                 t.shape.experts_per_token),
        h_(h),
        width_(t.shape.intermediate),
        limit_(limit) {}

 protected:
  void put(int64_t slot, int64_t r0, float* sums, int64_t rows) const override {
    k_->swiglu(h_ + slot * width_ + r0 / 2, sums, rows / 2, limit_);
  }

 private:
  float* h_;
  int64_t width_;
  float limit_;
};

// y[slot] = down(h[slot]).
class DownOp : public ExpertOp {
 public:
  DownOp(const ossrun_tape& t, float* y, const int32_t* order, const int32_t* groups,
         const float* h, const int8_t* q, const float* d, const ossrun_rounded& bf16,
         const ossrun_expert_matrix& w)
      : ExpertOp(t, order, groups, h, q, d, bf16, w, t.shape.hidden, t.shape.intermediate, 1),
        y_(y),
        width_(t.shape.hidden) {}

 protected:
  void put(int64_t slot, int64_t r0, float* sums, int64_t rows) const override {
    std::memcpy(y_ + slot * width_ + r0, sums, rows * sizeof(float));
  }

 private:
  float* y_;
  int64_t width_;
};

// x[row] += the weighted sum of its slots, in the order of the choices: the same for every batch.
class CombineOp : public RowOp<CombineOp> {
 public:
  CombineOp(const ossrun_tape& t, float* x, const float* y, const float* weights)
      : RowOp(OSSRUN_PER_ROW, 0),
        k_(t.kernels),
        hidden_(t.shape.hidden),
        top_(t.shape.experts_per_token),
        x_(x),
        y_(y),
        weights_(weights) {}

  void row(const ossrun_batch&, int64_t i) const {
    for (int64_t j = i * top_; j < (i + 1) * top_; j++) {
      k_->axpy(x_ + i * hidden_, weights_[j], y_ + j * hidden_, hidden_);
    }
  }

 private:
  const Kernels* k_;
  int64_t hidden_, top_;
  float* x_;
  const float *y_, *weights_;
};

}  // namespace
}  // namespace ossrun

using namespace ossrun;

int ossrun_route(ossrun_tape* t, int32_t* experts, float* weights, int32_t* order, int32_t* groups,
                 const float* router) {
  return append(t, RouteOp(*t, experts, weights, order, groups, router));
}

void ossrun_on_disk(ossrun_tape* t, const ossrun_expert_matrix* gate_up,
                    const ossrun_expert_matrix* down) {
  static_cast<RouteOp*>(t->ops.back().get())
      ->on_disk(*gate_up, *down, t->shape.hidden, t->shape.intermediate);
}

int ossrun_quantize(ossrun_tape* t, ossrun_extent rows, int8_t* q, float* d, const float* x,
                    int64_t width) {
  return append(t, QuantizeOp(*t, rows, q, d, x, width));
}

int ossrun_round(ossrun_tape* t, uint16_t* y, int64_t stride, const float* x, int per_slot,
                 int64_t width, const int32_t* order) {
  return append(t, RoundOp(*t, y, stride, x, per_slot != 0, width, order));
}

int ossrun_gate_up(ossrun_tape* t, float* h, const int32_t* order, const int32_t* groups,
                   const float* x, const int8_t* q, const float* d, ossrun_rounded bf16,
                   const ossrun_expert_matrix* w, float limit) {
  return append(t, GateUpOp(*t, h, order, groups, x, q, d, bf16, *w, limit));
}

int ossrun_down(ossrun_tape* t, float* y, const int32_t* order, const int32_t* groups,
                const float* h, const int8_t* q, const float* d, ossrun_rounded bf16,
                const ossrun_expert_matrix* w) {
  return append(t, DownOp(*t, y, order, groups, h, q, d, bf16, *w));
}

int ossrun_combine(ossrun_tape* t, float* x, const float* y, const float* weights) {
  return append(t, CombineOp(*t, x, y, weights));
}
