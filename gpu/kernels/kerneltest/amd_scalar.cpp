// What AMD's scalar instructions compute: of whole words, with SCC as the bit that they read and
// leave. Those that leave it alone do not touch the bit.
#include <math.h>
#include <map>
#include "amd.h"
#include "ptx_matrix.h"

namespace amd {
namespace {

using ptx::bits;
using ptx::f32;

uint32_t lo(uint64_t v) { return static_cast<uint32_t>(v); }
int32_t si(uint64_t v) { return static_cast<int32_t>(v); }
int64_t sq(uint64_t v) { return static_cast<int64_t>(v); }

uint64_t nonzero(Values& x, uint64_t v) {
  x.bit = v != 0;
  return v;
}
uint64_t overflowing(Values& x, int64_t exact) {
  x.bit = exact != static_cast<int32_t>(exact);
  return lo(static_cast<uint64_t>(exact));
}
template <int N>
uint64_t shift_add(Values& x) {
  const uint64_t sum = (uint64_t{lo(x.a)} << N) + lo(x.b);
  x.bit = sum >> 32 != 0;
  return lo(sum);
}
// A field of v: where it begins in the low bits of `what`, how long it is from bit 16 on.
template <int W>
uint64_t field(uint64_t v, uint64_t what, bool sign) {
  const int at = what & (W - 1), n = static_cast<int>(what >> 16 & 0x7f);
  if (n == 0) return 0;
  const int top = n + at > W ? W : n + at;
  const uint64_t moved = v << (64 - top);
  return sign ? static_cast<uint64_t>(sq(moved) >> (64 - top + at)) : moved >> (64 - top + at);
}

template <int C, class T>
bool is(T a, T b) {
  return C == 0   ? a == b
         : C == 1 ? a != b
         : C == 2 ? a < b
         : C == 3 ? a <= b
         : C == 4 ? a > b
                  : a >= b;
}
template <int C>
uint64_t compare_i(Values& x) {
  x.bit = is<C>(si(x.a), si(x.b));
  return 0;
}
template <int C>
uint64_t compare_u(Values& x) {
  x.bit = is<C>(lo(x.a), lo(x.b));
  return 0;
}
template <int C>
uint64_t compare_q(Values& x) {
  x.bit = is<C>(x.a, x.b);
  return 0;
}
template <int C, bool Not>
uint64_t compare_f(Values& x) {
  x.bit = is<C>(f32(x.a), f32(x.b)) != Not;
  return 0;
}

const std::map<std::string, Operation>& table() {
  typedef Values V;
  static const std::map<std::string, Operation> all = {
      {"s_mov_b32", {"i=i", [](V& x) { return x.a; }}},
      {"s_mov_b64", {"q=q", [](V& x) { return x.a; }}},
      {"s_movk_i32", {"i=k", [](V& x) { return x.a; }}},
      {"s_not_b32", {"i=i", [](V& x) { return nonzero(x, lo(~x.a)); }}},
      {"s_not_b64", {"q=q", [](V& x) { return nonzero(x, ~x.a); }}},
      {"s_and_b32", {"i=ii", [](V& x) { return nonzero(x, x.a & x.b); }}},
      {"s_and_b64", {"q=qq", [](V& x) { return nonzero(x, x.a & x.b); }}},
      {"s_or_b32", {"i=ii", [](V& x) { return nonzero(x, x.a | x.b); }}},
      {"s_or_b64", {"q=qq", [](V& x) { return nonzero(x, x.a | x.b); }}},
      {"s_xor_b32", {"i=ii", [](V& x) { return nonzero(x, x.a ^ x.b); }}},
      {"s_xor_b64", {"q=qq", [](V& x) { return nonzero(x, x.a ^ x.b); }}},
      {"s_xnor_b32", {"i=ii", [](V& x) { return nonzero(x, lo(~(x.a ^ x.b))); }}},
      {"s_xnor_b64", {"q=qq", [](V& x) { return nonzero(x, ~(x.a ^ x.b)); }}},
      {"s_nor_b32", {"i=ii", [](V& x) { return nonzero(x, lo(~(x.a | x.b))); }}},
      {"s_nor_b64", {"q=qq", [](V& x) { return nonzero(x, ~(x.a | x.b)); }}},
      {"s_andn2_b32", {"i=ii", [](V& x) { return nonzero(x, lo(x.a & ~x.b)); }}},
      {"s_andn2_b64", {"q=qq", [](V& x) { return nonzero(x, x.a & ~x.b); }}},
      {"s_orn2_b32", {"i=ii", [](V& x) { return nonzero(x, lo(x.a | ~x.b)); }}},
      {"s_orn2_b64", {"q=qq", [](V& x) { return nonzero(x, x.a | ~x.b); }}},
      {"s_lshl_b32", {"i=ii", [](V& x) { return nonzero(x, lo(x.a << (x.b & 31))); }}},
      {"s_lshl_b64", {"q=qi", [](V& x) { return nonzero(x, x.a << (x.b & 63)); }}},
      {"s_lshr_b32", {"i=ii", [](V& x) { return nonzero(x, x.a >> (x.b & 31)); }}},
      {"s_lshr_b64", {"q=qi", [](V& x) { return nonzero(x, x.a >> (x.b & 63)); }}},
      {"s_ashr_i32",
       {"i=ii", [](V& x) { return nonzero(x, lo(uint64_t(int64_t{si(x.a) >> (x.b & 31)}))); }}},
      {"s_ashr_i64", {"q=qi", [](V& x) { return nonzero(x, uint64_t(sq(x.a) >> (x.b & 63))); }}},
      {"s_bfe_u32", {"i=ii", [](V& x) { return nonzero(x, field<32>(x.a, x.b, false)); }}},
      {"s_bfe_i32", {"i=ii", [](V& x) { return nonzero(x, lo(field<32>(x.a, x.b, true))); }}},
      {"s_bfe_i64", {"q=qi", [](V& x) { return nonzero(x, field<64>(x.a, x.b, true)); }}},
      {"s_lshl1_add_u32", {"i=ii", shift_add<1>}},
      {"s_lshl2_add_u32", {"i=ii", shift_add<2>}},
      {"s_lshl3_add_u32", {"i=ii", shift_add<3>}},
      {"s_lshl4_add_u32", {"i=ii", shift_add<4>}},
      {"s_add_i32",
       {"i=ii", [](V& x) { return overflowing(x, int64_t{si(x.a)} + int64_t{si(x.b)}); }}},
      {"s_sub_i32",
       {"i=ii", [](V& x) { return overflowing(x, int64_t{si(x.a)} - int64_t{si(x.b)}); }}},
      {"s_addk_i32",
       {"i=k", [](V& x) { return overflowing(x, int64_t{si(x.old)} + int64_t{si(x.a)}); }}},
      {"s_mulk_i32", {"i=k", [](V& x) { return uint64_t{lo(x.old * x.a)}; }}},
      {"s_add_u32",
       {"i=ii",
        [](V& x) {
          x.bit = (x.a + x.b) >> 32 != 0;
          return uint64_t{lo(x.a + x.b)};
        }}},
      {"s_sub_u32",
       {"i=ii",
        [](V& x) {
          x.bit = x.a < x.b;
          return uint64_t{lo(x.a - x.b)};
        }}},
      {"s_subb_u32",
       {"i=ii",
        [](V& x) {
          const uint64_t taken = x.b + x.bit;
          x.bit = x.a < taken;
          return uint64_t{lo(x.a - taken)};
        }}},
      {"s_addc_u32",
       {"i=ii",
        [](V& x) {
          const uint64_t sum = x.a + x.b + x.bit;
          x.bit = sum >> 32 != 0;
          return uint64_t{lo(sum)};
        }}},
      {"s_add_nc_u64", {"q=qq", [](V& x) { return x.a + x.b; }}},
      {"s_sub_nc_u64", {"q=qq", [](V& x) { return x.a - x.b; }}},
      {"s_mul_u64", {"q=qq", [](V& x) { return x.a * x.b; }}},
      {"s_mul_i32", {"i=ii", [](V& x) { return uint64_t{lo(x.a * x.b)}; }}},
      {"s_mul_hi_u32", {"i=ii", [](V& x) { return x.a * x.b >> 32; }}},
      {"s_mul_hi_i32",
       {"i=ii", [](V& x) { return uint64_t{lo(uint64_t(int64_t{si(x.a)} * si(x.b) >> 32))}; }}},
      {"s_abs_i32", {"i=i", [](V& x) { return nonzero(x, si(x.a) < 0 ? lo(-x.a) : lo(x.a)); }}},
      {"s_min_u32", {"i=ii", [](V& x) { return (x.bit = x.a < x.b) ? x.a : x.b; }}},
      {"s_min_i32", {"i=ii", [](V& x) { return (x.bit = si(x.a) < si(x.b)) ? x.a : x.b; }}},
      {"s_max_i32", {"i=ii", [](V& x) { return (x.bit = si(x.a) > si(x.b)) ? x.a : x.b; }}},
      {"s_bcnt1_i32_b32",
       {"i=i", [](V& x) { return nonzero(x, uint64_t(__builtin_popcountll(x.a))); }}},
      {"s_bcnt1_i32_b64",
       {"i=q", [](V& x) { return nonzero(x, uint64_t(__builtin_popcountll(x.a))); }}},
      {"s_brev_b32",
       {"i=i",
        [](V& x) {
          uint64_t v = 0;
          for (int n = 0; n < 32; n++) v |= (x.a >> n & 1) << (31 - n);
          return v;
        }}},
      {"s_sext_i32_i8", {"i=i", [](V& x) { return uint64_t{lo(uint64_t(int8_t(x.a)))}; }}},
      {"s_sext_i32_i16", {"i=i", [](V& x) { return uint64_t{lo(uint64_t(int16_t(x.a)))}; }}},
      {"s_cselect_b32", {"i=ii", [](V& x) { return x.bit ? x.a : x.b; }}},
      {"s_cselect_b64", {"q=qq", [](V& x) { return x.bit ? x.a : x.b; }}},
      {"s_cmp_eq_u64", {"=qq", compare_q<0>}},
      {"s_cmp_lg_u64", {"=qq", compare_q<1>}},
      {"s_cmp_eq_f32", {"=ii", compare_f<0, false>}},
      {"s_cmp_neq_f32", {"=ii", compare_f<0, true>}},
      {"s_cmp_lt_f32", {"=ii", compare_f<2, false>}},
      {"s_cmp_le_f32", {"=ii", compare_f<3, false>}},
      {"s_cmp_gt_f32", {"=ii", compare_f<4, false>}},
      {"s_cmp_nge_f32", {"=ii", compare_f<5, true>}},
      {"s_cmpk_eq_i32", {"=ik", compare_i<0>}},
      {"s_cmpk_lg_i32", {"=ik", compare_i<1>}},
      {"s_cmpk_gt_u32",
       {"=ik",
        [](V& x) {
          x.b &= 0xffff;  // the one kind of constant that has no sign
          return compare_u<4>(x);
        }}},
      {"s_cmp_eq_u32", {"=ii", compare_u<0>}},
      {"s_cmp_lg_u32", {"=ii", compare_u<1>}},
      {"s_cmp_lt_u32", {"=ii", compare_u<2>}},
      {"s_cmp_le_u32", {"=ii", compare_u<3>}},
      {"s_cmp_gt_u32", {"=ii", compare_u<4>}},
      {"s_cmp_ge_u32", {"=ii", compare_u<5>}},
      {"s_cmp_lt_i32", {"=ii", compare_i<2>}},
      {"s_cmp_le_i32", {"=ii", compare_i<3>}},
      {"s_cmp_gt_i32", {"=ii", compare_i<4>}},
      {"s_cmp_ge_i32", {"=ii", compare_i<5>}},
      {"s_add_f32", {"i=ii", [](V& x) { return bits(f32(x.a) + f32(x.b)); }}},
      {"s_mul_f32", {"i=ii", [](V& x) { return bits(f32(x.a) * f32(x.b)); }}},
      {"s_fmac_f32", {"i=ii", [](V& x) { return bits(fmaf(f32(x.a), f32(x.b), f32(x.old))); }}},
      {"s_floor_f32", {"i=i", [](V& x) { return bits(floorf(f32(x.a))); }}},
      {"s_trunc_f32", {"i=i", [](V& x) { return bits(truncf(f32(x.a))); }}},
      {"s_cvt_f32_i32", {"i=i", [](V& x) { return bits(static_cast<float>(si(x.a))); }}},
      {"s_cvt_f32_u32", {"i=i", [](V& x) { return bits(static_cast<float>(lo(x.a))); }}},
      // As a vector instruction does it.
      {"s_cvt_u32_f32", {"i=i", [](V& x) { return vector_operation("v_cvt_u32_f32")->of(x); }}},
      {"v_s_sqrt_f32", {"i=i", [](V& x) { return vector_operation("v_sqrt_f32")->of(x); }}},
  };
  return all;
}

}  // namespace

const Operation* scalar_operation(const std::string& name) {
  static const std::map<std::string, std::string> newer = {
      {"s_add_co_i32", "s_add_i32"},     {"s_sub_co_i32", "s_sub_i32"},
      {"s_addk_co_i32", "s_addk_i32"},   {"s_add_co_u32", "s_add_u32"},
      {"s_sub_co_u32", "s_sub_u32"},     {"s_sub_co_ci_u32", "s_subb_u32"},
      {"s_add_co_ci_u32", "s_addc_u32"}, {"s_and_not1_b32", "s_andn2_b32"},
      {"s_and_not1_b64", "s_andn2_b64"}, {"s_or_not1_b32", "s_orn2_b32"},
      {"s_or_not1_b64", "s_orn2_b64"}};
  const auto other = newer.find(name);
  const auto found = table().find(other == newer.end() ? name : other->second);
  return found == table().end() ? nullptr : &found->second;
}

}  // namespace amd
