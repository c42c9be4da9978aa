// Reading PTX as LLVM writes it: one text, its kernels, each instruction taken apart once.
#include "ptx.h"
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <stdexcept>

namespace ptx {
namespace {

[[noreturn]] void unknown(const std::string& what) {
  throw std::runtime_error("PTX that is not known: " + what);
}

// Parts of a text; of words, those that are not empty.
std::vector<std::string> split(const std::string& s, char at) {
  std::vector<std::string> parts(1);
  for (char c : s)
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  if (at == ' ') parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  return parts;
}

std::string trim(const std::string& s) {
  const size_t a = s.find_first_not_of(" \t\n"), b = s.find_last_not_of(" \t\n");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

bool begins(const std::string& s, const char* with) {
  return s.compare(0, strlen(with), with) == 0;
}

const std::map<std::string, Type> kTypes = {
    {"pred", kPred},     {"b8", kB8},       {"u8", kU8},       {"s8", kS8},        {"b16", kB16},
    {"u16", kU16},       {"s16", kS16},     {"b32", kB32},     {"u32", kU32},      {"s32", kS32},
    {"b64", kB64},       {"u64", kU64},     {"s64", kS64},     {"f32", kF32},      {"f64", kF64},
    {"bf16x2", kBF16x2}, {"f32x2", kF32x2}, {"f16x2", kF16x2}, {"e4m3x2", kE4M3x2}};

int bytes_of(Type t) {
  switch (t) {
    case kB8:
    case kU8:
    case kS8:
      return 1;
    case kB16:
    case kU16:
    case kS16:
      return 2;
    case kB32:
    case kU32:
    case kS32:
    case kF32:
    case kBF16x2:
      return 4;
    default:
      return 8;
  }
}

// Operands at commas outside of braces and brackets.
std::vector<std::string> operands(const std::string& s) {
  std::vector<std::string> all;
  int deep = 0;
  std::string part;
  for (char c : s) {
    deep += c == '{' || c == '[';
    deep -= c == '}' || c == ']';
    if (c == ',' && deep == 0) {
      all.push_back(trim(part));
      part.clear();
    } else {
      part += c;
    }
  }
  if (!trim(part).empty()) all.push_back(trim(part));
  return all;
}

class Reader {
 public:
  Reader(Program& p, std::map<std::string, uint64_t>& shared, std::vector<Array>& arrays)
      : p_(p), shared_(shared), arrays_(arrays) {}

  void parameter(const std::string& line) {
    const auto words = split(trim(line), ' ');
    if (words.size() < 3 || words[0] != ".param" || !kTypes.count(words[1].substr(1)))
      unknown(line);
    parameters_[words.back()] = static_cast<int>(p_.sizes.size());
    p_.sizes.push_back(bytes_of(kTypes.at(words[1].substr(1))));
  }

  void statement(std::string s) {
    s = trim(s);
    while (!s.empty() && (s[0] == '{' || s[0] == '}')) s = trim(s.substr(1));
    const size_t colon = s.find(':');
    if (colon != std::string::npos && s[0] == '$') {
      const std::string label = s.substr(0, colon);
      s = trim(s.substr(colon + 1));
      if (begins(s, ".branchtargets")) {
        tables_[label] = operands(s.substr(strlen(".branchtargets")));
        return;
      }
      labels_[label] = static_cast<int>(p_.code.size());
      return statement(s);
    }
    if (s.empty() || begins(s, ".pragma")) return;
    if (begins(s, ".reg")) {
      const auto words = split(s, ' ');
      if (s.find('<') == std::string::npos) names_.insert({trim(words.back()), next()});
      return;
    }
    if (begins(s, ".shared") || begins(s, ".local")) return array(s);
    instruction(s);
  }

  void finish() {
    for (size_t i = 0; i < p_.code.size(); i++) {
      for (const std::string& label : wants_[i]) {
        if (!labels_.count(label)) unknown("label " + label);
        p_.code[i].targets.push_back(labels_.at(label));
      }
    }
    p_.shared = &arrays_;
  }

  // .shared .align 16 .b8 name[32], or .u32 name
  void array(const std::string& s) {
    const auto words = split(s, ' ');
    const size_t bracket = words.back().find('[');
    const std::string name = words.back().substr(0, bracket), type = words[words.size() - 2];
    if (words.size() < 5 || !kTypes.count(type.substr(1))) unknown(s);
    const size_t bytes =
        static_cast<size_t>(bytes_of(kTypes.at(type.substr(1)))) *
        (bracket == std::string::npos ? 1
                                      : strtoull(words.back().c_str() + bracket + 1, nullptr, 10));
    if (begins(s, ".local")) {
      p_.depot = bytes;
      depot_ = name;
      return;
    }
    shared_[name] = static_cast<uint64_t>(arrays_.size()) << 20;
    arrays_.push_back({name, bytes});
  }

 private:
  int next() { return p_.registers++; }

  Operand operand(const std::string& s) {
    static const std::map<std::string, int> special = {
        {"%tid", kTid}, {"%ntid", kNtid}, {"%ctaid", kCtaid}, {"%nctaid", kNctaid}};
    Operand o;
    if (s.empty()) unknown("an empty operand");
    if (s[0] == '%' || names_.count(s) || s == "_") {
      const size_t dot = s.find('.');
      if (dot != std::string::npos) {
        if (!special.count(s.substr(0, dot))) unknown(s);
        o.kind = Operand::kSpecial;
        o.value = special.at(s.substr(0, dot)) * 4u + (s[dot + 1] - 'x');
        return o;
      }
      if (!names_.count(s)) names_.insert({s, next()});
      o.kind = Operand::kRegister;
      o.value = static_cast<uint64_t>(names_.at(s));
    } else if (begins(s, "0f") || begins(s, "0d")) {
      o.value = strtoull(s.c_str() + 2, nullptr, 16);
    } else if (isdigit(s[0]) || s[0] == '-') {
      char* end;
      o.value = s[0] == '-' ? static_cast<uint64_t>(strtoll(s.c_str(), &end, 0))
                            : strtoull(s.c_str(), &end, 0);
      if (*end && strcmp(end, "U")) unknown(s);
    } else if (shared_.count(s)) {
      o.kind = Operand::kSymbol;
      o.value = shared_.at(s);
    } else if (s == depot_) {
      o.kind = Operand::kDepot;
    } else {
      unknown("operand " + s);
    }
    return o;
  }

  std::vector<Operand> list(const std::string& s) {
    std::vector<Operand> all;
    if (s[0] != '{') return {operand(s)};
    for (const std::string& part : split(s.substr(1, s.size() - 2), ','))
      all.push_back(operand(trim(part)));
    return all;
  }

  void address(Instruction& i, std::string s) {
    if (s[0] != '[' || s.back() != ']') unknown("address " + s);
    s = s.substr(1, s.size() - 2);
    const size_t plus = s.find('+');
    if (plus != std::string::npos) {
      i.offset = strtoll(s.c_str() + plus + 1, nullptr, 0);
      s = s.substr(0, plus);
    }
    i.of.insert(i.of.begin(), operand(trim(s)));
  }

  void instruction(std::string s) {
    Instruction i;
    i.text = strdup(s.c_str());  // for as long as the program runs
    if (s[0] == '@') {
      const size_t end = s.find_first_of(" \t");
      std::string p = s.substr(1, end - 1);
      i.negated = p[0] == '!';
      i.predicate = static_cast<int>(operand(p.substr(i.negated)).value);
      s = trim(s.substr(end));
    }
    const size_t end = s.find_first_of(" \t");
    const std::string word = s.substr(0, end);
    const auto parts = split(word, '.');
    const auto args = operands(end == std::string::npos ? "" : s.substr(end));
    wants_.emplace_back();
    decode(i, word, parts, args);
    p_.code.push_back(i);
  }

  void decode(Instruction& i, const std::string& word, const std::vector<std::string>& parts,
              const std::vector<std::string>& args);

  Program& p_;
  std::map<std::string, uint64_t>& shared_;
  std::vector<Array>& arrays_;
  std::string depot_;
  std::map<std::string, int> names_, parameters_, labels_;
  std::map<std::string, std::vector<std::string>> tables_;
  std::vector<std::vector<std::string>> wants_;  // labels, by instruction
};

void Reader::decode(Instruction& i, const std::string& word, const std::vector<std::string>& parts,
                    const std::vector<std::string>& args) {
  const std::string& op = parts[0];
  const auto has = [&](const char* p) {
    for (const std::string& part : parts)
      if (part == p) return true;
    return false;
  };
  for (size_t n = parts.size(); n-- > 1;) {
    if (!kTypes.count(parts[n])) continue;
    (i.type == kNoType ? i.type : i.from) = kTypes.at(parts[n]);
    if (i.from != kNoType) break;
  }
  const auto plain = [&](Op code, size_t sources) {
    i.op = code;
    if (args.size() != sources + 1) unknown(i.text);
    i.to = list(args[0]);
    for (size_t n = 1; n < args.size(); n++) i.of.push_back(operand(args[n]));
  };
  if (op == "bra") {
    i.op = kBranch;
    wants_.back() = {args.at(0)};
  } else if (op == "brx") {
    i.op = kBranchTable;
    i.of = {operand(args.at(0))};
    wants_.back() = tables_.at(args.at(1));
  } else if (op == "ret") {
    i.op = kReturn;
  } else if (op == "bar") {
    i.op = has("warp") ? kWarpBarrier : kBarrier;
    if (args.size() != 1 || args[0] != (has("warp") ? "-1" : "0")) unknown(i.text);
  } else if (op == "fence" || op == "prefetch" || op == "griddepcontrol" ||
             begins(word, "wgmma.fence")) {
    i.op = kNothing;
  } else if (begins(word, "wgmma.commit_group")) {
    i.op = kWgmmaCommit;
  } else if (word == "cp.async.cg.shared.global") {  // to, from, 16, how much of it is read
    i.op = kCopyAhead;
    if (args.size() != 4 || args[2] != "16") unknown(i.text);
    for (const size_t n : {0, 1}) i.of.push_back(operand(args[n].substr(1, args[n].size() - 2)));
    i.of.push_back(operand(args[3]));
  } else if (word == "cp.async.commit_group") {
    i.op = kCommitCopies;
  } else if (word == "cp.async.wait_group") {
    i.op = kArrive;
    i.of = {operand(args.at(0))};
  } else if (begins(word, "wgmma.wait_group")) {
    i.op = kWgmmaWait;
    i.of = {operand(args.at(0))};
  } else if (begins(word, "wgmma.mma_async.sync.aligned.m64n") && has("bf16") && has("f32")) {
    i.op = kWgmma;  // sums, A by its descriptor or in four registers, the descriptor of B
    i.to = list(args.at(0));
    i.of = list(args.at(1));
    const bool own = i.of.size() == 4;
    i.of.push_back(operand(args.at(2)));
    const std::string shape = "m64n" + std::to_string(2 * i.to.size()) + "k16";
    if (!has(shape.c_str()) || i.to.size() > 64 || args.size() != (own ? 7u : 8u) ||
        args[3] != "1" || args[4] != "1" || args[5] != "1" || args[6] != "0" || args.back() != "0")
      unknown(i.text);
  } else if (begins(word, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") ||
             begins(word, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") ||
             begins(word,
                    "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col."
                    "f32.e2m1.e2m1.f32.ue8m0")) {
    i.op = has("bf16") ? kMma : has("f16") ? kMmaF16 : kMmaMx;
    i.to = list(args.at(0));
    for (size_t n = 1; n < args.size(); n++)
      for (const Operand& o : list(args[n])) i.of.push_back(o);
    if (i.to.size() != 4 || i.of.size() != (i.op == kMmaMx ? 16u : 10u)) unknown(i.text);
  } else if (begins(word, "ldmatrix.sync.aligned.m8n8.x4.shared.b16")) {
    i.op = kLoadMatrix;
    i.space = kShared;
    i.to = list(args.at(0));
    address(i, args.at(1));
  } else if (op == "ld" && has("param")) {
    i.op = kLoadParam;
    i.bytes = bytes_of(i.type);
    i.to = list(args.at(0));
    const std::string name = args.at(1).substr(1, args[1].size() - 2);
    if (!parameters_.count(name)) unknown(i.text);
    i.of = {Operand{Operand::kImmediate, static_cast<uint64_t>(parameters_.at(name))}};
  } else if (op == "ld" || op == "st") {
    i.op = op == "ld" ? kLoad : kStore;
    i.space = has("shared") ? kShared : has("global") ? kGlobal : kGeneric;
    i.relaxed = has("relaxed");
    i.bytes = bytes_of(i.type);
    for (const std::string& part : parts)
      if (part != op && part != "global" && part != "shared" && part != "local" && part != "nc" &&
          part != "v2" && part != "v4" && part != "relaxed" && part != "gpu" &&
          part != "L1::no_allocate" && !kTypes.count(part))
        unknown(i.text);
    const auto values = list(args.at(op == "ld" ? 0 : 1));
    if (op == "ld")
      i.to = values;
    else
      i.of = values;
    address(i, args.at(op == "ld" ? 1 : 0));
  } else if (op == "atom" && has("add") && i.type == kU32) {
    i.op = kAtomAdd;
    i.space = has("shared") ? kShared : kGlobal;
    i.bytes = 4;
    i.to = list(args.at(0));
    i.of = {operand(args.at(2))};
    address(i, args.at(1));
  } else if (op == "shfl") {
    i.op = has("bfly") ? kShuffleXor : kShuffleIndex;
    if (args.size() != 5 || args[3] != "31" || args[4] != "-1" || (!has("bfly") && !has("idx")))
      unknown(i.text);
    i.to = list(args[0]);
    i.of = {operand(args[1]), operand(args[2])};
  } else if (op == "setp") {
    static const std::map<std::string, std::pair<Compare, bool>> compares = {
        {"eq", {kEq, false}},   {"ne", {kNe, false}},  {"lt", {kLt, false}}, {"le", {kLe, false}},
        {"gt", {kGt, false}},   {"ge", {kGe, false}},  {"equ", {kEq, true}}, {"neu", {kNe, true}},
        {"ltu", {kLt, true}},   {"leu", {kLe, true}},  {"gtu", {kGt, true}}, {"geu", {kGe, true}},
        {"num", {kNum, false}}, {"nan", {kNan, false}}};
    if (parts.size() != 3 || !compares.count(parts[1])) unknown(i.text);
    i.compare = compares.at(parts[1]).first;
    i.unordered = compares.at(parts[1]).second;
    plain(kSetp, 2);
  } else if (op == "cvta") {
    plain(has("to") && has("shared") ? kCvtaToShared : kCvta, 1);
    i.space = has("shared") ? kShared : kGeneric;
  } else if (op == "cvt") {
    if (parts.size() < 3 || !kTypes.count(parts[parts.size() - 2])) unknown(i.text);
    i.from = kTypes.at(parts.back());
    i.type = kTypes.at(parts[parts.size() - 2]);
    const bool two = i.type == kBF16x2 || i.type == kF16x2;
    if ((two && i.from != (i.type == kF16x2 && args.size() == 2 ? kE4M3x2 : kF32)) ||
        (i.from == kE4M3x2 && !two))
      unknown(i.text);
    plain(kCvt, two && i.from == kF32 ? 2 : 1);
  } else if (op == "mov" && (args.at(0)[0] == '{' || args.at(1)[0] == '{')) {
    i.op = args[0][0] == '{' ? kUnpack : kPack;
    i.to = list(args[0]);
    i.of = list(args[1]);
  } else if (op == "mul") {
    plain(has("wide") ? kMulWide : has("hi") ? kMulHi : kMul, 2);
  } else {
    static const std::map<std::string, std::pair<Op, int>> simple = {
        {"abs", {kAbs, 1}},      {"add", {kAdd, 2}},           {"and", {kAnd, 2}},
        {"bfe", {kBfe, 3}},      {"copysign", {kCopySign, 2}}, {"div", {kDiv, 2}},
        {"ex2", {kExp2, 1}},     {"fma", {kFma, 3}},           {"mad", {kMad, 3}},
        {"max", {kMax, 2}},      {"min", {kMin, 2}},           {"mov", {kMov, 1}},
        {"neg", {kNeg, 1}},      {"not", {kNot, 1}},           {"or", {kOr, 2}},
        {"prmt", {kPermute, 3}}, {"rcp", {kRcp, 1}},           {"rem", {kRem, 2}},
        {"selp", {kSelp, 3}},    {"shl", {kShl, 2}},           {"shr", {kShr, 2}},
        {"sqrt", {kSqrt, 1}},    {"sub", {kSub, 2}},           {"xor", {kXor, 2}}};
    if (!simple.count(op)) unknown(i.text);
    const bool three = (op == "max" || op == "min") && i.type == kF32 && args.size() == 4;
    plain(simple.at(op).first, three ? 3 : static_cast<size_t>(simple.at(op).second));
  }
}

std::string without_comments(const std::string& text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    out += line.substr(0, line.find("//"));
    out += '\n';
  }
  std::replace(out.begin(), out.end(), '\t', ' ');
  return out;
}

}  // namespace

std::vector<Program*> parse(const std::string& whole) {
  const std::string text = without_comments(whole);
  static std::map<std::string, uint64_t> shared;
  static std::vector<Array> arrays;
  std::vector<Program*> all;
  arrays.push_back({"gpu_dynamic_shared", 0});
  shared["gpu_dynamic_shared"] = 0;
  const std::string entry = ".visible .entry ";
  size_t at = text.find(entry);
  {
    Program none;
    Reader r(none, shared, arrays);
    for (const std::string& s : split(text.substr(0, at), ';'))
      if (s.find(".weak .shared") != std::string::npos) r.array(trim(s.substr(s.find(".shared"))));
  }
  while (at != std::string::npos) {
    const size_t open = text.find('(', at), close = text.find(")\n", open);
    const size_t body = text.find("\n{", close), end = text.find("\n}\n", body);
    if (end == std::string::npos) unknown("the end of a kernel");
    Program* p = new Program;
    p->name = text.substr(at + entry.size(), open - at - entry.size());
    Reader r(*p, shared, arrays);
    for (const std::string& s : split(text.substr(open + 1, close - open - 1), ','))
      if (!trim(s).empty()) r.parameter(s);
    const size_t most = text.find(".maxntid ", close);
    if (most < body) p->threads = atoi(text.c_str() + most + 9);
    std::string inside = text.substr(body + 2, end - body - 2), s;
    for (const std::string& part : split(inside, ';')) r.statement(part);
    r.finish();
    all.push_back(p);
    at = text.find(entry, end);
  }
  return all;
}

std::string coverage(const std::vector<Program*>& all) {
  size_t run = 0, there = 0, kernels = 0;
  std::string never;
  for (const Program* p : all) {
    size_t own = 0;
    for (const Instruction& i : p->code) own += i.run;
    run += own;
    there += p->code.size();
    kernels += own > 0;
    if (own == 0) never += " " + p->name;
  }
  return std::to_string(kernels) + " of " + std::to_string(all.size()) + " kernels run, " +
         std::to_string(run) + " of " + std::to_string(there) + " instructions" +
         (never.empty() ? "" : "; not" + never);
}

}  // namespace ptx
