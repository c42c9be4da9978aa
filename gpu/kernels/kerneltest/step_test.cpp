// decode_step: phases behind a barrier over the grid. What a table of phases leaves must be, bit
// for bit, what the same phases leave as launches of their own, however many blocks there are and
// in whatever order they run; and the barrier's counts must be as they were.
#include "attention.h"

namespace {

constexpr int kRecord = 24, kLine = 32;
enum {
  kEmbed,
  kAngles,
  kGather,
  kQKV1,
  kQKV4,
  kAttend,
  kLinear1,
  kLinear4,
  kRoute,
  kGateUp,
  kDown
};

unsigned warps() { return unsigned(256 / emulator_warp()); }

// A step as its launches and as its table.
struct Step {
  struct One {
    const char* kernel;
    Grid grid;
    size_t shared;
    Arguments arguments;
  };
  std::vector<One> launches;
  std::vector<int64_t> table;
  size_t shared = 0;

  template <class... A>
  void add(int phase, const char* kernel, Grid g, size_t bytes, A&&... args) {
    Arguments a;
    (a.push(args), ...);
    const size_t at = table.size();
    table.resize(at + kRecord);
    table[at] = phase | int64_t{g.x} << 32;
    table[at + 1] = g.y | int64_t{g.z} << 32;
    for (size_t i = 0; i < a.words.size(); i++) table[at + 2 + i] = int64_t(a.words[i]);
    shared = std::max(shared, bytes);
    launches.push_back({kernel, g, bytes, a});
  }
  void run_one_by_one() const {
    for (const One& l : launches)
      launch_arguments(l.kernel, l.grid, 256, l.shared, l.arguments, false);
  }
  int phases() const { return int(launches.size()); }
};

// A layer of a model, with a cache of T: its weights, its buffers, its step.
template <class T>
struct Layer {
  static constexpr int kHidden = 96, kInter = 64, kExperts = 10, kTop = 2;
  Attention<T> t;
  int rows, bucket;
  Memory<int> tokens, chosen, arrived;
  Memory<bf16> embedding, norm, wq, bq, wk, bk, wv, bv, wo, bo, norm2, router_w, router_b, gate_b,
      down_b;
  Memory<uint8_t> gate_q, gate_s, down_q, down_s;
  Memory<float> frequencies, x, angles, qkv, o, partial, normed, router, weights, h;
  Step step;

  static reference::Experts gate() { return {kExperts, 2 * kInter, kHidden, 124}; }
  static reference::Experts down() { return {kExperts, kHidden, kInter, 122}; }

  explicit Layer(int at_once, std::vector<int> lengths)
      : t({4, 2, 64}, lengths, 1),
        rows(t.rows()),
        bucket(rows + 1),
        tokens(std::vector<int>(bucket, 3)),
        chosen(bucket * kTop),
        arrived(std::vector<int>(bucket * 2, 0)),
        embedding(halves(8 * kHidden)),
        norm(halves(kHidden)),
        wq(halves(4 * 64 * kHidden)),
        bq(halves(4 * 64)),
        wk(halves(2 * 64 * kHidden)),
        bk(halves(2 * 64)),
        wv(halves(2 * 64 * kHidden)),
        bv(halves(2 * 64)),
        wo(halves(kHidden * 4 * 64)),
        bo(halves(kHidden)),
        norm2(halves(kHidden)),
        router_w(halves(kExperts * kHidden)),
        router_b(halves(kExperts)),
        gate_b(gate().bias),
        down_b(down().bias),
        gate_q(gate().blocks),
        gate_s(gate().scales),
        down_q(down().blocks),
        down_s(down().scales),
        frequencies(floats(32)),
        x(bucket * kHidden),
        angles(bucket * 64),
        qkv(bucket * t.heads.width()),
        o(bucket * 4 * 64),
        partial(bucket * 2 * 3 * 8 * 66),
        normed(bucket * kHidden),
        router(bucket * kExperts),
        weights(bucket * kTop),
        h(bucket * kTop * kInter) {
    const float eps = 1e-5f;
    const unsigned some = divide_up(bucket, at_once), all = unsigned(bucket);
    const bool four = at_once == 4, half = sizeof(T) == 2;
    const char* const qkv_kernels[2][2] = {{"decode_qkv_f32_1", "decode_qkv_f32_4"},
                                           {"decode_qkv_bf16_1", "decode_qkv_bf16_4"}};
    step.add(kEmbed, "embed", {all}, 0, t.count, x, tokens, embedding, int(kHidden));
    step.add(kAngles, "angles", {all}, 0, t.count, angles, t.positions, frequencies, 32, 1.0f);
    step.add(four ? kQKV4 : kQKV1, qkv_kernels[half][four], {some, 5}, 4 * kHidden * at_once,
             t.count, qkv, t.layer(), x, norm, wq, bq, wk, bk, wv, bv, angles, t.positions,
             t.tables, t.table_at, t.page_elements, int(kHidden), 4, 2, 64, eps);
    step.add(kAttend, half ? "decode_attend_bf16" : "decode_attend_f32", {2, all, 3},
             2048 + 3136 * warps(), t.count, nullptr, o, partial, arrived, qkv, t.layer(), t.sinks,
             t.positions, t.tables, t.table_at, t.page_elements, 4, 2, 0, 3, t.scale);
    step.add(four ? kLinear4 : kLinear1, four ? "decode_linear_4" : "decode_linear_1", {some, 3},
             4 * 256 * at_once, t.count, x, o, nullptr, wo, bo, 256, int(kHidden), int(kHidden), 1,
             0.0f);
    step.add(kRoute, "decode_route", {all, divide_up(kExperts, warps())}, 4 * kHidden, t.count,
             chosen, weights, normed, router, arrived, x, norm2, router_w, router_b, int(kHidden),
             int(kExperts), int(kTop), eps);
    step.add(kGateUp, "decode_gate_up", {all * kTop, 4}, 4 * kHidden, t.count, h, chosen, normed,
             gate_q, gate_s, gate_b, int(kInter), int(kHidden), int(kTop), 7.0f);
    step.add(kDown, "decode_down", {all, 3}, 4 * kInter * kTop, t.count, x, chosen, weights, h,
             down_q, down_s, down_b, int(kHidden), int(kInter), int(kTop));
    step.add(kGather, "gather", {all}, 0, t.count, normed, x, tokens, int(kHidden));
    for (int i = 0; i < bucket; i++) tokens[i] = i % rows;
  }

  // Everything that a step writes.
  void forget() {
    for (Memory<float>* m : {&x, &angles, &qkv, &o, &partial, &normed, &router, &weights, &h})
      memset(m->data(), 0xff, m->size() * 4);
    memset(chosen.data(), 0xff, chosen.size() * 4);
  }
  std::vector<float> results() const {
    std::vector<float> all;
    for (const Memory<float>* m : {&x, &qkv, &o, &normed, &router, &weights, &h})
      all.insert(all.end(), m->data(), m->data() + m->size());
    for (float v : t.cache.values()) all.push_back(v);
    for (int v : chosen.values()) all.push_back(float(v));
    return all;
  }
};

template <class T>
void launch_step(Layer<T>& l, Memory<int64_t>& table, Memory<int>& state, unsigned blocks, int fan,
                 bool cooperative = true) {
  Arguments a;
  a.push(table);
  a.push(l.step.phases());
  a.push(state);
  a.push(fan);
  launch_arguments(sizeof(T) == 2 ? "decode_step_bf16" : "decode_step_f32", {blocks}, 256,
                   l.step.shared, a, cooperative);
}

template <class T = float>
void decode_step_of(int at_once, std::vector<int> lengths, unsigned blocks, int fan, int order,
                    int number = 0) {
  Layer<T> l(at_once, lengths);
  l.step.run_one_by_one();
  const std::vector<float> want = l.results();
  Memory<int64_t> table(l.step.table);
  Memory<int> state(std::vector<int>(kLine * (2 + divide_up(blocks, fan)), 0));
  state[0] = number;
  emulator_blocks(order, blocks);
  for (int step = 1; step <= 2; step++) {  // one step leaves the state as the next one needs it
    l.forget();
    launch_step(l, table, state, blocks, fan);
    const std::vector<float> have = l.results();
    for (size_t i = 0; i < want.size(); i++)
      if (memcmp(&have[i], &want[i], 4))
        fail("%u blocks, step %d: result %zu is %.9g, not %.9g", blocks, step, i, have[i], want[i]);
    for (size_t i = 0; i < state.size(); i++)
      if (state[i] != (i == 0 ? int(unsigned(number) + step * (l.step.phases() - 1)) : 0))
        fail("step %d leaves %d at %zu of the barrier's state", step, state[i], i);
  }
}

TEST(decode_step_one_block) { decode_step_of(1, {5}, 1, 1, kNewestFirst); }
TEST(decode_step_newest_first) { decode_step_of(1, {33}, 5, 5, kNewestFirst); }
TEST(decode_step_bf16) { decode_step_of<bf16>(4, {33, 2}, 3, 2, kNewestFirst); }
TEST(decode_step_oldest_first) { decode_step_of(4, {600, 7, 32}, 7, 2, kOldestFirst); }
TEST(decode_step_any_order) {
  for (int seed = 3; seed < 6; seed++) decode_step_of(1, {40, 1}, 6, 4, seed);
}

// The barrier's number goes round: 147 barriers a token get there in some hours.
TEST(decode_step_number_goes_round) { decode_step_of(1, {5}, 3, 3, kNewestFirst, 0x7fffffff - 4); }

// More blocks than are resident: a cooperative launch is refused, any other one waits for ever.
TEST(decode_step_grid_too_large) {
  Layer<float> l(1, {9});
  Memory<int64_t> table(l.step.table);
  Memory<int> state(std::vector<int>(kLine * 3, 0));
  emulator_blocks(kNewestFirst, 3);
  for (bool cooperative : {true, false}) {
    std::string why;
    try {
      launch_step(l, table, state, 4, 4, cooperative);
    } catch (const Failure& f) {
      why = f.what;
    }
    if (why.find(cooperative ? "4 blocks, 3 are resident" : "deadlock: 3 blocks wait") ==
        std::string::npos)
      fail("a grid of 4 blocks where 3 are resident: %s", why.c_str());
  }
}

}  // namespace
