// What AMD's vector instructions compute of a lane. Subnormals are kept, as the kernels'
// descriptors say (a test of the parser wants it so), but where the ISA's documents flush them:
// reciprocal, square root and power of two. Those are rounded to nearest here; a card may be off by
// one unit.
#include <math.h>
#include <algorithm>
#include <map>
#include "amd.h"
#include "ptx_matrix.h"

namespace amd {
namespace {

using ptx::bits;
using ptx::f32;
using ptx::f64;
typedef Values V;

uint32_t lo(uint64_t v) { return static_cast<uint32_t>(v); }
int32_t si(uint64_t v) { return static_cast<int32_t>(v); }
int64_t sq(uint64_t v) { return static_cast<int64_t>(v); }
uint64_t word(int64_t v) { return lo(static_cast<uint64_t>(v)); }
uint32_t u24(uint64_t v) { return v & 0xffffff; }
int64_t s24(uint64_t v) { return si(v << 8) >> 8; }
float flushed(float v) { return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v; }

// Of a number and NaN the number; of zeros the one with the sign.
float least(float a, float b) {
  if (a != a || b != b) return a != a ? b : a;
  return a < b || (a == b && signbit(a)) ? a : b;
}
float most(float a, float b) {
  if (a != a || b != b) return a != a ? b : a;
  return a > b || (a == b && !signbit(a)) ? a : b;
}

template <class T>
T as(uint64_t v) {
  if constexpr (std::is_same<T, float>::value)
    return f32(v);
  else
    return static_cast<T>(v);
}
enum Test { kLt, kEq, kLe, kGt, kLg, kGe, kO, kU, kNge, kNlg, kNgt, kNle, kNeq, kNlt };
template <class T, int C>
uint64_t compare(Values& x) {
  const T a = as<T>(x.a), b = as<T>(x.b);
  switch (C) {
    case kLt:
      return a < b;
    case kEq:
      return a == b;
    case kLe:
      return a <= b;
    case kGt:
      return a > b;
    case kLg:
      return a < b || a > b;
    case kGe:
      return a >= b;
    case kO:
      return a == a && b == b;
    case kU:
      return a != a || b != b;
    case kNge:
      return !(a >= b);
    case kNlg:
      return !(a < b || a > b);
    case kNgt:
      return !(a > b);
    case kNle:
      return !(a <= b);
    case kNeq:
      return !(a == b);
    default:
      return !(a < b);
  }
}

uint64_t is_of_class(Values& x) {
  const float v = f32(x.a);
  const bool negative = signbit(v), quiet = x.a >> 22 & 1;
  int n;
  if (v != v)
    n = quiet ? 1 : 0;
  else if (isinf(v))
    n = negative ? 2 : 9;
  else if (v == 0)
    n = negative ? 5 : 6;
  else if (fabsf(v) < 0x1p-126f)
    n = negative ? 4 : 7;
  else
    n = negative ? 3 : 8;
  return x.b >> n & 1;
}

// To an integer, toward zero, the nearest that there is; NaN is 0.
template <class T>
uint64_t truncated(double v) {
  if (v != v) return 0;
  const double low = static_cast<double>(std::numeric_limits<T>::min()),
               high = static_cast<double>(std::numeric_limits<T>::max());
  return lo(static_cast<uint64_t>(static_cast<int64_t>(static_cast<T>(v <= low    ? low
                                                                      : v >= high ? high
                                                                                  : v))));
}

int exponent(float v) { return static_cast<int>(bits(v) >> 23 & 255); }
bool subnormal(float v) { return v != 0 && fabsf(v) < 0x1p-126f; }

// The three steps of a division: operands are scaled where a quotient, a reciprocal or what is left
// of them would leave float's range, and the bit says that the quotient is to be scaled back.
uint64_t div_scale(Values& x) {
  const float a = f32(x.a), b = f32(x.b), c = f32(x.c);
  x.bit = false;
  if (b == 0 || c == 0) return bits(NAN);
  if (exponent(c) - exponent(b) >= 96) {
    x.bit = true;
    return a == b ? bits(ldexpf(a, 64)) : x.a;
  }
  if (subnormal(b)) return bits(ldexpf(a, 64));
  const bool reciprocal = subnormal(1 / b), quotient = subnormal(c / b);
  if (reciprocal && quotient) {
    x.bit = true;
    return a == b ? bits(ldexpf(a, 64)) : x.a;
  }
  if (reciprocal) return bits(ldexpf(a, -64));
  if (quotient) {
    x.bit = true;
    return a == c ? bits(ldexpf(a, 64)) : x.a;
  }
  return exponent(c) <= 23 ? bits(ldexpf(a, 64)) : x.a;
}
uint64_t div_fmas(Values& x) {
  const float v = fmaf(f32(x.a), f32(x.b), f32(x.c));
  return bits(!x.bit ? v : ldexpf(v, exponent(f32(x.c)) > 127 ? 64 : -64));
}
uint64_t div_fixup(Values& x) {
  const float a = f32(x.a), b = f32(x.b), c = f32(x.c);
  const float sign = signbit(b) != signbit(c) ? -1.0f : 1.0f;
  if (c != c || b != b) return bits(NAN);
  if ((b == 0 && c == 0) || (isinf(b) && isinf(c))) return bits(NAN);
  if (b == 0 || isinf(c)) return bits(sign * INFINITY);
  if (c == 0 || isinf(b)) return bits(sign * 0.0f);
  if (exponent(c) - exponent(b) < -150) return bits(sign * 0.0f);
  return bits(sign * fabsf(a));
}

uint64_t dot4(uint64_t a, uint64_t b, uint64_t sum) {
  for (int k = 0; k < 4; k++)
    sum += static_cast<uint64_t>(int64_t{int8_t(a >> k * 8)} * int8_t(b >> k * 8));
  return lo(sum);
}
// Any function of three bits: its values, of 000 first.
uint64_t any_of_three(Values& x) {
  uint64_t v = 0;
  for (int n = 0; n < 32; n++) {
    const uint64_t at = (x.a >> n & 1) << 2 | (x.b >> n & 1) << 1 | (x.c >> n & 1);
    v |= (x.table >> at & 1) << n;
  }
  return v;
}
uint64_t permuted(Values& x) {
  const uint64_t all = x.a << 32 | x.b;
  uint64_t v = 0;
  for (int k = 0; k < 4; k++) {
    const unsigned s = x.c >> k * 8 & 255;
    uint64_t byte = 0;
    if (s < 8)
      byte = all >> s * 8 & 255;
    else if (s < 12)
      byte = all >> (s * 2 - 15) * 8 >> 7 & 1 ? 255 : 0;
    else if (s > 12)
      byte = 255;
    v |= byte << k * 8;
  }
  return v;
}
uint64_t extracted(Values& x, bool sign) {
  const int at = x.b & 31, n = x.c & 31;
  if (n == 0) return 0;
  const int top = std::min(at + n, 32);
  const uint64_t moved = x.a << (64 - top);
  return lo(sign ? uint64_t(sq(moved) >> (64 - top + at)) : moved >> (64 - top + at));
}
uint64_t carried(Values& x, uint64_t sum) {
  x.bit = sum >> 32 != 0;
  return lo(sum);
}

std::map<std::string, Operation> table() {
  std::map<std::string, Operation> all = {
      {"v_mov_b32", {"i=i", [](V& x) { return x.a; }}},
      {"v_mov_b64", {"q=q", [](V& x) { return x.a; }}},
      {"v_mov_b16", {"h=h", [](V& x) { return x.a; }}},
      {"v_not_b32", {"i=i", [](V& x) { return uint64_t{lo(~x.a)}; }}},
      {"v_and_b16", {"h=hh", [](V& x) { return x.a & x.b; }}},
      {"v_add_u16", {"h=hh", [](V& x) { return x.a + x.b & 0xffff; }}},
      {"v_and_b32", {"i=ii", [](V& x) { return x.a & x.b; }}},
      {"v_or_b32", {"i=ii", [](V& x) { return x.a | x.b; }}},
      {"v_xor_b32", {"i=ii", [](V& x) { return x.a ^ x.b; }}},
      {"v_or3_b32", {"i=iii", [](V& x) { return x.a | x.b | x.c; }}},
      {"v_and_or_b32", {"i=iii", [](V& x) { return (x.a & x.b) | x.c; }}},
      {"v_med3_u32",
       {"i=iii",
        [](V& x) {
          const uint64_t low = std::min(x.a, x.b), high = std::max(x.a, x.b);
          return std::max(low, std::min(high, x.c));
        }}},
      {"v_bfm_b32",
       {"i=ii", [](V& x) { return uint64_t{lo(((1u << (x.a & 31)) - 1) << (x.b & 31))}; }}},
      {"v_bfi_b32", {"i=iii", [](V& x) { return (x.a & x.b) | (~x.a & x.c); }}},
      {"v_xad_u32", {"i=iii", [](V& x) { return uint64_t{lo((x.a ^ x.b) + x.c)}; }}},
      {"v_bitop3_b32", {"i=iii", any_of_three}},
      {"v_bitop3_b16", {"h=hhh", any_of_three}},
      {"v_perm_b32", {"i=iii", permuted}},
      {"v_alignbit_b32",
       {"i=iii", [](V& x) { return uint64_t{lo((x.a << 32 | x.b) >> (x.c & 31))}; }}},
      {"v_bfe_u32", {"i=iii", [](V& x) { return extracted(x, false); }}},
      {"v_bfe_i32", {"i=iii", [](V& x) { return extracted(x, true); }}},
      {"v_bfrev_b32", {"i=i", [](V& x) { return scalar_operation("s_brev_b32")->of(x); }}},
      {"v_lshlrev_b16", {"h=hh", [](V& x) { return x.b << (x.a & 15) & 0xffff; }}},
      {"v_lshrrev_b16", {"h=hh", [](V& x) { return x.b >> (x.a & 15); }}},
      {"v_lshlrev_b32", {"i=ii", [](V& x) { return uint64_t{lo(x.b << (x.a & 31))}; }}},
      {"v_lshrrev_b32", {"i=ii", [](V& x) { return x.b >> (x.a & 31); }}},
      {"v_ashrrev_i32", {"i=ii", [](V& x) { return word(si(x.b) >> (x.a & 31)); }}},
      {"v_lshlrev_b64", {"q=iq", [](V& x) { return x.b << (x.a & 63); }}},
      {"v_lshrrev_b64", {"q=iq", [](V& x) { return x.b >> (x.a & 63); }}},
      {"v_ashrrev_i64", {"q=iq", [](V& x) { return uint64_t(sq(x.b) >> (x.a & 63)); }}},
      {"v_lshl_or_b32", {"i=iii", [](V& x) { return lo(x.a << (x.b & 31)) | x.c; }}},
      {"v_lshl_add_u32", {"i=iii", [](V& x) { return uint64_t{lo((x.a << (x.b & 31)) + x.c)}; }}},
      {"v_add_lshl_u32", {"i=iii", [](V& x) { return uint64_t{lo((x.a + x.b) << (x.c & 31))}; }}},
      {"v_lshl_add_u64", {"q=qiq", [](V& x) { return (x.a << (x.b & 7)) + x.c; }}},
      {"v_add_u32", {"i=ii", [](V& x) { return uint64_t{lo(x.a + x.b)}; }}},
      {"v_sub_u32", {"i=ii", [](V& x) { return uint64_t{lo(x.a - x.b)}; }}},
      {"v_subrev_u32", {"i=ii", [](V& x) { return uint64_t{lo(x.b - x.a)}; }}},
      {"v_add3_u32", {"i=iii", [](V& x) { return uint64_t{lo(x.a + x.b + x.c)}; }}},
      {"v_add_co_u32", {"im=ii", [](V& x) { return carried(x, x.a + x.b); }}},
      {"v_addc_co_u32", {"im=iim", [](V& x) { return carried(x, x.a + x.b + x.bit); }}},
      {"v_sub_co_u32", {"im=ii", [](V& x) { return carried(x, x.a - x.b); }}},
      {"v_subrev_co_u32", {"im=ii", [](V& x) { return carried(x, x.b - x.a); }}},
      {"v_subb_co_u32", {"im=iim", [](V& x) { return carried(x, x.a - x.b - x.bit); }}},
      {"v_subbrev_co_u32", {"im=iim", [](V& x) { return carried(x, x.b - x.a - x.bit); }}},
      {"v_mul_lo_u32", {"i=ii", [](V& x) { return uint64_t{lo(x.a * x.b)}; }}},
      {"v_mul_hi_u32", {"i=ii", [](V& x) { return x.a * x.b >> 32; }}},
      {"v_mul_hi_i32", {"i=ii", [](V& x) { return word(int64_t{si(x.a)} * si(x.b) >> 32); }}},
      {"v_mul_i32_i24",
       {"i=ii",
        [](V& x) {
          const int64_t a = si(lo(x.a << 8)) >> 8, b = si(lo(x.b << 8)) >> 8;
          return uint64_t{lo(static_cast<uint64_t>(a * b))};
        }}},
      {"v_mul_u32_u24", {"i=ii", [](V& x) { return uint64_t{lo(uint64_t{u24(x.a)} * u24(x.b))}; }}},
      {"v_mul_hi_u32_u24", {"i=ii", [](V& x) { return uint64_t{u24(x.a)} * u24(x.b) >> 32; }}},
      {"v_mad_u32_u24",
       {"i=iii", [](V& x) { return uint64_t{lo(uint64_t{u24(x.a)} * u24(x.b) + x.c)}; }}},
      {"v_mad_i32_i24", {"i=iii", [](V& x) { return word(s24(x.a) * s24(x.b) + si(x.c)); }}},
      {"v_mad_u64_u32",
       {"qm=iiq",
        [](V& x) {
          const uint64_t product = x.a * x.b;
          x.bit = product + x.c < product;
          return product + x.c;
        }}},
      {"v_mad_i64_i32",
       {"qm=iiq",
        [](V& x) {
          int64_t sum;
          x.bit = __builtin_add_overflow(int64_t{si(x.a)} * si(x.b), sq(x.c), &sum);
          return static_cast<uint64_t>(sum);
        }}},
      {"v_min3_i32", {"i=iii", [](V& x) { return word(std::min({si(x.a), si(x.b), si(x.c)})); }}},
      {"v_min_i32", {"i=ii", [](V& x) { return word(std::min(si(x.a), si(x.b))); }}},
      {"v_max_i32", {"i=ii", [](V& x) { return word(std::max(si(x.a), si(x.b))); }}},
      {"v_min_u32", {"i=ii", [](V& x) { return std::min(x.a, x.b); }}},
      {"v_max_u32", {"i=ii", [](V& x) { return std::max(x.a, x.b); }}},
      {"v_max3_u32", {"i=iii", [](V& x) { return std::max(std::max(x.a, x.b), x.c); }}},
      {"v_mbcnt_lo_u32_b32",
       {"i=ii",
        [](V& x) {
          const uint64_t before = x.lane < 32 ? (uint64_t{1} << x.lane) - 1 : 0xffffffff;
          return x.b + uint64_t(__builtin_popcountll(x.a & before));
        }}},
      {"v_mbcnt_hi_u32_b32",
       {"i=ii",
        [](V& x) {
          const uint64_t before = x.lane > 32 ? (uint64_t{1} << (x.lane - 32)) - 1 : 0;
          return x.b + uint64_t(__builtin_popcountll(x.a & before));
        }}},
      {"v_dot4c_i32_i8", {"i=ii", [](V& x) { return dot4(x.a, x.b, x.old); }}},
      {"v_dot4_i32_iu8", {"i=iii", [](V& x) { return dot4(x.a, x.b, x.c); }}},  // both signed
      {"v_cndmask_b32", {"i=iim", [](V& x) { return x.bit ? x.b : x.a; }}},
      {"v_add_f32", {"i=ii", [](V& x) { return bits(f32(x.a) + f32(x.b)); }}},
      {"v_sub_f32", {"i=ii", [](V& x) { return bits(f32(x.a) - f32(x.b)); }}},
      {"v_subrev_f32", {"i=ii", [](V& x) { return bits(f32(x.b) - f32(x.a)); }}},
      {"v_mul_f32", {"i=ii", [](V& x) { return bits(f32(x.a) * f32(x.b)); }}},
      {"v_fma_f32", {"i=iii", [](V& x) { return bits(fmaf(f32(x.a), f32(x.b), f32(x.c))); }}},
      {"v_fmaak_f32", {"i=iii", [](V& x) { return bits(fmaf(f32(x.a), f32(x.b), f32(x.c))); }}},
      {"v_fmamk_f32", {"i=iii", [](V& x) { return bits(fmaf(f32(x.a), f32(x.b), f32(x.c))); }}},
      {"v_fmac_f32", {"i=ii", [](V& x) { return bits(fmaf(f32(x.a), f32(x.b), f32(x.old))); }}},
      {"v_max_f32", {"i=ii", [](V& x) { return bits(most(f32(x.a), f32(x.b))); }}},
      {"v_min_f32", {"i=ii", [](V& x) { return bits(least(f32(x.a), f32(x.b))); }}},
      {"v_max3_f32",
       {"i=iii", [](V& x) { return bits(most(most(f32(x.a), f32(x.b)), f32(x.c))); }}},
      {"v_maxmin_f32",
       {"i=iii", [](V& x) { return bits(least(most(f32(x.a), f32(x.b)), f32(x.c))); }}},
      {"v_floor_f32", {"i=i", [](V& x) { return bits(floorf(f32(x.a))); }}},
      {"v_trunc_f32", {"i=i", [](V& x) { return bits(truncf(f32(x.a))); }}},
      {"v_rcp_f32", {"i=i", [](V& x) { return bits(flushed(1 / flushed(f32(x.a)))); }}},
      {"v_sqrt_f32", {"i=i", [](V& x) { return bits(sqrtf(flushed(f32(x.a)))); }}},
      {"v_exp_f32", {"i=i", [](V& x) { return bits(flushed(exp2f(flushed(f32(x.a))))); }}},
      {"v_div_scale_f32", {"im=iii", div_scale}},
      {"v_div_fmas_f32", {"i=iiim", div_fmas}},
      {"v_div_fixup_f32", {"i=iii", div_fixup}},
      {"v_cvt_f32_i32", {"i=i", [](V& x) { return bits(static_cast<float>(si(x.a))); }}},
      {"v_cvt_f32_u32", {"i=i", [](V& x) { return bits(static_cast<float>(lo(x.a))); }}},
      {"v_cvt_f32_ubyte0", {"i=i", [](V& x) { return bits(static_cast<float>(lo(x.a) & 255)); }}},
      {"v_cvt_f32_ubyte1",
       {"i=i", [](V& x) { return bits(static_cast<float>(lo(x.a) >> 8 & 255)); }}},
      {"v_cvt_f32_ubyte2",
       {"i=i", [](V& x) { return bits(static_cast<float>(lo(x.a) >> 16 & 255)); }}},
      {"v_cvt_f32_ubyte3",
       {"i=i", [](V& x) { return bits(static_cast<float>(lo(x.a) >> 24 & 255)); }}},
      {"v_cvt_i32_f32", {"i=i", [](V& x) { return truncated<int32_t>(f32(x.a)); }}},
      {"v_cvt_u32_f32", {"i=i", [](V& x) { return truncated<uint32_t>(f32(x.a)); }}},
      {"v_cvt_u32_f64", {"i=d", [](V& x) { return truncated<uint32_t>(f64(x.a)); }}},
      {"v_cvt_f32_f64", {"i=d", [](V& x) { return bits(static_cast<float>(f64(x.a))); }}},
      {"v_cvt_f64_f32", {"d=i", [](V& x) { return bits(double{f32(x.a)}); }}},
      {"v_cvt_f64_u32", {"d=i", [](V& x) { return bits(double(lo(x.a))); }}},
      {"v_add_f64", {"d=dd", [](V& x) { return bits(f64(x.a) + f64(x.b)); }}},
      {"v_mul_f64", {"d=dd", [](V& x) { return bits(f64(x.a) * f64(x.b)); }}},
      {"v_fma_f64", {"d=ddd", [](V& x) { return bits(fma(f64(x.a), f64(x.b), f64(x.c))); }}},
      {"v_fmac_f64", {"d=dd", [](V& x) { return bits(fma(f64(x.a), f64(x.b), f64(x.old))); }}},
      {"v_floor_f64", {"d=d", [](V& x) { return bits(floor(f64(x.a))); }}},
      {"v_trunc_f64", {"d=d", [](V& x) { return bits(trunc(f64(x.a))); }}},
      {"v_ldexp_f64", {"d=di", [](V& x) { return bits(ldexp(f64(x.a), si(x.b))); }}},
      {"v_cmp_class_f32", {"m=ii", is_of_class}},
  };
  for (const auto& other : {std::pair<const char*, const char*>{"v_add_nc_u32", "v_add_u32"},
                            {"v_add_nc_u16", "v_add_u16"},
                            {"v_sub_nc_u32", "v_sub_u32"},
                            {"v_subrev_nc_u32", "v_subrev_u32"},
                            {"v_add_co_ci_u32", "v_addc_co_u32"},
                            {"v_sub_co_ci_u32", "v_subb_co_u32"},
                            {"v_subrev_co_ci_u32", "v_subbrev_co_u32"},
                            {"v_mad_co_u64_u32", "v_mad_u64_u32"},
                            {"v_mad_co_i64_i32", "v_mad_i64_i32"},
                            {"v_max_num_f32", "v_max_f32"},
                            {"v_min_num_f32", "v_min_f32"},
                            {"v_max3_num_f32", "v_max3_f32"},
                            {"v_maxmin_num_f32", "v_maxmin_f32"},
                            {"v_rcp_iflag_f32", "v_rcp_f32"}})
    all[other.first] = all.at(other.second);
  const auto compares = [&](const char* type, const char* types, auto of) {
    typedef decltype(of) T;
    uint64_t (*const tests[])(Values&) = {
        compare<T, kLt>,  compare<T, kEq>,  compare<T, kLe>,  compare<T, kGt>,  compare<T, kLg>,
        compare<T, kGe>,  compare<T, kO>,   compare<T, kU>,   compare<T, kNge>, compare<T, kNlg>,
        compare<T, kNgt>, compare<T, kNle>, compare<T, kNeq>, compare<T, kNlt>};
    const char* const names[] = {"lt", "eq",  "le",  "gt",  "lg",  "ge",  "o",
                                 "u",  "nge", "nlg", "ngt", "nle", "neq", "nlt"};
    for (int n = 0; n < 14; n++)
      all[std::string("v_cmp_") + names[n] + "_" + type] = {types, tests[n]};
    all[std::string("v_cmp_ne_") + type] = {types, tests[kNeq]};
  };
  compares("f32", "m=ii", float());
  compares("i32", "m=ii", int32_t());
  compares("u32", "m=ii", uint32_t());
  compares("i64", "m=qq", int64_t());
  compares("u64", "m=qq", uint64_t());
  compares("u16", "m=hh", uint16_t());
  return all;
}

}  // namespace

const Operation* vector_operation(const std::string& name) {
  static const std::map<std::string, Operation> all = table();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace amd
