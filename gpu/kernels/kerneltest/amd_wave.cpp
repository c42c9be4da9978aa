// Running a wave of AMD's: one instruction after the other, each for all lanes that EXEC names.
#include "amd_wave.h"
#include <math.h>
#include <string.h>
#include <algorithm>
#include "../emulator/block.h"
#include "ptx_matrix.h"

namespace amd {

// An operand for all lanes: where its words are, and what is to be done with them.
struct Source {
  const uint32_t *low, *high;  // high: null of a word
  int step;                    // 0: the same for all
  uint64_t flipped, kept;
  const Operand* part;

  Source(const Wave& w, const Operand& o, bool wide) : high(nullptr), step(1), part(nullptr) {
    switch (o.kind) {
      case Operand::kVector:
        low = w.vector_[o.at];
        if (wide) high = w.vector_[o.at + 1];
        break;
      case Operand::kScalar:
        low = &w.scalar_[o.at];
        if (wide) high = o.at == kNull ? low : low + 1;
        step = 0;
        break;
      default:
        low = &o.value[0];
        if (wide) high = &o.value[1];
        step = 0;
    }
    const uint64_t sign = uint64_t{1} << (wide ? 63 : 31);
    flipped = o.negated ? sign : 0;
    kept = o.absolute ? ~sign : ~uint64_t{0};
    if (o.bits < 32) part = &o;
  }
  uint64_t at(int lane) const {
    const int n = lane * step;
    uint64_t v = low[n];
    if (high) v |= uint64_t{high[n]} << 32;
    v = (v & kept) ^ flipped;
    if (!part) return v;
    v = v >> part->shift & ((uint64_t{1} << part->bits) - 1);
    if (part->extended && v >> (part->bits - 1)) v |= ~uint64_t{0} << part->bits;
    return v & 0xffffffff;
  }
};

void Wave::wrong(const Instruction& i, const char* what) const {
  simt::fail("%s: %s at %llx: %s", p_->target.c_str(), i.text.c_str(),
             static_cast<unsigned long long>(i.address), what);
}

void Wave::begin(const Program& p, int number, std::vector<char>* shared, const char* arguments,
                 Caches* caches, bool late) {
  p_ = &p;
  at_ = 0;
  lanes_ = p.lanes;
  all_ = lanes_ == 64 ? ~uint64_t{0} : 0xffffffff;
  scc_ = false;
  slept_ = 0;
  signalled_ = false;
  asked_ = 0;
  shared_ = shared;
  caches_ = caches;
  near_.clear();
  late_ = late;
  state = kReady;
  under_way_.clear();
  std::fill(scalar_, scalar_ + kScalars + 2, kGarbage);
  for (int r = 0; r < kVectors; r++)
    if (r < p.accumulators || (r >= kAccumulators && r < kAccumulators + p.vectors))
      std::fill(vector_[r], vector_[r] + 64, kGarbage);
  for (int l = 0; l < lanes_; l++) {
    const unsigned t = static_cast<unsigned>(number * lanes_ + l);
    const dim3 d = simt::block_dim;
    vector_[0][l] = t % d.x | t / d.x % d.y << 10 | t / (d.x * d.y) << 20;
  }
  int at = p.properties & 1 ? 4 : 0;  // behind the private segment's descriptor, which is not used
  scalar_[at] = static_cast<uint32_t>(reinterpret_cast<uint64_t>(arguments));
  scalar_[at + 1] = static_cast<uint32_t>(reinterpret_cast<uint64_t>(arguments) >> 32);
  at = static_cast<int>(p.settings[1] >> 1 & 31);
  const dim3 block = simt::block_index;
  if (p.generation == 12) {
    scalar_[kTtmp + 9] = block.x;
    scalar_[kTtmp + 7] = block.y | block.z << 16;
  } else {
    if (p.settings[1] >> 7 & 1) scalar_[at++] = block.x;
    if (p.settings[1] >> 8 & 1) scalar_[at++] = block.y;
    if (p.settings[1] >> 9 & 1) scalar_[at++] = block.z;
  }
  scalar_[kNull] = 0;
  scalar_[kExec] = 0xffffffff;
  scalar_[kExec + 1] = lanes_ == 64 ? 0xffffffff : 0;
}

bool Wave::goes(When when) const {
  const uint64_t vcc = get64(kVcc) & all_;
  switch (when) {
    case When::kAlways:
      return true;
    case When::kScc0:
      return !scc_;
    case When::kScc1:
      return scc_;
    case When::kVccZero:
      return vcc == 0;
    case When::kVccNot:
      return vcc != 0;
    case When::kExecZero:
      return exec() == 0;
    default:
      return exec() != 0;
  }
}

void Wave::run() {
  for (; at_ < p_->code.size();) {
    const Instruction& i = p_->code[at_++];
    i.run = true;
    switch (i.does) {
      case Does::kNothing:
        break;
      case Does::kScalar:
        scalar(i);
        break;
      case Does::kVector:
        vector(i);
        break;
      case Does::kPacked:
        packed(i);
        break;
      case Does::kMovePacked:
        move_packed(i);
        break;
      case Does::kSaveExec:
        save_exec(i);
        break;
      case Does::kFirstLane:
      case Does::kReadLane:
      case Does::kWriteLane:
        lane(i);
        break;
      case Does::kMatrix:
        matrix(i);
        break;
      case Does::kMemory:
        memory(i);
        break;
      case Does::kEmpty:
        empty(i);
        break;
      case Does::kScalarLoad:
        scalar_load(i);
        break;
      case Does::kWait:
        wait(i);
        break;
      case Does::kBranch:
        if (goes(i.when)) at_ = static_cast<size_t>(i.target);
        break;
      case Does::kSignal:
        signalled_ = true;
        break;
      case Does::kBarrier:
        if (!signalled_ && p_->generation == 12) wrong(i, "nobody was told of it");
        signalled_ = false;
        state = kAtBarrier;
        return;
      case Does::kSleep:  // what was stored arrives some day without a wait too
        if (++slept_ > 8) wait_for(p_->generation == 9 ? kLoads : kStores, 0);
        state = kAsleep;
        return;
      case Does::kEnd:
        while (!under_way_.empty()) {
          over(0);
          under_way_.pop_front();
        }
        state = kEnded;
        return;
    }
  }
  wrong(p_->code.back(), "nothing follows");
}

uint64_t Wave::scalar_value(const Operand& o, char type) const {
  const bool wide = type == 'q' || type == 'd' || (type == 'm' && lanes_ == 64);
  if (o.kind == Operand::kVector) wrong(p_->code[at_ - 1], "a vector register in a scalar place");
  return Source(*this, o, wide).at(0);
}

void Wave::scalar(const Instruction& i) {
  const char* types = i.operation->types;
  const char* of = strchr(types, '=') + 1;
  Values x;
  x.bit = scc_;
  if (!i.of.empty()) x.a = scalar_value(i.of[0], of[0]);
  if (i.of.size() > 1) x.b = scalar_value(i.of[1], of[1]);
  if (of[0] == 'k') x.a &= 0xffffffff;
  if (types[0] == '=' && of[1] == 'k') x.b &= 0xffffffff;
  if (!i.to.empty()) x.old = scalar_value(i.to[0], types[0]);
  const uint64_t v = i.operation->of(x);
  if (i.name[0] == 's') scc_ = x.bit;
  if (i.to.empty()) return;
  set(i.to[0].at, static_cast<uint32_t>(v));
  if (types[0] == 'q') set(i.to[0].at + 1, static_cast<uint32_t>(v >> 32));
}

void Wave::save_exec(const Instruction& i) {
  const uint64_t was = exec(), v = mask(i.of[0]);
  uint64_t now;
  if (i.name.compare(0, 6, "s_and_") == 0 && i.name.compare(0, 10, "s_and_not1") != 0)
    now = v & was;
  else if (i.name.compare(0, 7, "s_andn2") == 0 || i.name.compare(0, 10, "s_and_not1") == 0)
    now = v & ~was;
  else if (i.name.compare(0, 10, "s_or_savee") == 0)
    now = v | was;
  else
    wrong(i, "not known");
  set_mask(i.to[0], was);
  Operand exec;
  exec.at = kExec;
  set_mask(exec, now);
  scc_ = (now & all_) != 0;
}

// What a vector instruction makes, not yet in its vector register; masks are written.
void Wave::results(const Instruction& i, uint32_t* low, uint32_t* high) {
  const char* types = i.operation->types;
  const char* of = strchr(types, '=') + 1;
  const auto wide = [](char t) { return t == 'q' || t == 'd'; };
  const auto source = [&](size_t n) {
    static const Operand none;
    const bool there = n < i.of.size() && of[n] != 'm';
    return Source(*this, there ? i.of[n] : none, there && wide(of[n]));
  };
  const Source a = source(0), b = source(1), c = source(2);
  const bool to_mask = types[0] == 'm', carries = types[1] == 'm', two = wide(types[0]);
  const bool half = types[0] == 'h';
  const uint64_t bits = of[i.of.size() - 1] == 'm' ? mask(i.of.back()) : 0, lanes = exec();
  const Operand* to = to_mask ? nullptr : &i.to[0];
  uint64_t made = 0;
  Values x;
  for (int l = 0; l < lanes_; l++) {
    if (!(lanes >> l & 1)) continue;
    x.a = a.at(l);
    x.b = b.at(l);
    x.c = c.at(l);
    x.lane = l;
    x.bit = bits >> l & 1;
    x.table = i.table;
    if (to) {
      x.old = vector_[to->at][l];
      if (two) x.old |= uint64_t{vector_[to->at + 1][l]} << 32;
    }
    const uint64_t old = x.old, v = i.operation->of(x);
    made |= uint64_t{to_mask ? (v & 1) != 0 : x.bit} << l;
    low[l] = static_cast<uint32_t>(v);
    if (two) high[l] = static_cast<uint32_t>(v >> 32);
    if (to && to->bits == 16) {
      const uint32_t part = (v & 0xffff) << to->shift;
      if (!half)  // the rest of a part of a word is zero
        low[l] = part;
      else if (p_->generation > 9)  // the other half stays
        low[l] = part | (static_cast<uint32_t>(old) & ~(0xffffu << to->shift));
      else  // zero, but of a newer instruction nobody says so
        low[l] = part | (i.name == "v_bitop3_b16" ? kGarbage & 0xffff0000 : 0);
    }
  }
  if (to_mask) set_mask(i.to[0], made);
  if (carries) set_mask(i.to[1], made);
}

void Wave::write(const Instruction& i, const uint32_t* low, const uint32_t* high) {
  if (i.operation->types[0] == 'm') return;
  const uint64_t lanes = exec();
  const bool two = i.operation->types[0] == 'q' || i.operation->types[0] == 'd';
  for (int l = 0; l < lanes_; l++) {
    if (!(lanes >> l & 1)) continue;
    vector_[i.to[0].at][l] = low[l];
    if (two) vector_[i.to[0].at + 1][l] = high[l];
  }
}

void Wave::vector(const Instruction& i) {
  uint32_t low[64], high[64];
  results(i, low, high);
  if (i.second) {
    uint32_t other[64];
    results(*i.second, other, high);
    write(*i.second, other, high);
  }
  write(i, low, high);
}

// Two floats a lane: of each operand either word for the low and for the high result.
void Wave::packed(const Instruction& i) {
  const uint64_t lanes = exec();
  for (int l = 0; l < lanes_; l++) {
    if (!(lanes >> l & 1)) continue;
    uint32_t made[2];
    for (int half = 0; half < 2; half++) {
      Values x;
      uint64_t* const to[] = {&x.a, &x.b, &x.c};
      for (size_t n = 0; n < i.of.size(); n++) {
        const int word = half ? i.high[n] : i.low[n];
        const Operand& o = i.of[n];
        if (o.kind == Operand::kConstant && word) wrong(i, "the high word of a constant");
        *to[n] = o.kind == Operand::kVector   ? vector_[o.at + word][l]
                 : o.kind == Operand::kScalar ? scalar_[o.at + word]
                                              : o.value[0];
        if (half ? i.high_negated[n] : i.low_negated[n]) *to[n] ^= 0x80000000;
      }
      made[half] = static_cast<uint32_t>(i.operation->of(x));
    }
    vector_[i.to[0].at][l] = made[0];
    vector_[i.to[0].at + 1][l] = made[1];
  }
}

void Wave::move_packed(const Instruction& i) {
  const uint64_t lanes = exec();
  const Source a(*this, i.of[0], true), b(*this, i.of[1], true);
  for (int l = 0; l < lanes_; l++) {
    if (!(lanes >> l & 1)) continue;
    const uint64_t low = a.at(l) >> i.low[0] * 32, high = b.at(l) >> i.low[1] * 32;
    vector_[i.to[0].at][l] = static_cast<uint32_t>(low);
    vector_[i.to[0].at + 1][l] = static_cast<uint32_t>(high);
  }
}

void Wave::lane(const Instruction& i) {
  if (i.does == Does::kWriteLane) {
    const uint64_t l = scalar_value(i.of[1], 'i') % static_cast<uint64_t>(lanes_);
    vector_[i.to[0].at][l] = static_cast<uint32_t>(scalar_value(i.of[0], 'i'));
    return;
  }
  if (i.of[0].kind != Operand::kVector) wrong(i, "not of a vector register");
  const uint64_t lanes = exec();
  const uint64_t l = i.does == Does::kFirstLane
                         ? static_cast<uint64_t>(lanes ? __builtin_ctzll(lanes) : 0)
                         : scalar_value(i.of[1], 'i') % static_cast<uint64_t>(lanes_);
  set(i.to[0].at, vector_[i.of[0].at][l]);
}

}  // namespace amd
