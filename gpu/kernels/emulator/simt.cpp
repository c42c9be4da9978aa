// The scheduler inside of a block: its threads on fibers.
//
// A fiber gives up the processor only in a collective, where it waits in memory for another block
// and behind an atomic operation, so a kernel's ordinary code needs no protection. Every error
// unwinds to the launch by switching back to its stack: fibers own nothing that would leak, since
// kernels hold plain values only.
#include "block.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#if defined(SIMT_ASAN)
extern "C" void __asan_unpoison_memory_region(void const volatile*, size_t);
#endif

// Saves the callee's registers and the stack pointer to *save, goes on where `load` was saved.
extern "C" void simt_switch(void** save, void* load);
#if defined(__x86_64__)
asm(R"(.text
.type simt_switch,@function
simt_switch: pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
 movq %rsp,(%rdi); movq %rsi,%rsp
 popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret
.size simt_switch,.-simt_switch)");
#elif defined(__aarch64__)
asm(R"(.text
.type simt_switch,%function
simt_switch: sub sp,sp,#160
 stp x19,x20,[sp]; stp x21,x22,[sp,#16]; stp x23,x24,[sp,#32]; stp x25,x26,[sp,#48]
 stp x27,x28,[sp,#64]; stp x29,x30,[sp,#80]
 stp d8,d9,[sp,#96]; stp d10,d11,[sp,#112]; stp d12,d13,[sp,#128]; stp d14,d15,[sp,#144]
 mov x9,sp; str x9,[x0]; mov sp,x1
 ldp x19,x20,[sp]; ldp x21,x22,[sp,#16]; ldp x23,x24,[sp,#32]; ldp x25,x26,[sp,#48]
 ldp x27,x28,[sp,#64]; ldp x29,x30,[sp,#80]
 ldp d8,d9,[sp,#96]; ldp d10,d11,[sp,#112]; ldp d12,d13,[sp,#128]; ldp d14,d15,[sp,#144]
 add sp,sp,#160; ret
.size simt_switch,.-simt_switch)");
#else
#error "simt.cpp: add a context switch for this CPU"
#endif

namespace simt {

__thread Fiber* self FIXED_PLACE;
__thread Block* block FIXED_PLACE;
__thread dim3 block_index FIXED_PLACE, block_dim FIXED_PLACE, grid_dim FIXED_PLACE;

namespace {

// Fresh: has not run, and has no stack yet.
enum { kFresh, kRunnable, kWaitsForWarp, kWaitsForBlock, kWaitsInMemory, kReturned, kStates };

// Stacks lie at an odd stride: at a power of two all of them would share one set of the cache.
constexpr size_t kStackBytes = (64 << 10) + 4096 + 192;
constexpr size_t kGuardBytes = 64;
constexpr unsigned char kGuard = 0xa5;
constexpr size_t kMostStaticShared = 48 << 10;

void* fresh_stack(char* top, void (*entry)()) {
#if defined(__x86_64__)
  void** p = reinterpret_cast<void**>(top);
  *--p = nullptr;
  *--p = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; i++) *--p = nullptr;
  return p;
#else
  char* p = top - 160;
  memset(p, 0, 160);
  *reinterpret_cast<void**>(p + 88) = reinterpret_cast<void*>(entry);
  return p;
#endif
}

// Back to the launch; never returns where no fiber of the block is needed any more.
void leave(Left why) {
  Block& b = *block;
  b.left = why;
  void* dead;
  simt_switch(self ? &self->stack_pointer : &dead, b.launcher);
}

}  // namespace

void fail(const char* format, ...) {
  Block& b = *block;
  const int n =
      snprintf(b.error, sizeof b.error, "%s, block (%u,%u,%u), thread %d: ", b.kernel->name,
               block_index.x, block_index.y, block_index.z, int(self - b.fibers.data()));
  va_list list;
  va_start(list, format);
  vsnprintf(b.error + n, sizeof b.error - n, format, list);
  va_end(list);
  leave(Left::kFailed);
  __builtin_unreachable();
}

namespace {

void give_up() {
  Block& b = *block;
  int at[kStates] = {};
  for (const Fiber& f : b.fibers) at[f.state]++;
  fail("deadlock: %d threads wait in a warp collective, %d at a barrier (%s:%d), %d have returned",
       at[kWaitsForWarp], at[kWaitsForBlock], b.file ? b.file : "none", b.line, at[kReturned]);
}

// Whether it can go on: what it waited for has come.
inline bool runnable(const Block& b, Fiber& f) {
  if (f.state == kWaitsForWarp && b.warps[f.warp].generation != f.waits_for) f.state = kRunnable;
  if (f.state == kWaitsForBlock && b.generation != f.waits_for) f.state = kRunnable;
  return f.state <= kRunnable;
}

// The fiber whose turn it is when `me` gives up the processor: of the own warp if there is one that
// can go on. Null: none can.
inline Fiber* successor(Block& b, Fiber* me) {
  Fiber* all = b.fibers.data();
  Fiber* own = all + me->warp * WARP;
  for (int i = 0, at = me->lane; i < WARP; i++) {
    at = (at + b.step) & (WARP - 1);
    if (runnable(b, own[at])) return own + at;
  }
  for (int i = 0, at = int(me - all); i < b.threads; i++) {
    at += b.step;
    at = at == b.threads ? 0 : at < 0 ? b.threads - 1 : at;
    if (runnable(b, all[at])) return all + at;
  }
  return nullptr;
}

void entry();

// Makes f the one that runs; its stack is what to switch to.
inline void* take_over(Block& b, Fiber* f) {
  self = f;
  b.switches++;
  if (f->state == kFresh) {
    f->state = kRunnable;
    char* bottom = b.stacks + (f - b.fibers.data()) * kStackBytes;
#if defined(SIMT_ASAN)  // a fiber that has returned leaves its red zones behind
    __asan_unpoison_memory_region(bottom, kStackBytes);
#endif
    f->stack_pointer = fresh_stack(bottom + kStackBytes, entry);
  }
  return f->stack_pointer;
}

// All have returned, or wait for another block, or for each other.
void nobody(Block& b) {
  if (b.returned == b.threads) return leave(Left::kReturned);
  if (b.waiting == 0) give_up();
  leave(Left::kWaits);
}

// Hands over to another fiber, or back to the launch.
__attribute__((noinline)) void next() {
  Block& b = *block;
  Fiber* me = self;
  Fiber* f = successor(b, me);
  if (f == nullptr) return nobody(b);
  if (f == me) return;
  simt_switch(&me->stack_pointer, take_over(b, f));
}

// The life of a stack: one thread after another, as long as those that come have not begun. Threads
// that meet nobody on their way so need no stacks of their own.
void entry() {
  Block& b = *block;
  for (;;) {
    b.kernel->call(b.kernel->function, b.args);
    Fiber* me = self;
    Warp& w = b.warps[me->warp];
    me->state = kReturned;
    b.returned++;
    b.progress++;
    w.returned++;
    if (w.arrived) fail("lanes returned while %d others of the warp wait for them", w.arrived);
    if (b.arrived)
      fail("threads returned while %d others wait at the barrier %s:%d", b.arrived, b.file, b.line);
    Fiber* f = successor(b, me);
    if (f == nullptr) nobody(b);
    if (f->state == kFresh) {
      f->state = kRunnable;
      self = f;
    } else {
      void* dead;
      simt_switch(&dead, take_over(b, f));
    }
  }
}

}  // namespace

namespace {

// Whether this lane is the last of its warp to meet the collective, and so goes on at once; the
// others come back when it has left the processor.
inline bool last_of_warp(int collective, Work work) {
  Fiber* me = self;
  Warp& w = block->warps[me->warp];
  if (w.arrived == 0) {
    w.collective = collective;
    w.work = work;
  }
  if (w.collective != collective || w.work != work)
    fail("the lanes of a warp meet different collectives");
  if (w.returned) fail("a warp collective after %d lanes returned", w.returned);
  block->progress++;
  if (++w.arrived == WARP) {
    w.arrived = 0;
    w.generation++;
    return true;
  }
  me->waits_for = w.generation;
  me->state = kWaitsForWarp;
  next();
  return false;
}

}  // namespace

__attribute__((noinline)) void sync_warp(int collective) { last_of_warp(collective, nullptr); }

uint64_t together(int collective, uint64_t mine, Work work) {
  const int lane = self->lane;
  Warp& w = block->warps[self->warp];
  uint64_t* all = w.slot[w.generation & 1];
  all[lane] = mine;
  if (last_of_warp(collective, work)) work(all);
  return all[lane];
}

__attribute__((noinline)) void sync_block(const char* file, int line) {
  Block& b = *block;
  Fiber* me = self;
  if (b.returned) fail("barrier %s:%d after %d threads returned", file, line, b.returned);
  if (b.arrived == 0) {
    b.file = file;
    b.line = line;
  } else if (b.line != line || (b.file != file && strcmp(b.file, file) != 0)) {
    fail("divergent barrier: %s:%d while others wait at %s:%d", file, line, b.file, b.line);
  }
  b.progress++;
  const unsigned generation = b.generation;
  if (++b.arrived == b.threads) {
    b.arrived = 0;
    b.generation++;
    return;
  }
  me->waits_for = generation;
  me->state = kWaitsForBlock;
  next();
}

uint64_t exchange(uint64_t v, int from) {
  Fiber* me = self;
  Warp& w = block->warps[me->warp];
  if (from < 0 || from >= WARP) fail("a shuffle reads lane %d", from);
  const unsigned g = w.generation & 1;
  w.slot[g][me->lane] = v;
  sync_warp(kShuffle);
  return w.slot[g][from];
}

namespace {

char* aligned(char* p) { return reinterpret_cast<char*>((uintptr_t(p) + 127) & ~uintptr_t{127}); }

void poison(char* p, size_t bytes) {
  memset(p, 0xff, bytes);
  memset(p + bytes, kGuard, kGuardBytes);
}

bool guarded(const char* p, size_t bytes) {
  for (size_t i = 0; i < kGuardBytes; i++)
    if (static_cast<unsigned char>(p[bytes + i]) != kGuard) return false;
  return true;
}

}  // namespace

void* shared_array(const void* site, size_t bytes) {
  Block& b = *block;
  size_t sum = bytes;
  for (SharedArray& a : b.arrays) {
    if (a.site == site && a.live) return aligned(a.memory.get());
    if (a.live) sum += a.bytes;
  }
  if (sum > kMostStaticShared) fail("%zu bytes of static shared memory", sum);
  for (SharedArray& a : b.arrays) {
    if (a.site != site) continue;
    a.live = true;
    poison(aligned(a.memory.get()), bytes);
    return aligned(a.memory.get());
  }
  b.arrays.push_back(
      {site, std::unique_ptr<char[]>(new char[bytes + kGuardBytes + 128]), bytes, true});
  char* p = aligned(b.arrays.back().memory.get());
  poison(p, bytes);
  return p;
}

void* dynamic_shared() { return aligned(block->dynamic.data()); }

// The other threads of the block go first: one that waits in memory holds up nobody.
void yield_block() {
  self->state = kWaitsInMemory;
  block->waiting++;
  next();
}

void pause_block() {
  Block& b = *block;
  b.progress++;
  if (!b.pauses) return;
  b.next = self;
  leave(Left::kPaused);
}

Block::~Block() {
  if (stacks) munmap(stacks, capacity * kStackBytes);
}

void Block::reserve(int n) {
  if (capacity >= n) return;
  if (stacks) munmap(stacks, capacity * kStackBytes);
  stacks = static_cast<char*>(mmap(nullptr, n * kStackBytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  capacity = n;
}

void Block::check_guards() {
  if (!guarded(aligned(dynamic.data()), dynamic_bytes))
    snprintf(error, sizeof error, "%s: wrote behind its %zu bytes of dynamic shared memory",
             kernel->name, dynamic_bytes);
  for (SharedArray& a : arrays) {
    if (a.live && !guarded(aligned(a.memory.get()), a.bytes))
      snprintf(error, sizeof error, "%s: wrote behind a shared array of %zu bytes", kernel->name,
               a.bytes);
  }
}

void Block::begin(dim3 at) {
  index = at;
  const int n = int(block_dim.x * block_dim.y * block_dim.z);
  reserve(n);
  threads = n;
  returned = arrived = waiting = 0;
  progress = 0;
  error[0] = 0;
  for (SharedArray& a : arrays) a.live = false;
  fibers.resize(n);
  warps.resize(n / WARP);
  for (Warp& w : warps) w.arrived = w.returned = 0;
  dynamic.resize(dynamic_bytes + kGuardBytes + 128);
  poison(aligned(dynamic.data()), dynamic_bytes);
  for (int i = 0; i < n; i++) {
    Fiber& f = fibers[i];
    f.state = kFresh;
    f.lane = i % WARP;
    f.warp = i / WARP;
    f.thread = {i % block_dim.x, i / block_dim.x % block_dim.y, i / (block_dim.x * block_dim.y)};
  }
  next = step > 0 ? &fibers[0] : &fibers[n - 1];
}

Left Block::resume() {
  if (waiting > 0 && left == Left::kWaits) {  // they look again
    for (Fiber& f : fibers) {
      if (f.state != kWaitsInMemory) continue;
      f.state = kRunnable;
      next = &f;
    }
    waiting = 0;
  }
  block = this;
  block_index = index;
  simt_switch(&launcher, take_over(*this, next));
  block = nullptr;
  if (left == Left::kReturned) {
    check_guards();
    if (error[0]) left = Left::kFailed;
  }
  return left;
}

}  // namespace simt
