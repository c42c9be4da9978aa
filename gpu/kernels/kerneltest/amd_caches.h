// The caches between a block and memory, where blocks run at once: what was read once is read again
// as it was, until an instruction empties the cache, and a chiplet of MI300's keeps what it stores
// until that is written back. The worst that a card may do: every block is on a chiplet and an
// array of its own, on RDNA every wave on a unit of its own, and no line is ever replaced.
#ifndef OSSRUN_GPU_KERNELTEST_AMD_CACHES_H_
#define OSSRUN_GPU_KERNELTEST_AMD_CACHES_H_

#include <stdint.h>
#include <string.h>
#include <algorithm>
#include <array>
#include <bitset>
#include <unordered_map>

namespace amd {

constexpr uint64_t kLineBytes = 128;

struct Caches {
  typedef std::unordered_map<uint64_t, std::array<char, kLineBytes>> Lines;
  struct Kept {
    std::array<char, kLineBytes> bytes;
    std::bitset<kLineBytes> there;
  };

  Lines far;                                // of the block
  std::unordered_map<uint64_t, Kept> kept;  // stored, not written back
  bool keeps = false;

  void begin(bool keeps_stores) {
    far.clear();
    kept.clear();
    keeps = keeps_stores;
  }

  // In lines: what(line, its own bytes, the caller's bytes, how many).
  template <class What>
  static void by_line(uint64_t at, uint64_t bytes, What what) {
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t line = (at + done) / kLineBytes * kLineBytes, from = at + done - line;
      const uint64_t n = std::min(bytes - done, kLineBytes - from);
      what(line, from, done, n);
      done += n;
    }
  }

  void from_memory(uint64_t at, char* to, uint64_t bytes) const {
    memcpy(to, reinterpret_cast<const char*>(at), bytes);
    if (kept.empty()) return;
    by_line(at, bytes, [&](uint64_t line, uint64_t from, uint64_t done, uint64_t n) {
      const auto own = kept.find(line);
      if (own == kept.end()) return;
      for (uint64_t b = 0; b < n; b++)
        if (own->second.there[from + b]) to[done + b] = own->second.bytes[from + b];
    });
  }

  // Through both caches; near is null where there is but one. A line lies in one page, so all of it
  // can be read where a byte of it can.
  void load(Lines* near, uint64_t at, char* to, uint64_t bytes) {
    by_line(at, bytes, [&](uint64_t line, uint64_t from, uint64_t done, uint64_t n) {
      Lines& first = near ? *near : far;
      auto found = first.find(line);
      if (found == first.end()) {
        std::array<char, kLineBytes> all;
        const auto behind = near ? far.find(line) : far.end();
        if (behind != far.end())
          all = behind->second;
        else
          from_memory(line, all.data(), kLineBytes);
        if (near) far[line] = all;
        found = first.emplace(line, all).first;
      }
      memcpy(to + done, found->second.data() + from, n);
    });
  }

  // For all, or to be written back; the own caches have it too.
  void store(Lines* near, uint64_t at, const char* of, uint64_t bytes, bool for_all) {
    if (for_all || !keeps) memcpy(reinterpret_cast<char*>(at), of, bytes);
    by_line(at, bytes, [&](uint64_t line, uint64_t from, uint64_t done, uint64_t n) {
      for (Lines* cache : {near, &far}) {
        if (!cache) continue;
        const auto found = cache->find(line);
        if (found != cache->end()) memcpy(found->second.data() + from, of + done, n);
      }
      if (for_all || !keeps) return;
      Kept& own = kept[line];
      memcpy(own.bytes.data() + from, of + done, n);
      for (uint64_t b = 0; b < n; b++) own.there[from + b] = true;
    });
  }

  void write_back() {
    for (const auto& line : kept)
      for (uint64_t b = 0; b < kLineBytes; b++)
        if (line.second.there[b]) reinterpret_cast<char*>(line.first)[b] = line.second.bytes[b];
    kept.clear();
  }
};

}  // namespace amd

#endif  // OSSRUN_GPU_KERNELTEST_AMD_CACHES_H_
