// The kernels as plain loops: one statement of what each computes, on any machine.
//
// This is the reference on hosts without AVX2 and the yardstick in the conformance suite, so it
// favours being obviously right. Every sum runs over k in order into one float32, so a result
// never depends on the batch. Floating-point contraction is off: the same bits on every compiler.
#include "kernels.h"

#include <math.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace {

// The value of an E2M1 code, and twice that.
const float kE2M1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};
const int8_t kTwiceE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float bf16(const uint16_t* p) {
  uint16_t half;
  memcpy(&half, p, sizeof half);
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// 2^(scale - 127) as float32: the exponent field itself, except that 0 is the subnormal 2^-127.
float scale_of(uint8_t scale) {
  const uint32_t bits = scale == 0 ? 0x00400000u : static_cast<uint32_t>(scale) << 23;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

int8_t twice_e2m1(const uint8_t* block, int64_t i) {
  const uint8_t pair = block[i / 2];
  return kTwiceE2M1[i % 2 == 0 ? pair & 15 : pair >> 4];
}

// The products read a block of a row's weights once for all tokens; y has their sums so far.
void begin_row(float* y, int64_t ldy, int64_t n, int64_t r) {
  for (int64_t t = 0; t < n; t++) y[t * ldy + r] = 0;
}

void end_row(float* y, int64_t ldy, int64_t n, int64_t r, const uint16_t* bias) {
  if (bias == nullptr) return;
  for (int64_t t = 0; t < n; t++) y[t * ldy + r] += bf16(bias + r);
}

// Adds to y what a block of float32 weights makes of x.
void add_block(float* y, const float* weights, const float* x, int64_t columns) {
  float sum = *y;
  for (int64_t i = 0; i < columns; i++) sum += weights[i] * x[i];
  *y = sum;
}

void matmul_bf16(float* y, int64_t ldy, const float* x, int64_t ldx, int64_t n, const uint16_t* w,
                 int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  for (int64_t r = r0; r < r1; r++) {
    begin_row(y, ldy, n, r);
    for (int64_t c = 0; c < k; c += kMxBlock) {
      const int64_t left = k - c, columns = left < kMxBlock ? left : int64_t{kMxBlock};
      float weights[kMxBlock];
      for (int64_t i = 0; i < columns; i++) weights[i] = bf16(w + r * k + c + i);
      for (int64_t t = 0; t < n; t++) add_block(y + t * ldy + r, weights, x + t * ldx + c, columns);
    }
    end_row(y, ldy, n, r, bias);
  }
}

void matmul_mxfp4(float* y, int64_t ldy, const float* const* x, int64_t n, const uint8_t* blocks,
                  const uint8_t* scales, int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  const int64_t nb = k / kMxBlock;
  for (int64_t r = r0; r < r1; r++) {
    begin_row(y, ldy, n, r);
    for (int64_t b = 0; b < nb; b++) {
      const uint8_t* block = blocks + (r * nb + b) * (kMxBlock / 2);
      const float scale = scale_of(scales[r * nb + b]);
      float weights[kMxBlock];
      for (int64_t i = 0; i < kMxBlock / 2; i++) {
        weights[2 * i] = kE2M1[block[i] & 15] * scale;
        weights[2 * i + 1] = kE2M1[block[i] >> 4] * scale;
      }
      for (int64_t t = 0; t < n; t++)
        add_block(y + t * ldy + r, weights, x[t] + b * kMxBlock, kMxBlock);
    }
    end_row(y, ldy, n, r, bias);
  }
}

// Where column i of a block stands among its 8-bit activations, and among dense 8-bit weights.
int64_t q8_place(int64_t i) { return i / 8 * 8 + i % 2 * 4 + i % 8 / 2; }

float best_q8_scale(const float* x, float plain) {
  float best = plain, least = INFINITY;
  for (int c = 0; c < kQ8Scales; c++) {
    const float scale = plain * (1 + kQ8ScaleStep * static_cast<float>(c));
    float lost = 0;
    for (int64_t i = 0; i < kMxBlock; i++) {
      const float rest = x[i] / scale - rintf(x[i] / scale);
      lost += rest * rest;
    }
    if (lost * scale * scale < least) {
      least = lost * scale * scale;
      best = scale;
    }
  }
  return best;
}

// d has the scale of a block and a second number that this table does not use.
void quantize_q8(int8_t* q, float* d, const float* x, int64_t k) {
  for (int64_t b = 0; b < k / kMxBlock; b++, x += kMxBlock, q += kMxBlock, d += 2) {
    float largest = 0;
    for (int64_t i = 0; i < kMxBlock; i++) largest = fmaxf(largest, fabsf(x[i]));
    d[0] = largest / 127.0f;
    d[1] = 0;
    if (d[0] < kLeastQ8Scale) {
      d[0] = 0;
      memset(q, 0, kMxBlock);
      continue;
    }
    d[0] = best_q8_scale(x, d[0]);
    for (int64_t i = 0; i < kMxBlock; i++) {
      const float rounded = rintf(x[i] / d[0]);
      q[q8_place(i)] = static_cast<int8_t>(fminf(fmaxf(rounded, -127.0f), 127.0f));
    }
  }
}

void matmul_mxfp4_q8(float* y, int64_t ldy, const int8_t* const* q, const float* const* d,
                     int64_t n, const uint8_t* blocks, const uint8_t* scales, int64_t k, int64_t r0,
                     int64_t r1, const uint16_t* bias) {
  const int64_t nb = k / kMxBlock;
  for (int64_t r = r0; r < r1; r++) {
    begin_row(y, ldy, n, r);
    for (int64_t b = 0; b < nb; b++) {
      const uint8_t* block = blocks + (r * nb + b) * (kMxBlock / 2);
      const float scale = scale_of(scales[r * nb + b]);
      int8_t codes[kMxBlock];
      for (int64_t i = 0; i < kMxBlock; i++) codes[q8_place(i)] = twice_e2m1(block, i);
      for (int64_t t = 0; t < n; t++) {
        const int8_t* inputs = q[t] + b * kMxBlock;
        int32_t twice = 0;
        for (int64_t i = 0; i < kMxBlock; i++) twice += codes[i] * inputs[i];
        y[t * ldy + r] += scale * (0.5f * d[t][2 * b]) * static_cast<float>(twice);
      }
    }
    end_row(y, ldy, n, r, bias);
  }
}

void quantize_q12(int16_t* q, float* d, const float* x, int64_t k) {
  for (int64_t b = 0; b < k / kMxBlock; b++, x += kMxBlock, q += kMxBlock) {
    float largest = 0;
    for (int64_t i = 0; i < kMxBlock; i++) largest = fmaxf(largest, fabsf(x[i]));
    d[b] = largest / 2047.0f;
    if (d[b] < 0x1p-118f) {  // the vector tables divide it by 256: it stays normal there
      d[b] = 0;
      memset(q, 0, kMxBlock * sizeof *q);
      continue;
    }
    for (int64_t i = 0; i < kMxBlock; i++) {
      q[i] = static_cast<int16_t>(fminf(fmaxf(rintf(x[i] / d[b]), -2047.0f), 2047.0f));
    }
  }
}

// Dense 8-bit weights with what quantize_q12 or quantize_q8 made: so many numbers of d a block, and
// column i of a block at place(i).
template <class Q, int kNumbers, class Place>
void matmul_dense(float* y, int64_t ldy, const Q* const* q, const float* const* d, int64_t n,
                  const uint8_t* w, int64_t k, int64_t r0, int64_t r1, const uint16_t* bias,
                  Place place) {
  const int64_t block_bytes = kQ8GroupRows * (2 + kMxBlock);
  for (int64_t r = r0; r < r1; r++) {
    const uint8_t* group = w + r / kQ8GroupRows * (k / kMxBlock) * block_bytes;
    const int64_t in_group = r % kQ8GroupRows;
    begin_row(y, ldy, n, r);
    for (int64_t b = 0; b < k / kMxBlock; b++) {
      const uint8_t* block = group + b * block_bytes;
      uint16_t scale;
      memcpy(&scale, block + 2 * in_group, sizeof scale);
      int8_t weights[kMxBlock];
      for (int64_t i = 0; i < kMxBlock; i++) {
        const int64_t at = q8_place(i);
        const uint8_t* four = block + 2 * kQ8GroupRows + (at / 4 * kQ8GroupRows + in_group) * 4;
        weights[i] = static_cast<int8_t>(four[at % 4]);
      }
      for (int64_t t = 0; t < n; t++) {
        const Q* inputs = q[t] + b * kMxBlock;
        int32_t whole = 0;
        for (int64_t i = 0; i < kMxBlock; i++) whole += weights[i] * inputs[place(i)];
        y[t * ldy + r] += bf16(&scale) * d[t][kNumbers * b] * static_cast<float>(whole);
      }
    }
    end_row(y, ldy, n, r, bias);
  }
}

void matmul_q8(float* y, int64_t ldy, const int16_t* const* q, const float* const* d, int64_t n,
               const uint8_t* w, int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  matmul_dense<int16_t, 1>(y, ldy, q, d, n, w, k, r0, r1, bias, [](int64_t i) { return i; });
}

void matmul_q8_q8(float* y, int64_t ldy, const int8_t* const* q, const float* const* d, int64_t n,
                  const uint8_t* w, int64_t k, int64_t r0, int64_t r1, const uint16_t* bias) {
  matmul_dense<int8_t, 2>(y, ldy, q, d, n, w, k, r0, r1, bias, q8_place);
}

void rmsnorm(float* y, const float* x, const uint16_t* w, int64_t k, float eps) {
  double squares = 0;
  for (int64_t i = 0; i < k; i++) squares += static_cast<double>(x[i]) * x[i];
  const float scale = 1.0f / sqrtf(static_cast<float>(squares / static_cast<double>(k)) + eps);
  for (int64_t i = 0; i < k; i++) y[i] = x[i] * scale * bf16(w + i);
}

void swiglu(float* y, const float* gate_up, int64_t n, float limit) {
  for (int64_t i = 0; i < n; i++) {
    const float gate = fminf(gate_up[2 * i], limit);
    const float up = fminf(fmaxf(gate_up[2 * i + 1], -limit), limit);
    y[i] = gate / (1.0f + expf(-1.702f * gate)) * (up + 1.0f);
  }
}

void rope(float* x, int64_t heads, int64_t dim, const float* cosine, const float* sine) {
  const int64_t half = dim / 2;
  for (int64_t h = 0; h < heads; h++, x += dim) {
    for (int64_t i = 0; i < half; i++) {
      const float a = x[i], b = x[i + half];
      x[i] = a * cosine[i] - b * sine[i];
      x[i + half] = b * cosine[i] + a * sine[i];
    }
  }
}

void bf16_to_f32(float* y, const uint16_t* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = bf16(x + i);
}

void f32_to_bf16(uint16_t* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const uint32_t rounded = nan ? bits | 0x00400000u : bits + 0x7fffu + ((bits >> 16) & 1);
    const uint16_t half = static_cast<uint16_t>(rounded >> 16);
    memcpy(y + i, &half, sizeof half);
  }
}

// The value of an e4m3 code: 4 bits of exponent with bias 7, 3 of mantissa.
float f8(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const float size = exponent == 0 ? static_cast<float>(mantissa) * 0x1p-9f
                                   : static_cast<float>(8 + mantissa) *
                                         scale_of(static_cast<uint8_t>(exponent - 10 + 127));
  return code & 0x80 ? -size : size;
}

// The nearest code, found by looking: the first whose upper neighbour is farther, or as far and
// odd.
void f32_to_f8(uint8_t* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const float size = x[i] == x[i] ? fminf(fabsf(x[i]), 448.0f) : 448.0f;
    uint8_t code = 0;
    while (code < 0x7e) {
      const float down = size - f8(code), up = f8(static_cast<uint8_t>(code + 1)) - size;
      if (down < up || (down == up && code % 2 == 0)) break;
      code++;
    }
    y[i] = static_cast<uint8_t>(signbit(x[i]) ? code | 0x80 : code);
  }
}

void add(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

void axpy(float* y, float a, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

void softmax(float* x, int64_t n) {
  float largest = x[0], sum = 0;
  for (int64_t i = 1; i < n; i++) largest = fmaxf(largest, x[i]);
  for (int64_t i = 0; i < n; i++) sum += x[i] = expf(x[i] - largest);
  for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

void attention_begin(float* m, float* l, float* acc, int64_t group, int64_t dim,
                     const uint16_t* sinks) {
  for (int64_t g = 0; g < group; g++) {
    m[g] = sinks == nullptr ? -INFINITY : bf16(sinks + g);
    l[g] = sinks == nullptr ? 0.0f : 1.0f;
  }
  for (int64_t i = 0; i < group * dim; i++) acc[i] = 0;
}

float element(const float* p) { return *p; }
float element(const uint16_t* p) { return bf16(p); }
float element(const uint8_t* p) { return f8(*p); }

// One token at a time: rescale the state where the new logit is the largest so far, then add.
template <class T>
void attention_page(const AttentionRow* rows, int64_t n, int64_t group, int64_t dim, float scale,
                    const T* keys, const T* values, int64_t stride, const void*, int64_t) {
  for (const AttentionRow* row = rows; row < rows + n; row++) {
    for (int64_t g = 0; g < group; g++) {
      const float* q = row->q + g * dim;
      float* acc = row->acc + g * dim;
      for (int64_t t = row->t0; t < row->t1; t++) {
        float logit = 0;
        for (int64_t i = 0; i < dim; i++) logit += q[i] * element(keys + t * stride + i);
        logit *= scale;
        const float largest = fmaxf(row->m[g], logit);
        const float keep = expf(row->m[g] - largest), weight = expf(logit - largest);
        row->m[g] = largest;
        row->l[g] = row->l[g] * keep + weight;
        for (int64_t i = 0; i < dim; i++) {
          acc[i] = acc[i] * keep + weight * element(values + t * stride + i);
        }
      }
    }
  }
}

void attention_end(float* y, const float* l, const float* acc, int64_t group, int64_t dim) {
  for (int64_t g = 0; g < group; g++) {
    const float inverse = l[g] == 0 ? 0.0f : 1.0f / l[g];
    for (int64_t i = 0; i < dim; i++) y[g * dim + i] = acc[g * dim + i] * inverse;
  }
}

uint64_t read_all(const uint8_t* p, int64_t bytes) {
  uint64_t sum = 0;
  for (int64_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy(&word, p + i, sizeof word);
    sum += word;
  }
  return sum;
}

int64_t multiply_peak(int64_t rounds) {
  volatile int32_t kept;
  int32_t sums[4] = {1, 2, 3, 4};
  for (int64_t i = 0; i < rounds; i++) {
    for (int32_t& sum : sums) sum += static_cast<int8_t>(sum) * static_cast<int8_t>(i);
  }
  kept = sums[0] + sums[1] + sums[2] + sums[3];
  (void)kept;
  return rounds * 8;
}

const Kernels kTable = {
    "scalar",
    matmul_bf16,
    nullptr,
    matmul_mxfp4,
    quantize_q8,
    matmul_mxfp4_q8,
    quantize_q12,
    matmul_q8,
    matmul_q8_q8,
    nullptr,
    nullptr,
    rmsnorm,
    swiglu,
    rope,
    bf16_to_f32,
    f32_to_bf16,
    f32_to_f8,
    add,
    axpy,
    softmax,
    attention_begin,
    attention_page<float>,
    attention_page<uint16_t>,
    attention_page<uint8_t>,
    attention_end,
    read_all,
    multiply_peak,
};

}  // namespace

extern "C" const Kernels* kernels_scalar(void) { return &kTable; }
