// Replays a dump (see dump/main.go) through the C functions of ../cpu.h: replay ISA THREADS FILE...
//
// Every buffer is an allocation of exactly its size, weights at odd addresses, scratch and cache
// full of NaN: what reads or writes where it should not is seen by the sanitizers, or shows in a
// logit. A step that allocates fails: the sanitizers tell of every allocation of the process.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "../cpu.h"

// Of the sanitizers' runtime; Debian's GCC lacks the header that declares it.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                             size_t),
                                                         void (*free_hook)(const volatile void*));

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::cerr << "replay: " << what << "\n";
  std::exit(1);
}

std::atomic<int64_t> allocations{0};
void counted(const volatile void*, size_t) { allocations++; }
void freed(const volatile void*) {}

// Memory of exactly `size` bytes, at an odd address when asked.
struct Buffer {
  Buffer(size_t size, bool odd) : data(new char[size + odd]), begin(data.get() + odd) {
    std::memset(begin, 0xff, size);
  }
  std::unique_ptr<char[]> data;
  char* begin;
};

class Replay {
 public:
  Replay(const char* isa, int threads, const char* path)
      : isa_(isa), threads_(threads), in_(path, std::ios::binary), pool_(ossrun_pool_new(threads)) {
    if (!in_ || !pool_) fail(std::string("cannot open ") + path);
  }
  ~Replay() {
    ossrun_tape_free(tape_);
    ossrun_pool_free(pool_);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  void run() {
    std::string text;
    while (std::getline(in_, text)) {
      std::istringstream line(text);
      std::string verb;
      line >> verb;
      if (verb == "shape") {
        shape(line);
      } else if (verb == "buffer" || verb == "weight") {
        buffer(line, verb == "weight");
      } else if (verb == "op") {
        operation(line, text);
      } else if (verb == "step") {
        step(line);
      } else {
        fail("unknown line: " + text);
      }
    }
    if (steps_ == 0) fail("no steps");
    std::printf("%s, %d threads: %d steps, worst logit off by %.2g\n", isa_, threads_, steps_,
                worst_);
  }

 private:
  void shape(std::istream& line) {
    ossrun_shape s = {};
    line >> s.hidden >> s.intermediate >> s.heads >> s.kv_heads >> s.head_dim >> s.experts >>
        s.experts_per_token >> s.page_tokens >> s.page_bytes >> s.kv;
    tape_ = ossrun_tape_new(isa_, &s);
    if (!line || !tape_) fail("no tape");
  }

  void buffer(std::istream& line, bool weight) {
    int id = 0;
    size_t size = 0;
    line >> id >> size;
    Buffer& b = buffers_.try_emplace(id, size, weight).first->second;
    if (weight) in_.read(b.begin, size);
    if (!line || !in_) fail("the dump is cut short");
  }

  // The operands, in the order Out, In, W of the program.
  template <class T>
  T* at(size_t i) {
    if (i >= operands_.size()) fail("too few operands");
    if (operands_[i] < 0) return nullptr;
    return reinterpret_cast<T*>(buffers_.at(operands_[i]).begin);
  }
  float* f(size_t i) { return at<float>(i); }
  const uint16_t* h(size_t i) { return at<uint16_t>(i); }
  int32_t* n(size_t i) { return at<int32_t>(i); }

  void operation(std::istream& line, const std::string& text) {
    std::string kind, word;
    int extent = 0;
    line >> kind >> extent;
    std::vector<double> numbers;
    while (line >> word && word != ":") numbers.push_back(std::strtod(word.c_str(), nullptr));
    operands_.clear();
    for (int id; line >> id;) operands_.push_back(id);
    numbers.resize(std::max<size_t>(numbers.size(), 4));
    if (!append(kind, ossrun_extent(extent), numbers)) fail("cannot append: " + text);
  }

  int append(const std::string& kind, ossrun_extent rows, const std::vector<double>& x) {
    ossrun_tape* t = tape_;
    const int64_t a = int64_t(x[0]), b = int64_t(x[1]);
    if (kind == "embed") return ossrun_embed(t, f(0), h(1));
    if (kind == "angles") {
      const std::vector<float> frequencies(x.begin() + 1, x.end());
      return ossrun_angles(t, f(0), frequencies.data(), float(x[0]));
    }
    if (kind == "norm") return ossrun_norm(t, rows, f(0), f(1), h(2), a, float(x[1]));
    if (kind == "linear") {
      ossrun_matrix parts[OSSRUN_MAX_PARTS];
      const ossrun_rounded bf16 = rounded(2);
      const int w = bf16.rows ? 3 : 2, count = (int(operands_.size()) - w) / 2;
      for (int i = 0; i < count; i++) {
        parts[i] = {h(w + 2 * i), h(w + 1 + 2 * i), int64_t(x[2 + i])};
      }
      return ossrun_linear(t, rows, f(0), f(1), bf16, a, parts, count, int(b));
    }
    if (kind == "rope") return ossrun_rope(t, f(0), f(1));
    if (kind == "write_kv") return ossrun_write_kv(t, at<void*>(0), f(1), a, b > 0, int(x[2]));
    if (kind == "attend") {
      const uint16_t* sinks = h(3);
      return ossrun_attend(t, f(0), f(1), at<void*>(2), &sinks, 1, a, b, int(x[2]), float(x[3]));
    }
    if (kind == "round") {
      strides_[operands_[0]] = b;
      const int32_t* order = operands_.size() > 2 ? n(2) : nullptr;
      return ossrun_round(t, at<uint16_t>(0), b, f(1), int(x[2]), a, order);
    }
    if (kind == "route") return ossrun_route(t, n(0), f(1), n(2), n(3), f(4));
    if (kind == "quantize") return ossrun_quantize(t, rows, at<int8_t>(0), f(1), f(2), a);
    if (kind == "quantize_q12") {
      return ossrun_quantize_q12(t, rows, at<int16_t>(0), f(1), f(2), a);
    }
    if (kind == "linear_q8" || kind == "linear_q8_q8") {
      ossrun_q8_matrix parts[OSSRUN_MAX_PARTS];
      const int count = int(operands_.size() - 3) / 2;
      for (int i = 0; i < count; i++) {
        parts[i] = {at<uint8_t>(3 + 2 * i), h(4 + 2 * i), int64_t(x[2 + i])};
      }
      return kind == "linear_q8"
                 ? ossrun_linear_q8(t, rows, f(0), at<int16_t>(1), f(2), a, parts, count, int(b))
                 : ossrun_linear_q8_q8(t, rows, f(0), at<int8_t>(1), f(2), a, parts, count, int(b));
    }
    if (kind == "gate_up" || kind == "down") return append_expert(kind, float(x[0]));
    if (kind == "combine") return ossrun_combine(t, f(0), f(1), f(2));
    if (kind == "gather") return ossrun_gather(t, f(0), f(1));
    fail("unknown operation " + kind);
  }

  // Operand i if it is rows for tiles.
  ossrun_rounded rounded(size_t i) {
    const auto stride = strides_.find(operands_[i]);
    if (stride == strides_.end()) return {};
    return {h(i), stride->second};
  }

  int append_expert(const std::string& kind, float limit) {
    const bool plain = operands_.size() == 7;  // else 8-bit values and their scales
    const ossrun_rounded bf16 = plain ? ossrun_rounded{} : rounded(5);
    const size_t w = plain ? 4 : bf16.rows ? 6 : 5;
    const ossrun_expert_matrix m = {at<uint8_t>(w), at<uint8_t>(w + 1), h(w + 2)};
    const float* x = plain ? f(3) : nullptr;
    const int8_t* q = plain ? nullptr : at<int8_t>(3);
    const float* d = plain ? nullptr : f(4);
    return kind == "down" ? ossrun_down(tape_, f(0), n(1), n(2), x, q, d, bf16, &m)
                          : ossrun_gate_up(tape_, f(0), n(1), n(2), x, q, d, bf16, &m, limit);
  }

  template <class T>
  std::vector<T> read(int64_t count) {
    std::vector<T> v(count);
    in_.read(reinterpret_cast<char*>(v.data()), count * sizeof(T));
    if (!in_) fail("the dump is cut short");
    return v;
  }

  void step(std::istream& line) {
    int64_t rows = 0, logit_rows = 0, table = 0, twin_count = 0, vocab = 0;
    double tolerance = 0;
    line >> rows >> logit_rows >> table >> twin_count >> vocab >> tolerance;
    if (steps_++ == 0 && !ossrun_tape_seal(tape_, threads_)) fail("no memory");
    const auto tokens = read<int32_t>(rows), positions = read<int32_t>(rows);
    const auto tables = read<int32_t>(table);
    const auto full_at = read<int32_t>(rows), window_at = read<int32_t>(rows);
    const auto twins = read<int32_t>(twin_count), logit_row = read<int32_t>(logit_rows);
    const auto marks = read<int32_t>(rows);
    const std::vector<uint8_t> prompts(marks.begin(), marks.end());
    const auto want = read<float>(logit_rows * vocab);
    std::vector<float> logits(want.size());
    // A thread allocates as it starts, and may start late: this waits until all have.
    int64_t products = 0;
    if (steps_ == 1) ossrun_multiply(pool_, isa_, threads_, 1, &products);
    allocations = 0;
    const auto run = [&](ossrun_part part, const uint64_t* wanted) {
      ossrun_step(pool_, tape_, threads_, part, rows, logit_rows, tokens.data(), positions.data(),
                  tables.data(), full_at.data(), window_at.data(), twins.data(), logit_row.data(),
                  logits.data(), wanted, nullptr, nullptr,
                  strides_.empty() ? nullptr : prompts.data());
    };
    run(OSSRUN_WHOLE, nullptr);
    if (allocations > 0) fail("step " + std::to_string(steps_) + " allocated memory");
    for (size_t i = 0; i < want.size(); i++) {
      const double e = std::fabs(double(logits[i]) - want[i]);
      if (!(e <= tolerance)) {
        fail("step " + std::to_string(steps_) + ", logit " + std::to_string(i) + ": " +
             std::to_string(logits[i]) + ", not " + std::to_string(want[i]));
      }
      worst_ = std::max(worst_, e);
    }
    if (steps_ > 1) return;
    // Again, with a few logits.
    std::vector<uint64_t> wanted((vocab + 63) / 64);
    for (int64_t i = 5; i < vocab; i += 97) wanted[i / 64] |= uint64_t{1} << (i % 64);
    const std::vector<float> all = logits;
    std::fill(logits.begin(), logits.end(), NAN);
    run(OSSRUN_BODY, nullptr);
    run(OSSRUN_LOGITS, wanted.data());
    for (size_t i = 0; i < all.size(); i++) {
      const bool some = wanted[i % vocab / 64] >> (i % vocab % 64) & 1;
      if (logits[i] != all[i] && (some || logits[i] != 0)) {
        fail("step " + std::to_string(steps_) + ", logit " + std::to_string(i) +
             " of a few: " + std::to_string(logits[i]) + ", not " + std::to_string(all[i]));
      }
    }
  }

  const char* isa_;
  int threads_;
  std::ifstream in_;
  ossrun_pool* pool_;
  ossrun_tape* tape_ = nullptr;
  std::map<int, Buffer> buffers_;
  std::map<int, int64_t> strides_;  // of those that are rows for tiles
  std::vector<int> operands_;
  int steps_ = 0;
  double worst_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: replay ISA THREADS FILE...");
  if (!ossrun_isa(argv[1])) {
    std::printf("%s: skipped, this machine does not have it\n", argv[1]);
    return 0;
  }
  if (__sanitizer_install_malloc_and_free_hooks(counted, freed) == 0) fail("no room for hooks");
  char* volatile probe = new char[argc];  // volatile: a pair that nobody sees may be left out
  delete[] probe;
  if (allocations == 0) fail("the hooks see nothing");
  for (int i = 3; i < argc; i++) Replay(argv[1], std::atoi(argv[2]), argv[i]).run();
}
