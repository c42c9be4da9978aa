// The shipped AMD images instead of the sources: an interpreter of the machine code's disassembly.
//
// A kernel of the image takes the place of the one that was compiled for the host, under the same
// name, so every case holds the image to its reference. The first thread of a block runs all of its
// waves, instruction by instruction, the others nothing; blocks are the emulation's, so those that
// run at once change over at atomic operations and where one sleeps.
//
// What must stay true: an instruction or an operand that is not known is an error when the text is
// read, never skipped. A register that a load will write is garbage until the load was waited for,
// and what a wave stored is seen by others only when it was waited for. Loads read as late as their
// wait where the threads of a block are in order, and as early as they are asked for where they are
// in reverse: memory may do either. Shared memory is garbage at first.
#ifndef OSSRUN_GPU_KERNELTEST_AMD_H_
#define OSSRUN_GPU_KERNELTEST_AMD_H_

#include <stdint.h>
#include <string.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace amd {

// Scalar registers by their codes in the ISA; those of both halves of 64 bits follow each other.
enum { kVcc = 106, kTtmp = 108, kM0 = 124, kNull = 125, kExec = 126, kScalars = 128 };
enum { kAccumulators = 256, kVectors = 512 };  // vector registers, the second half: a0, a1, ...
constexpr uint32_t kGarbage = 0x7fa0dead;      // NaN, and no address

// What an operation is given of a lane, or of the wave: operands, what is in its register before,
// and a bit: the carry of a lane, or SCC, which it may change.
struct Values {
  uint64_t a = 0, b = 0, c = 0, old = 0, table = 0;  // table: of bitop3
  bool bit = false;
  int lane = 0;
};
// An operation's types, written first and then read: i of 32 bits, h of 16, q and d of 64 (integer,
// float: literals differ), m a bit of every lane.
struct Operation {
  const char* types;
  uint64_t (*of)(Values&);
};
// Null when there is none of that name.
const Operation* scalar_operation(const std::string& name);
const Operation* vector_operation(const std::string& name);

struct Operand {
  enum Kind : uint8_t { kNone, kVector, kScalar, kConstant } kind = kNone;
  int at = 0, words = 1;  // registers
  uint32_t value[2] = {0, 0};
  bool negated = false, absolute = false, extended = false;
  int shift = 0, bits = 32;  // of a register's word, where only a part is meant
};

enum class Does {
  kNothing,
  kScalar,
  kVector,
  kPacked,  // two floats at once
  kMovePacked,
  kSaveExec,
  kFirstLane,
  kReadLane,
  kWriteLane,
  kMatrix,
  kMemory,
  kEmpty,  // a cache
  kScalarLoad,
  kWait,
  kSignal,  // of GFX12, whose barrier is two instructions
  kBarrier,
  kSleep,
  kBranch,
  kEnd
};
enum class When { kAlways, kScc0, kScc1, kVccZero, kVccNot, kExecZero, kExecNot };
enum { kNear = 1, kFar = 2 };  // caches: of a wave, of its block
enum Counter : uint8_t { kLoads, kStores, kShared, kScalarLoads, kCounters };

struct Instruction {
  Does does = Does::kNothing;
  When when = When::kAlways;
  const Operation* operation = nullptr;
  std::string name, text;  // without _e32 and such
  std::vector<Operand> to, of;
  bool to_exec = false;                         // v_cmpx
  int low[3] = {0, 0, 0}, high[3] = {1, 1, 1};  // op_sel
  bool low_negated[3] = {}, high_negated[3] = {};
  std::unique_ptr<Instruction> second;  // v_dual: both read before either writes
  uint64_t address = 0;
  int64_t target = -1;  // of a branch: an address, then an index
  // memory
  bool shared = false, load = false, store = false, atomic = false, device = false,
       permutes = false;
  uint64_t table = 0;
  int bytes = 0, elements = 1, spread = 0;  // spread: bytes that a step of an offset is
  bool sign = false;
  int empties = 0;  // caches
  bool writes_back = false;
  int part = 0;  // 1, 2: the low, the high half of a register alone
  int64_t offset[2] = {0, 0};
  int most[kCounters] = {-1, -1, -1, -1};  // of a wait
  mutable bool run = false;                // by a wave
};

struct Argument {
  int offset = 0, size = 0;
  std::string kind;
};

struct Program {
  std::string name, target;
  int generation = 0, lanes = 0, threads = 0;  // 9, 11 or 12
  std::vector<Argument> arguments;
  std::vector<int> sizes;  // of those that a launch gives
  std::vector<Instruction> code;
  uint32_t shared_bytes = 0, argument_bytes = 0, settings[3] = {0, 0, 0}, properties = 0;
  int vectors = 0, accumulators = 0;  // registers that a wave has
  mutable bool launched = false;
};

[[noreturn]] inline void unknown(const std::string& what) {
  throw std::runtime_error("an image that is not known: " + what);
}
inline bool begins(const std::string& s, const char* with) {
  return s.compare(0, strlen(with), with) == 0;
}

// Reads what llvm-readelf --notes --symbols and llvm-objdump -s -j .rodata and -d say of an image;
// throws std::runtime_error with the line that it does not know.
std::vector<Program*> parse(const std::string& text);

// Reads a line of a disassembly.
void read_instruction(const Program& p, const std::string& line, Instruction& i);

// Puts the kernels of a file in the place of those of the same name.
std::vector<Program*> take_over(const char* path);

// What of them has been run, for people.
std::string coverage(const std::vector<Program*>& all);

// Breaks an instruction that has been run, another one by each number; says which and how.
std::string broken(Program& p, unsigned number);

}  // namespace amd

#endif  // OSSRUN_GPU_KERNELTEST_AMD_H_
