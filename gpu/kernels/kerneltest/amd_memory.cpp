// Memory as a wave of AMD's sees it: asked for at one instruction, over at a wait.
#include <string.h>
#include <algorithm>
#include "../emulator/block.h"
#include "amd_wave.h"

namespace amd {
namespace {

// What a counter holds at most: asking for more waits for the oldest.
int most_of(int generation, Counter c) { return c == kShared && generation == 9 ? 15 : 63; }

}  // namespace

void Wave::fill(const Operand& o, uint64_t lanes, int part) {
  for (int w = 0; w < o.words; w++)
    for (int l = 0; l < lanes_; l++) {
      if (!(lanes >> l & 1)) continue;
      uint32_t& v = vector_[o.at + w][l];
      v = part == 0   ? kGarbage
          : part == 1 ? (v & 0xffff0000) | (kGarbage & 0xffff)
                      : (v & 0xffff) | (kGarbage & 0xffff0000);
    }
}

char* Wave::shared_memory(const Operating& o, uint64_t at, int bytes) {
  if (at + static_cast<uint64_t>(bytes) > shared_->size())
    wrong(*o.instruction, "behind shared memory");
  return shared_->data() + at;
}

void Wave::load_bytes(const Instruction& i, uint64_t at, char* to) {
  const uint64_t bytes = static_cast<uint64_t>(i.bytes);
  if (!caches_)
    memcpy(to, reinterpret_cast<const char*>(at), bytes);
  else if (i.device)
    caches_->from_memory(at, to, bytes);
  else
    caches_->load(p_->generation == 9 ? nullptr : &near_, at, to, bytes);
}

void Wave::store_bytes(const Instruction& i, uint64_t at, const char* of, size_t bytes) {
  if (!caches_)
    memcpy(reinterpret_cast<char*>(at), of, bytes);
  else
    caches_->store(p_->generation == 9 ? nullptr : &near_, at, of, bytes, i.device);
}

void Wave::empty(const Instruction& i) {
  if (i.empties & kNear) near_.clear();
  if (i.empties & kFar && caches_) caches_->far.clear();
}

void Wave::memory(const Instruction& i) {
  std::unique_ptr<Operating> fresh;
  if (free_.empty()) {
    fresh.reset(new Operating);
  } else {
    fresh = std::move(free_.back());
    free_.pop_back();
  }
  Operating& o = *fresh;
  o.instruction = &i;
  o.number = ++asked_;
  o.lanes = exec();
  o.done = false;
  o.low = ~uint64_t{0};
  o.high = 0;
  o.counter = i.shared                                                   ? kShared
              : p_->generation > 9 && (i.store || (i.atomic && !i.load)) ? kStores
                                                                         : kLoads;
  const int words = (i.bytes + 3) / 4;
  for (int l = 0; l < lanes_ && !i.of.empty(); l++) {
    if (!(o.lanes >> l & 1)) continue;
    const Operand& a = i.of[0];
    uint64_t at = vector_[a.at][l];
    if (i.shared) {
      for (int n = 0; n < i.elements; n++)
        o.at[n][l] = static_cast<uint32_t>(at + static_cast<uint64_t>(i.offset[n] * i.spread));
      if (i.atomic || i.permutes)
        o.at[0][l] = static_cast<uint32_t>(at + static_cast<uint64_t>(i.offset[0]));
    } else {
      if (a.words == 2)
        at |= uint64_t{vector_[a.at + 1][l]} << 32;
      else
        at += get64(i.of[1].at);
      o.at[0][l] = at + static_cast<uint64_t>(i.offset[0]);
      o.low = std::min(o.low, o.at[0][l]);
      o.high = std::max(o.high, o.at[0][l] + static_cast<uint64_t>(i.bytes));
    }
    const size_t data = i.shared ? 1 : 2;
    for (size_t n = data; n < i.of.size(); n++)
      for (int w = 0; w < words; w++)
        o.data[(static_cast<int>(n - data)) * words + w][l] =
            i.of[n].kind == Operand::kVector ? vector_[i.of[n].at + w][l] : 0;
  }
  if (i.permutes) {  // of registers, so at once; a lane that does not run gives 0
    uint32_t given[64];
    memcpy(given, o.data[0], sizeof given);
    for (int l = 0; l < lanes_; l++) {
      const int from = static_cast<int>(o.at[0][l] / 4 % static_cast<uint64_t>(lanes_));
      if (o.lanes >> l & 1) o.data[0][l] = o.lanes >> from & 1 ? given[from] : 0;
    }
    o.done = true;
  }
  if (i.load) fill(i.to[0], o.lanes, i.part);
  empty(i);
  under_way_.push_back(std::move(fresh));
  // Atomic operations on memory are where blocks meet, so they are done at once; and a load that is
  // early, and shared memory that is.
  const bool now = (i.atomic && !i.shared) || (!late_ && (i.shared || i.load));
  if (now && !o.done) perform(o);
  wait_for(o.counter, most_of(p_->generation, o.counter));
  if (i.atomic && !i.shared) simt::pause_block();
}

void Wave::scalar_load(const Instruction& i) {
  std::unique_ptr<Operating> o(new Operating);
  o->instruction = &i;
  o->number = ++asked_;
  o->counter = p_->generation == 12 ? kScalarLoads : kShared;
  o->done = true;
  const Operand& by = i.of[1];
  const uint64_t from = get64(i.of[0].at) + static_cast<uint64_t>(i.offset[0]) +
                        (by.kind == Operand::kConstant ? by.value[0] : scalar_[by.at]);
  o->words.resize(static_cast<size_t>(i.bytes) / 4);
  char* to = reinterpret_cast<char*>(o->words.data());
  if (caches_)
    caches_->from_memory(from & ~uint64_t{3}, to, static_cast<uint64_t>(i.bytes));
  else
    memcpy(to, reinterpret_cast<const char*>(from & ~uint64_t{3}), static_cast<size_t>(i.bytes));
  for (int w = 0; w < i.to[0].words; w++) set(i.to[0].at + w, kGarbage);
  under_way_.push_back(std::move(o));
}

// In memory, but not yet in registers.
void Wave::perform(Operating& o) {
  if (o.done) return;
  o.done = true;
  const Instruction& i = *o.instruction;
  if (i.writes_back && caches_) caches_->write_back();
  if (i.bytes == 0) return;
  if (i.store && !i.shared) perform_before(o.number);
  if (i.load && !i.atomic && !i.shared) return read(o);
  const int words = (i.bytes + 3) / 4;
  for (int l = 0; l < lanes_; l++) {
    if (!(o.lanes >> l & 1)) continue;
    for (int n = 0; n < i.elements; n++) {
      char* m =
          i.shared ? shared_memory(o, o.at[n][l], i.bytes) : reinterpret_cast<char*>(o.at[n][l]);
      if (i.atomic) {
        uint32_t was, sum;
        memcpy(&was, m, 4);
        sum = was + o.data[0][l];
        memcpy(m, &sum, 4);
        o.data[0][l] = was;
        continue;
      }
      for (int w = 0; w < words; w++) {
        const size_t bytes = static_cast<size_t>(std::min(4, i.bytes - w * 4));
        uint32_t& v = o.data[n * words + w][l];
        if (i.load) {
          v = 0;
          memcpy(&v, m + w * 4, bytes);
        } else {
          const uint32_t stored = i.part == 2 ? v >> 16 : v;
          if (i.shared)
            memcpy(m + w * 4, &stored, bytes);
          else
            store_bytes(i, o.at[n][l] + static_cast<uint64_t>(w) * 4,
                        reinterpret_cast<const char*>(&stored), bytes);
        }
      }
    }
  }
}

// Loads of memory that were asked for earlier read before this.
void Wave::perform_before(uint64_t number) {
  for (auto& o : under_way_)
    if (o->number < number && !o->done && o->instruction->load && !o->instruction->shared)
      perform(*o);
}

// A load of memory: what is there, and what this wave has stored since.
void Wave::read(Operating& o) {
  const Instruction& i = *o.instruction;
  const int words = (i.bytes + 3) / 4;
  for (int l = 0; l < lanes_; l++) {
    if (!(o.lanes >> l & 1)) continue;
    char bytes[16] = {};
    const uint64_t at = o.at[0][l];
    load_bytes(i, at, bytes);
    for (auto& s : under_way_) {
      const Instruction& j = *s->instruction;
      if (s->number > o.number) break;
      if (s->done || !j.store || j.shared || s->low >= o.high || o.low >= s->high) continue;
      for (int from = 0; from < lanes_; from++) {
        const uint64_t to = s->at[0][from];
        if (!(s->lanes >> from & 1) || to >= at + static_cast<uint64_t>(i.bytes) ||
            at >= to + static_cast<uint64_t>(j.bytes))
          continue;
        for (uint64_t b = 0; b < static_cast<uint64_t>(j.bytes); b++)
          if (to + b >= at && to + b < at + static_cast<uint64_t>(i.bytes))
            bytes[to + b - at] =
                static_cast<char>(s->data[b / 4][from] >> (b % 4 * 8 + (j.part == 2 ? 16 : 0)));
      }
    }
    for (int w = 0; w < words; w++) memcpy(&o.data[w][l], bytes + w * 4, 4);
  }
}

// In memory and in registers.
void Wave::over(size_t n) {
  std::unique_ptr<Operating> o = std::move(under_way_[n]);
  under_way_[n] = nullptr;
  const Instruction& i = *o->instruction;
  if (i.does == Does::kScalarLoad) {
    for (size_t w = 0; w < o->words.size(); w++) set(i.to[0].at + static_cast<int>(w), o->words[w]);
    return;
  }
  if (!o->done) {
    under_way_[n] = std::move(o);  // where its own reading looks for what came before
    perform(*under_way_[n]);
    o = std::move(under_way_[n]);
  }
  if (i.load) {
    const int words = (i.bytes + 3) / 4;
    for (int w = 0; w < words * i.elements; w++)
      for (int l = 0; l < lanes_; l++) {
        if (!(o->lanes >> l & 1)) continue;
        uint32_t v = o->data[w][l], &to = vector_[i.to[0].at + w][l];
        if (i.sign) v = static_cast<uint32_t>(int32_t{static_cast<int8_t>(v)});
        to = i.part == 0   ? v
             : i.part == 1 ? (to & 0xffff0000) | (v & 0xffff)
                           : (to & 0xffff) | v << 16;
      }
  }
  free_.push_back(std::move(o));
}

// Until so many are under way. Scalar loads come in any order, so that only a wait for all is one
// for them, and where they share a counter the others may be what is left.
void Wave::wait_for(Counter counter, int most) {
  int left = 0;
  for (auto& o : under_way_) left += o->counter == counter && o->instruction->does == Does::kMemory;
  for (size_t n = 0; n < under_way_.size(); n++) {
    const bool scalar = under_way_[n]->instruction->does == Does::kScalarLoad;
    if (under_way_[n]->counter != counter || (scalar && most > 0)) continue;
    if (!scalar && left <= most) continue;
    left -= !scalar;
    over(n);
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(n));
    n--;
  }
}

void Wave::wait(const Instruction& i) {
  for (int c = 0; c < kCounters; c++)
    if (i.most[c] >= 0) wait_for(static_cast<Counter>(c), i.most[c]);
}

}  // namespace amd
