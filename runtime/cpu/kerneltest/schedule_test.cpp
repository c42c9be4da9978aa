// How evenly threads share a step of one row, computed for machines that this project has not got:
// many cores, and cores of two or three kinds. A barrier's own time is not in it.
#include "../schedule.h"

#include <cstdio>
#include <vector>

#include "check.h"

namespace {

using ossrun::Shares;

// Seconds that an operation of so many tiles takes when each thread takes the next task as soon as
// it has ended one; a tile takes one at speed 1.
double seconds(int64_t tiles, const std::vector<double>& speeds) {
  const Shares shares(tiles, static_cast<int>(speeds.size()));
  std::vector<double> ended(speeds.size(), 0);
  double last = 0;
  for (int64_t task = 0, tasks = shares.count(); task < tasks; task++) {
    size_t next = 0;
    for (size_t i = 1; i < ended.size(); i++) {
      if (ended[i] < ended[next]) next = i;
    }
    const Shares::Range r = shares[task];
    ended[next] += static_cast<double>(r.end - r.begin) / speeds[next];
    last = std::max(last, ended[next]);
  }
  return last;
}

// The matrices of a layer of 20b, by their rows: qkv, o, four experts' gate and up, their down, and
// a layer's share of the unembedding.
const struct {
  std::vector<int64_t> rows;
  int64_t copies;
} kLayer[] = {{{4096, 512, 512}, 1}, {{2880}, 1}, {{5760}, 4}, {{2880}, 4}, {{201088 / 24}, 1}};

// The share of a step's time in which threads wait for the last ones of an operation. height: of
// all tiles; 0 for what tile_height chooses.
double lost(const std::vector<double>& speeds, int64_t height) {
  double ideal = 0, real = 0, speed = 0;
  for (const double s : speeds) speed += s;
  for (const auto& m : kLayer) {
    const int64_t h = height > 0
                          ? height
                          : ossrun::tile_height(m.rows.data(), static_cast<int>(m.rows.size()),
                                                m.copies, static_cast<int>(speeds.size()));
    int64_t tiles = 0, rows = 0;
    for (const int64_t n : m.rows) {
      tiles += ossrun::divide_up(n, h);
      rows += n;
    }
    ideal += static_cast<double>(rows * m.copies) / speed;
    real += seconds(tiles * m.copies, speeds) * static_cast<double>(h);
  }
  return 1 - ideal / real;
}

std::vector<double> cores(const std::vector<std::pair<int, double>>& kinds) {
  std::vector<double> speeds;
  for (const auto& [n, speed] : kinds) speeds.insert(speeds.end(), n, speed);
  return speeds;
}

}  // namespace

void test_schedule(Checker& check) {
  printf("  threads: lost with chosen tiles (with tiles of 64 rows)\n ");
  for (const int threads : {2, 8, 16, 24, 32, 48, 64, 96, 128}) {
    const std::vector<double> speeds(threads, 1);
    const double now = lost(speeds, 0);
    printf(" %d: %.1f %% (%.1f)", threads, 100 * now, 100 * lost(speeds, ossrun::kTile));
    check.that(now < 0.10, "threads wait for less than 10 %", threads, now);
  }
  printf("\n  cores of several kinds\n");
  const std::vector<std::vector<std::pair<int, double>>> machines = {
      {{4, 1}, {4, 0.45}}, {{8, 1}, {16, 0.55}}, {{6, 1}, {8, 0.5}}, {{1, 1}, {3, 0.85}, {4, 0.45}},
      {{2, 1}, {8, 0.5}},  {{4, 1}, {4, 0.33}},
  };
  for (const auto& m : machines) {
    const std::vector<double> fast(m[0].first, 1), all = cores(m);
    double speed = 0;
    for (const double s : all) speed += s;
    const double now = lost(all, 0);
    const double gain = speed * (1 - now) / (m[0].first * (1 - lost(fast, 0)));
    printf(" ");
    for (const auto& [n, s] : m) printf(" %d at %.2f", n, s);
    printf(": %.1f %% lost, %.2f times the fastest kind alone\n", 100 * now, gain);
    check.that(now < 0.10, "a slow core makes others wait for less than 10 %", m[0].first, now);
    check.that(gain > 1.2, "slow cores help", m[0].first, gain);
  }
}
