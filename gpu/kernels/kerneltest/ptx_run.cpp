// Running PTX: one call of run() is one thread, which meets the others through the emulation.
#include "ptx_matrix.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <algorithm>
#include <deque>
#include "../emulator/emulator.h"
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace ptx {
namespace {

int width(Type t) {
  switch (t) {
    case kPred:
      return 1;
    case kB8:
    case kU8:
    case kS8:
      return 8;
    case kB16:
    case kU16:
    case kS16:
    case kE4M3x2:
      return 16;
    case kB32:
    case kU32:
    case kS32:
    case kF32:
    case kBF16x2:
    case kF16x2:
      return 32;
    default:
      return 64;
  }
}
bool is_signed(Type t) { return t == kS8 || t == kS16 || t == kS32 || t == kS64; }
bool is_float(Type t) { return t == kF32 || t == kF64; }
// An integer of a type in 64 bits, by its sign or with zeros.
uint64_t extend(uint64_t v, Type t) {
  const int w = width(t);
  if (w == 64) return v;
  v &= (uint64_t{1} << w) - 1;
  return is_signed(t) && v >> (w - 1) ? v | ~uint64_t{0} << w : v;
}
int64_t whole(uint64_t v) { return static_cast<int64_t>(v); }

[[noreturn]] void wrong(const Program& p, const Instruction& i, const char* what) {
  simt::fail("%s: %s: %s", p.name.c_str(), i.text, what);
}

template <class T>
bool compared(const Instruction& i, T a, T b) {
  switch (i.compare) {
    case kEq:
      return a == b;
    case kNe:
      return a != b;
    case kLt:
      return a < b;
    case kLe:
      return a <= b;
    case kGt:
      return a > b;
    case kGe:
      return a >= b;
    default:
      return false;
  }
}
bool compared_floats(const Instruction& i, double a, double b) {
  const bool nan = a != a || b != b;
  if (i.compare == kNum) return !nan;
  if (i.compare == kNan) return nan;
  return nan ? i.unordered : compared(i, a, b);
}

// To an integer, toward zero, the nearest that there is; NaN is 0.
uint64_t truncated(double v, Type t) {
  if (v != v) return 0;
  const int w = width(t);
  const double top = ldexp(1, is_signed(t) ? w - 1 : w), low = is_signed(t) ? -top : 0;
  if (v >= top) return extend(is_signed(t) ? (uint64_t{1} << (w - 1)) - 1 : ~uint64_t{0}, t);
  if (v <= low) return is_signed(t) ? extend(uint64_t{1} << (w - 1), t) : 0;
  return is_signed(t) ? static_cast<uint64_t>(static_cast<int64_t>(v)) : static_cast<uint64_t>(v);
}

uint64_t converted(const Program& p, const Instruction& i, uint64_t v) {
  if (is_float(i.from)) {
    const double d = i.from == kF32 ? f32(v) : f64(v);
    if (i.type == kF64) return bits(d);
    if (i.type == kF32) return bits(static_cast<float>(d));
    if (!strstr(i.text, ".rzi.")) wrong(p, i, "a rounding that is not known");
    return truncated(d, i.type);
  }
  v = extend(v, i.from);
  if (i.type == kF32)
    return bits(is_signed(i.from) ? static_cast<float>(whole(v)) : static_cast<float>(v));
  if (i.type == kF64)
    return bits(is_signed(i.from) ? static_cast<double>(whole(v)) : static_cast<double>(v));
  return extend(v, i.type);
}

// One thread.
class Thread {
 public:
  Thread(const Program& p, void* const* args)
      : p_(p), args_(args), r_(static_cast<size_t>(p.registers)), depot_(p.depot) {}

  void run() {
    for (size_t at = 0; at < p_.code.size();) {
      const Instruction& i = p_.code[at];
      at++;
      i.run = true;
      if (i.predicate >= 0 && (r_[static_cast<size_t>(i.predicate)] & 1) == i.negated) continue;
      switch (i.op) {
        case kReturn:
          return;
        case kBranch:
          at = static_cast<size_t>(i.targets[0]);
          break;
        case kBranchTable: {
          const uint64_t n = extend(get(i.of[0]), kU32);
          if (n >= i.targets.size()) wrong(p_, i, "outside of its table");
          at = static_cast<size_t>(i.targets[n]);
          break;
        }
        case kBarrier:
          simt::sync_block(p_.name.c_str(), static_cast<int>(at));
          break;
        default:
          step(i);
      }
    }
    wrong(p_, p_.code.back(), "nothing follows");
  }

 private:
  uint64_t get(const Operand& o) {
    switch (o.kind) {
      case Operand::kRegister:
        return r_[o.value];
      case Operand::kSpecial: {
        const dim3 all[] = {simt::self->thread, simt::block_dim, simt::block_index, simt::grid_dim};
        const dim3& d = all[o.value / 4];
        return o.value % 4 == 0 ? d.x : o.value % 4 == 1 ? d.y : d.z;
      }
      case Operand::kDepot:
        return reinterpret_cast<uint64_t>(depot_.data());
      default:
        return o.value;
    }
  }
  void set(const Instruction& i, uint64_t v) { r_[i.to[0].value] = v; }
  uint32_t word(const Operand& o) { return static_cast<uint32_t>(get(o)); }

  char* shared(const Instruction& i, uint64_t address, size_t bytes) {
    const uint64_t array = (address & 0xffffffff) >> 20, at = address & 0xfffff;
    if (array >= p_.shared->size()) wrong(p_, i, "not in shared memory");
    const Array& a = (*p_.shared)[array];
    const size_t size = array == 0 ? simt::block->dynamic_bytes : a.bytes;
    if (at + bytes > size) wrong(p_, i, "behind shared memory");
    return static_cast<char*>(array == 0 ? simt::dynamic_shared() : simt::shared_array(&a, size)) +
           at;
  }

  char* place(const Instruction& i, size_t bytes) {
    const uint64_t address = get(i.of[0]) + static_cast<uint64_t>(i.offset);
    if (address % bytes) wrong(p_, i, "an address that is not aligned");
    return i.space == kShared ? shared(i, address, bytes) : reinterpret_cast<char*>(address);
  }

  void step(const Instruction& i) {
    const auto in = [&](size_t n) { return get(i.of[n]); };
    const auto a = [&] { return extend(in(0), i.type); };
    const auto b = [&] { return extend(in(1), i.type); };
    const auto f = [&](size_t n) { return f32(in(n)); };
    switch (i.op) {
      case kNothing:
        return;
      case kMov:
        return set(i, in(0));
      case kCvta:
        return set(i, i.space == kShared ? reinterpret_cast<uint64_t>(shared(i, in(0), 0)) : in(0));
      case kCvtaToShared:
        return set(i, shared_address(i, in(0)));
      case kAnd:
        return set(i, in(0) & in(1));
      case kOr:
        return set(i, in(0) | in(1));
      case kXor:
        return set(i, in(0) ^ in(1));
      case kNot:
        return set(i, extend(~in(0), i.type));
      case kSelp:
        return set(i, in(2) & 1 ? in(0) : in(1));
      case kCopySign:
        return set(i, (in(0) & 0x80000000) | (in(1) & 0x7fffffff));
      case kAdd:
      case kSub:
      case kMul:
      case kDiv:
      case kMin:
      case kMax:
        return set(i, arithmetic(i));
      case kMulHi:
        return set(i, extend(a() * b() >> 32, i.type));
      case kMulWide:
        return set(i, extend(a() * b(), i.type == kU16 || i.type == kS16 ? kU32 : kU64));
      case kMad:
        return set(i, extend(in(0) * in(1) + in(2), i.type));
      case kRem:
        if (b() == 0) return set(i, a());
        return set(i, extend(is_signed(i.type) ? static_cast<uint64_t>(whole(a()) % whole(b()))
                                               : a() % b(),
                             i.type));
      case kNeg:
        if (i.type == kF32) return set(i, in(0) ^ 0x80000000);
        if (i.type == kF64) return set(i, in(0) ^ uint64_t{1} << 63);
        return set(i, extend(-a(), i.type));
      case kAbs:
        if (i.type != kF32) wrong(p_, i, "a type that is not known");
        return set(i, in(0) & 0x7fffffff);
      case kFma:
        if (i.type == kBF16x2) {  // of bf16 a product is exact in float32, and its sum in float64
          uint64_t both = 0;
          for (int shift = 0; shift < 32; shift += 16) {
            const auto half = [&](int n) { return from_bf16(in(n) >> shift & 0xffff); };
            both |= uint64_t{bf16(float(double(half(0)) * half(1) + half(2)))} << shift;
          }
          return set(i, both);
        }
        if (i.type == kF32x2) {
          uint64_t both = 0;
          for (int shift = 0; shift < 64; shift += 32) {
            const auto half = [&](int n) { return f32(in(n) >> shift); };
            both |= uint64_t{bits(fmaf(half(0), half(1), half(2)))} << shift;
          }
          return set(i, both);
        }
        return set(i, i.type == kF32 ? bits(fmaf(f(0), f(1), f(2)))
                                     : bits(fma(f64(in(0)), f64(in(1)), f64(in(2)))));
      case kRcp:
        return set(i, bits(1 / f(0)));
      case kSqrt:
        return set(i, bits(sqrtf(f(0))));
      case kExp2: {
        const float x = fabsf(f(0)) < 0x1p-126f ? 0 : f(0), y = exp2f(x);
        return set(i, bits(y < 0x1p-126f ? 0 : y));
      }
      case kShl: {
        const uint32_t n = word(i.of[1]);
        return set(i, n >= uint32_t(width(i.type)) ? 0 : extend(in(0) << n, i.type));
      }
      case kShr: {
        const uint32_t n = std::min(word(i.of[1]), uint32_t(width(i.type)));
        if (is_signed(i.type))
          return set(i, extend(uint64_t(whole(a()) >> std::min(n, 63u)), i.type));
        return set(i, n >= 64 ? 0 : a() >> n);
      }
      case kBfe: {
        const int at = in(1) & 0xff, n = in(2) & 0xff, w = width(i.type);
        const bool sign = is_signed(i.type);
        uint64_t v = 0;
        for (int k = 0; k < w && n > 0; k++) {
          const int from = at + std::min(k, n - 1);
          const bool bit = from < w ? a() >> from & 1 : sign && a() >> (w - 1) & 1;
          if (k < n || sign) v |= uint64_t{bit} << k;
        }
        return set(i, v);
      }
      case kSetp:
        if (is_float(i.type))
          return set(i, i.type == kF32 ? compared_floats(i, f(0), f(1))
                                       : compared_floats(i, f64(in(0)), f64(in(1))));
        return set(i,
                   is_signed(i.type) ? compared(i, whole(a()), whole(b())) : compared(i, a(), b()));
      case kCvt:
        if (i.type == kBF16x2) return set(i, bf16(f(0)) << 16 | bf16(f(1)));
        if (i.from == kE4M3x2)
          return set(i, f16(from_e4m3(in(0) >> 8 & 0xff)) << 16 | f16(from_e4m3(in(0) & 0xff)));
        if (i.type == kF16x2) return set(i, f16(f(0)) << 16 | f16(f(1)));
        return set(i, converted(p_, i, in(0)));
      case kPermute: {
        uint32_t v = 0;
        for (int k = 0; k < 32; k += 8) {
          const uint32_t at = word(i.of[2]) >> k / 2, from = word(i.of[at >> 2 & 1]);
          const uint32_t byte = from >> (at & 3) * 8 & 0xff;
          v |= (at & 8 ? (byte & 0x80 ? 0xff : 0) : byte) << k;
        }
        return set(i, v);
      }
      case kPack: {
        const int w = width(i.type) / static_cast<int>(i.of.size());
        uint64_t v = 0;
        for (size_t n = 0; n < i.of.size(); n++)
          v |= (in(n) & ((uint64_t{1} << w) - 1)) << n * static_cast<size_t>(w);
        return set(i, v);
      }
      case kUnpack: {
        const int w = width(i.type) / static_cast<int>(i.to.size());
        const uint64_t v = in(0);
        for (size_t n = 0; n < i.to.size(); n++)
          r_[i.to[n].value] = v >> n * static_cast<size_t>(w) & ((uint64_t{1} << w) - 1);
        return;
      }
      default:
        return memory(i);
    }
  }

  uint64_t arithmetic(const Instruction& i) {
    const uint64_t x = get(i.of[0]), y = get(i.of[1]);
    const auto of = [&](auto a, auto b) -> uint64_t {
      switch (i.op) {
        case kAdd:
          return bits(a + b);
        case kSub:
          return bits(a - b);
        case kMul:
          return bits(a * b);
        case kDiv:
          return bits(a / b);
        case kMin:
          return bits(b != b || a < b ? a : b);
        default:
          return bits(b != b || a > b ? a : b);
      }
    };
    if (i.type == kF32) {
      const uint64_t first = of(f32(x), f32(y));
      return i.of.size() < 3 ? first : of(f32(first), f32(get(i.of[2])));
    }
    if (i.type == kF64) return of(f64(x), f64(y));
    if (i.type == kF32x2) return of(f32(x), f32(y)) | of(f32(x >> 32), f32(y >> 32)) << 32;
    if (i.type == kBF16x2) {
      if (i.op != kMul) wrong(p_, i, "not known");
      return bf16(from_bf16(x & 0xffff) * from_bf16(y & 0xffff)) |
             bf16(from_bf16(x >> 16 & 0xffff) * from_bf16(y >> 16 & 0xffff)) << 16;
    }
    const uint64_t a = extend(x, i.type), b = extend(y, i.type);
    const bool sign = is_signed(i.type), less = sign ? whole(a) < whole(b) : a < b;
    switch (i.op) {
      case kAdd:
        return extend(a + b, i.type);
      case kSub:
        return extend(a - b, i.type);
      case kMul:
        return extend(a * b, i.type);
      case kMin:
        return less ? a : b;
      case kMax:
        return less ? b : a;
      default:
        break;
    }
    if (b == 0) return extend(~uint64_t{0}, i.type);
    return extend(sign ? static_cast<uint64_t>(whole(a) / whole(b)) : a / b, i.type);
  }

  void memory(const Instruction& i) {
    switch (i.op) {
      case kLoadParam: {
        uint64_t v = 0;
        memcpy(&v, args_[i.of[0].value], static_cast<size_t>(i.bytes));
        return set(i, v);
      }
      case kLoad: {
        const size_t n = static_cast<size_t>(i.bytes);
        const char* from = place(i, n * i.to.size());
        for (size_t k = 0; k < i.to.size(); k++) {
          uint64_t v = 0;
          memcpy(&v, from + k * n, n);
          r_[i.to[k].value] = extend(v, i.type);
        }
        if (i.relaxed) look_again(i, from);
        return;
      }
      case kStore: {
        const size_t n = static_cast<size_t>(i.bytes);
        char* to = place(i, n * (i.of.size() - 1));
        for (size_t k = 1; k < i.of.size(); k++) {
          const uint64_t v = get(i.of[k]);
          memcpy(to + (k - 1) * n, &v, n);
        }
        return;
      }
      case kAtomAdd: {
        set(i, __atomic_fetch_add(reinterpret_cast<uint32_t*>(place(i, 4)), word(i.of[1]),
                                  __ATOMIC_RELAXED));
        return simt::pause_block();
      }
      default:
        return together(i);
    }
  }

  // A thread that looks at memory until another block writes there: that one goes first.
  void look_again(const Instruction& i, const char* from) {
    uint32_t v = word(i.to[0]);
    if (looked_ == &i && seen_ == v) {
      simt::yield_block();
      memcpy(&v, from, 4);
      r_[i.to[0].value] = v;
    }
    looked_ = &i;
    seen_ = v;
  }

  void together(const Instruction& i) {
    switch (i.op) {
      case kWarpBarrier:
        return simt::sync_warp(simt::kSyncWarp);
      case kShuffleXor:
        return set(i, simt::exchange(word(i.of[0]), simt::self->lane ^ int(word(i.of[1]) & 31)));
      case kShuffleIndex:
        return set(i, simt::exchange(word(i.of[0]), int(word(i.of[1]) & 31)));
      case kLoadMatrix: {
        Rows rows = {place(i, 16), {}};
        simt::together(simt::kMatrix, reinterpret_cast<uintptr_t>(&rows), load_matrices);
        for (size_t n = 0; n < 4; n++) r_[i.to[n].value] = rows.words[n];
        return;
      }
      case kMma:
      case kMmaF16:
      case kMmaMx: {
        Product own = {};
        for (size_t n = 0; n < 4; n++) {
          own.a[n] = word(i.of[n]);
          own.c[n] = f32(get(i.of[6 + n]));
        }
        for (size_t n = 0; n < 2; n++) own.b[n] = word(i.of[4 + n]);
        if (i.op == kMmaMx) {
          own.scale_a = word(i.of[10]);
          own.scale_b = word(i.of[13]);
        }
        simt::together(simt::kMatrix, reinterpret_cast<uintptr_t>(&own),
                       i.op == kMma      ? multiply_halves<from_bf16>
                       : i.op == kMmaF16 ? multiply_halves<from_f16>
                                         : multiply_mx);
        for (size_t n = 0; n < 4; n++) r_[i.to[n].value] = bits(own.c[n]);
        return;
      }
      case kCopyAhead:
        copies_.back().push_back({shared(i, get(i.of[0]), 16),
                                  reinterpret_cast<const char*>(get(i.of[1])), get(i.of[2])});
        return;
      case kCommitCopies:
        copies_.emplace_back();
        return;
      case kArrive:  // as late as it may, too; the last group is not committed
        while (copies_.size() > get(i.of[0]) + 1) {
          for (const Copy& c : copies_.front()) {
            memset(c.to, 0, 16);
            memcpy(c.to, c.from, c.bytes);
          }
          copies_.pop_front();
        }
        return;
      case kWgmma: {
        const size_t n = i.of.size();
        pending_.back().push_back({&i, n == 2 ? get(i.of[0]) : 0, get(i.of[n - 1])});
        return;
      }
      case kWgmmaCommit:
        pending_.emplace_back();
        return;
      case kWgmmaWait:  // as late as it may: who writes to an operand before shows
        for (; pending_.size() > get(i.of[0]) + 1; pending_.pop_front())
          for (const Pending& p : pending_.front()) {
            Asked own = {};
            own.columns = static_cast<int>(2 * p.asked->to.size());
            own.a = p.a;
            own.b = p.b;
            own.registers = p.asked->of.size() == 5;
            for (size_t n = 0; own.registers && n < 4; n++) own.own[n] = word(p.asked->of[n]);
            for (size_t n = 0; n < p.asked->to.size(); n++)
              own.c[n] = f32(r_[p.asked->to[n].value]);
            simt::together(simt::kMatrix, reinterpret_cast<uintptr_t>(&own), multiply_wgmma);
            for (size_t n = 0; n < p.asked->to.size(); n++)
              r_[p.asked->to[n].value] = bits(own.c[n]);
          }
        return;
      default:
        wrong(p_, i, "not known");
    }
  }

  // The address in shared memory of a generic one.
  uint64_t shared_address(const Instruction& i, uint64_t generic) {
    const char* at = reinterpret_cast<const char*>(generic);
    for (uint64_t n = 0; n < p_.shared->size(); n++) {
      const Array& a = (*p_.shared)[n];
      const char* base = nullptr;
      size_t size = a.bytes;
      if (n == 0) {
        base = static_cast<const char*>(simt::dynamic_shared());
        size = simt::block->dynamic_bytes;
      } else {
        for (const simt::SharedArray& s : simt::block->arrays)
          if (s.site == &a && s.live) base = static_cast<const char*>(simt::shared_array(&a, size));
      }
      if (base && at >= base && at <= base + size)
        return n << 20 | static_cast<uint64_t>(at - base);
    }
    wrong(p_, i, "not in shared memory");
  }

  const Program& p_;
  void* const* args_;
  std::vector<uint64_t> r_;
  std::vector<char> depot_;
  struct Pending {
    const Instruction* asked;
    uint64_t a, b;
  };
  std::deque<std::vector<Pending>> pending_{1};  // groups, the oldest first
  struct Copy {
    char* to;
    const char* from;
    uint64_t bytes;
  };
  std::deque<std::vector<Copy>> copies_{1};  // groups, the oldest first
  const Instruction* looked_ = nullptr;
  uint32_t seen_ = 0;
};

void call(void (*function)(), void* const* args) {
  Thread(*reinterpret_cast<const Program*>(function), args).run();
}

}  // namespace

std::vector<Program*> take_over(const char* path) {
  if (strcmp(emulator_layout(), "nv") != 0)  // and block.h is read here with its size of warp
    throw std::runtime_error("PTX runs in the layout nv");
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::vector<Program*> all = parse(text.str());
  if (all.empty()) throw std::runtime_error(std::string("no kernel in ") + path);
  for (Program* p : all)
    simt::add(new simt::Kernel{p->name.c_str(), p->threads, static_cast<int>(p->sizes.size()),
                               p->sizes.data(), call, reinterpret_cast<void (*)()>(p), nullptr});
  return all;
}

}  // namespace ptx
