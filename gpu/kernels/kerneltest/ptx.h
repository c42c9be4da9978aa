// The shipped PTX instead of the sources: an interpreter whose threads are the emulation's fibers.
//
// A kernel of the text takes the place of the one that was compiled for the host, under the same
// name, so every case holds the text to its reference. What must stay true: an instruction, a type
// or an operand that is not known is an error when the text is read, never skipped; addresses are
// aligned as PTX wants it; shared memory is the emulation's, with its guards and its NaN.
#ifndef OSSRUN_GPU_KERNELTEST_PTX_H_
#define OSSRUN_GPU_KERNELTEST_PTX_H_

#include <stdint.h>
#include <map>
#include <string>
#include <vector>

namespace ptx {

enum Type {
  kNoType,
  kPred,
  kB8,
  kU8,
  kS8,
  kB16,
  kU16,
  kS16,
  kB32,
  kU32,
  kS32,
  kB64,
  kU64,
  kS64,
  kF32,
  kF64,
  kBF16x2,
  kF16x2,
  kE4M3x2,
  kF32x2
};

enum Op {
  kAbs,
  kAdd,
  kAnd,
  kArrive,
  kAtomAdd,
  kBarrier,
  kBfe,
  kBranch,
  kBranchTable,
  kCommitCopies,
  kCopyAhead,
  kCopySign,
  kCvt,
  kCvta,
  kCvtaToShared,
  kDiv,
  kExp2,
  kFma,
  kLoad,
  kLoadMatrix,
  kLoadParam,
  kMad,
  kMax,
  kMin,
  kMma,
  kMmaF16,
  kMmaMx,
  kMov,
  kMul,
  kMulHi,
  kMulWide,
  kNeg,
  kNot,
  kNothing,
  kOr,
  kPack,
  kPermute,
  kRcp,
  kRem,
  kReturn,
  kSelp,
  kSetp,
  kShl,
  kShr,
  kShuffleIndex,
  kShuffleXor,
  kSqrt,
  kStore,
  kSub,
  kUnpack,
  kWarpBarrier,
  kWgmma,
  kWgmmaCommit,
  kWgmmaWait,
  kXor
};

enum Space { kGeneric, kGlobal, kShared };

enum Compare { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kNan };

enum Special { kTid, kNtid, kCtaid, kNctaid };

struct Operand {
  enum { kRegister, kImmediate, kSpecial, kSymbol, kDepot } kind = kImmediate;
  uint64_t value = 0;  // register, bits, or Special * 4 + axis, or shared address
};

struct Instruction {
  Op op = kNothing;
  Type type = kNoType, from = kNoType;  // from: of a conversion
  Space space = kGeneric;
  Compare compare = kEq;
  bool unordered = false, relaxed = false, negated = false;
  int predicate = -1;
  int bytes = 0;                // of one element of a load or store
  std::vector<Operand> to, of;  // of a load: its address first
  int64_t offset = 0;
  std::vector<int> targets;
  const char* text = nullptr;
  mutable bool run = false;  // by a thread, or passed over by its predicate
};

struct Array {
  std::string name;
  size_t bytes;
};

struct Program {
  std::string name;
  std::vector<int> sizes;  // of parameters
  std::vector<Instruction> code;
  const std::vector<Array>* shared = nullptr;  // the text's, the first is the launch's
  int registers = 0;
  size_t depot = 0;
  int threads = 1024;
};

// Reads a text; throws std::runtime_error with the line that it does not know.
std::vector<Program*> parse(const std::string& text);

// Puts the kernels of a file in the place of those of the same name; how many there are.
std::vector<Program*> take_over(const char* path);

// What of them has been run, for people.
std::string coverage(const std::vector<Program*>& all);

}  // namespace ptx

#endif  // OSSRUN_GPU_KERNELTEST_PTX_H_
