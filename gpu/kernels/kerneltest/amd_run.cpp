// Blocks of an image: the waves of one take turns at barriers and where they sleep, on the fiber of
// the block's first thread, so that the emulation's order of blocks, its limits and its errors
// hold.
#include <signal.h>
#include <string.h>
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include "../emulator/block.h"
#include "../emulator/emulator.h"
#include "amd_wave.h"

namespace amd {
namespace {

class Running {
 public:
  void run(const Program& p, void* const* args) {
    const dim3 d = simt::block_dim;
    const size_t n = size_t{d.x} * d.y * d.z / static_cast<size_t>(p.lanes);
    const size_t bytes = p.shared_bytes + simt::block->dynamic_bytes;
    if (bytes > (p.target == "gfx950" ? 160 : 64) << 10) simt::fail("%zu bytes of LDS", bytes);
    shared_.resize((bytes + 3) / 4 * 4);
    for (size_t at = 0; at < shared_.size(); at += 4) memcpy(&shared_[at], &kGarbage, 4);
    shared_.resize(bytes);
    launch(p, args);
    caches_.begin(p.target == "gfx942" || p.target == "gfx950");
    while (waves_.size() < n) waves_.emplace_back(new Wave);
    const bool in_order = simt::block->step > 0;
    for (size_t w = 0; w < n; w++)
      waves_[w]->begin(p, static_cast<int>(w), &shared_, arguments_.data(),
                       simt::block->pauses ? &caches_ : nullptr, in_order);
    for (;;) {
      size_t at_barrier = 0, asleep = 0, ended = 0;
      for (size_t k = 0; k < n; k++) {
        Wave& w = *waves_[in_order ? k : n - 1 - k];
        if (w.state == Wave::kReady) w.run();
      }
      for (size_t k = 0; k < n; k++) {
        at_barrier += waves_[k]->state == Wave::kAtBarrier;
        asleep += waves_[k]->state == Wave::kAsleep;
        ended += waves_[k]->state == Wave::kEnded;
      }
      if (ended == n) return caches_.write_back();
      const Wave::State wakes = asleep ? Wave::kAsleep : Wave::kAtBarrier;
      if (asleep) simt::yield_block();
      if (!asleep && ended)
        simt::fail("%zu waves wait at a barrier, %zu have ended", at_barrier, ended);
      for (size_t k = 0; k < n; k++)
        if (waves_[k]->state == wakes) waves_[k]->state = Wave::kReady;
    }
  }

 private:
  // The arguments as a driver lays them down, by the image's own metadata; what it does not name is
  // garbage.
  void launch(const Program& p, void* const* args) {
    arguments_.assign(p.argument_bytes + 64, static_cast<char>(0xab));
    size_t given = 0;
    for (const Argument& a : p.arguments) {
      uint64_t v = 0;
      if (a.kind == "global_buffer" || a.kind == "by_value") {
        memcpy(&v, args[given++], static_cast<size_t>(a.size));
      } else {
        const dim3 grid = simt::grid_dim, block = simt::block_dim;
        const uint32_t counts[] = {grid.x, grid.y, grid.z}, sizes[] = {block.x, block.y, block.z};
        const size_t axis = static_cast<size_t>(a.kind.back() - 'x');
        if (a.kind.find("hidden_block_count_") == 0)
          v = counts[axis];
        else if (a.kind.find("hidden_group_size_") == 0)
          v = sizes[axis];
        else if (a.kind == "hidden_dynamic_lds_size")
          v = simt::block->dynamic_bytes;
        else if (a.kind == "hidden_grid_dims")
          v = 3;
        else if (a.kind.find("hidden_remainder_") && a.kind.find("hidden_global_offset_"))
          simt::fail("an argument %s", a.kind.c_str());
      }
      if (static_cast<size_t>(a.offset + a.size) > p.argument_bytes)
        simt::fail("an argument behind the others");
      memcpy(&arguments_[static_cast<size_t>(a.offset)], &v, static_cast<size_t>(a.size));
    }
  }

  std::vector<std::unique_ptr<Wave>> waves_;
  std::vector<char> shared_, arguments_;
  Caches caches_;
};

// The block's first thread, in the order in which they run, is its waves; the others are done.
void call(void (*function)(), void* const* args) {
  const simt::Block& b = *simt::block;
  const simt::Fiber* first = b.step > 0 ? &b.fibers.front() : &b.fibers.back();
  if (simt::self != first) return;
  static std::map<const simt::Block*, Running> all;  // a block's waves serve the next one too
  const Program& p = *reinterpret_cast<const Program*>(function);
  p.launched = true;
  all[&b].run(p, args);
}

// An address that nothing lies at ends the launch, not the process.
void cannot_be_touched(int) { simt::fail("memory that cannot be touched"); }

}  // namespace

std::vector<Program*> take_over(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::vector<Program*> all = parse(text.str());
  if (all.empty()) throw std::runtime_error(std::string("no kernel in ") + path);
  const std::string layout = emulator_layout();
  for (Program* p : all) {
    const std::string wanted = p->generation == 9    ? "cdna"
                               : p->generation == 11 ? "gfx11"
                                                     : "gfx12";
    if (layout != wanted || p->lanes != emulator_warp())
      throw std::runtime_error(p->target + " runs in the layout " + wanted);
    simt::add(new simt::Kernel{p->name.c_str(), p->threads, static_cast<int>(p->sizes.size()),
                               p->sizes.data(), call, reinterpret_cast<void (*)()>(p), nullptr});
  }
  for (int n = 0; n < emulator_count(); n++)  // or it would be run in the place of what is missing
    if (std::none_of(all.begin(), all.end(),
                     [&](const Program* p) { return p->name == emulator_at(n)->name; }))
      throw std::runtime_error(std::string("the image has no ") + emulator_at(n)->name +
                               ", the host's program has: KERNELS=norm.cu leaves it out");
  struct sigaction action = {};
  action.sa_handler = cannot_be_touched;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
  return all;
}

std::string coverage(const std::vector<Program*>& all) {
  size_t kernels = 0, run = 0, of = 0;
  std::string none;
  for (const Program* p : all) {
    size_t here = 0, filling = 0;
    for (const Instruction& i : p->code) {
      here += i.run;
      filling += i.name == "s_code_end";
    }
    run += here;
    of += p->code.size() - filling;
    if (here)
      kernels++;
    else
      none += (none.empty() ? "; not " : ", ") + p->name;
  }
  char text[160];
  snprintf(text, sizeof text, "%zu of %zu kernels, %zu of %zu instructions", kernels, all.size(),
           run, of);
  return text + none;
}

}  // namespace amd
