// Breaking an image on purpose, one instruction at a time: whether the cases notice it says what
// they and the interpreter are worth.
#include <stdexcept>
#include "amd.h"

namespace amd {
namespace {

// Another register, or another constant.
bool other(Operand& o, const Program& p) {
  if (o.kind == Operand::kConstant) {
    if (o.value[0] + 4096 < 8192)
      o.value[0] += 1;
    else
      o.value[0] ^= 0x00400000;  // of a float half of what it adds to its power of two
    return true;
  }
  if (o.at >= kVcc && o.kind == Operand::kScalar) return false;
  const int most = o.kind == Operand::kScalar ? kVcc : p.accumulators;
  if (o.at >= kAccumulators || o.at + 1 + o.words > most) return false;
  o.at++;
  return true;
}

std::string break_one(Program& p, Instruction& i, unsigned way) {
  switch (i.does) {
    case Does::kMemory:
    case Does::kScalarLoad:
      if (way % 2 && i.bytes) {
        i.offset[0] += i.shared && i.elements == 2 ? 1 : i.bytes;
        return "another offset";
      }
      break;
    case Does::kBranch:
      if (i.when != When::kAlways) {
        i.when = static_cast<When>(((static_cast<int>(i.when) - 1) ^ 1) + 1);
        return "the other way";
      }
      break;
    case Does::kVector:
    case Does::kScalar:
    case Does::kPacked:
    case Does::kMatrix:
    case Does::kSaveExec:
      if (way % 3 && !i.of.empty()) {
        if (other(i.of[way / 3 % i.of.size()], p)) return "another operand";
      }
      break;
    default:
      break;
  }
  i.does = Does::kNothing;
  i.second.reset();
  return "left out";
}

}  // namespace

std::string broken(Program& p, unsigned number) {
  std::vector<Instruction*> run;
  for (Instruction& i : p.code)
    if (i.run && i.does != Does::kNothing && i.does != Does::kEnd) run.push_back(&i);
  if (run.empty()) throw std::runtime_error(p.name + " has not been run");
  Instruction& i = *run[number % run.size()];
  const std::string text = i.text;
  return text + ": " + break_one(p, i, number / 65536);
}

}  // namespace amd
