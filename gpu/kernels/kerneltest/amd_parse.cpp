// Reading an instruction of AMD's as LLVM's disassembler writes it: its name, its operands and
// whatever is said behind them.
#include <stdlib.h>
#include <string.h>
#include <map>
#include <regex>
#include <stdexcept>
#include "amd.h"
#include "ptx_matrix.h"

namespace amd {
namespace {

bool ends(const std::string& s, const char* with) {
  const size_t n = strlen(with);
  return s.size() >= n && s.compare(s.size() - n, n, with) == 0;
}
std::string trim(const std::string& s) {
  const size_t a = s.find_first_not_of(" \t"), b = s.find_last_not_of(" \t");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}
int64_t number(const std::string& s) {
  char* end;
  const int64_t v = strtoll(s.c_str(), &end, 0);
  if (s.empty() || *end) unknown("the number " + s);
  return v;
}
// Parts at a character outside of brackets.
std::vector<std::string> split(const std::string& s, char at) {
  std::vector<std::string> all;
  int deep = 0;
  std::string part;
  for (char c : s + at) {
    deep += c == '[' || c == '(';
    deep -= c == ']' || c == ')';
    if (c != at || deep) {
      part += c;
    } else {
      if (!trim(part).empty()) all.push_back(trim(part));
      part.clear();
    }
  }
  return all;
}

// What a memory instruction moves: "b128", "dwordx4", "u8", "short_d16_hi" and so on.
bool moved(Instruction& i, std::string what) {
  static const std::map<std::string, int> sizes = {
      {"dword", 4},    {"b32", 4},   {"dwordx2", 8}, {"b64", 8}, {"dwordx3", 12}, {"b96", 12},
      {"dwordx4", 16}, {"b128", 16}, {"ubyte", 1},   {"u8", 1},  {"sbyte", 1},    {"i8", 1},
      {"byte", 1},     {"b8", 1},    {"ushort", 2},  {"u16", 2}, {"b16", 2},      {"short", 2}};
  i.sign = what == "sbyte" || what == "i8";
  if (begins(what, "d16_hi_")) i.part = 2, what = what.substr(7);
  if (ends(what, "_d16_hi")) i.part = 2, what = what == "short_d16_hi" ? "b16" : what.substr(0, 3);
  if (begins(what, "d16_")) i.part = 1, what = what.substr(4);
  if (!sizes.count(what)) return false;
  i.bytes = sizes.at(what);
  return true;
}

bool is_memory(Instruction& i) {
  std::string n = i.name;
  i.does = Does::kMemory;
  i.shared = begins(n, "ds_");
  if (n == "ds_bpermute_b32") {
    i.permutes = i.load = true;
    return moved(i, "b32");
  }
  i.atomic = n == "ds_add_u32" || n == "ds_add_rtn_u32" || n == "global_atomic_add" ||
             n == "global_atomic_add_u32";
  i.load = i.atomic && n != "ds_add_u32";
  if (i.atomic) return moved(i, "b32");
  static const std::pair<const char*, bool> kinds[] = {
      {"global_load_", true}, {"global_store_", false}, {"ds_read", true},
      {"ds_load", true},      {"ds_write", false},      {"ds_store", false}};
  for (const auto& k : kinds) {
    if (!begins(n, k.first)) continue;
    i.load = k.second;
    i.store = !k.second;
    n = n.substr(strlen(k.first));
    if (!i.shared) return moved(i, n);
    int strides = 1;
    if (begins(n, "2st64_") || begins(n, "_2addr_stride64_")) strides = 64;
    if (begins(n, "2") || begins(n, "_2addr_")) i.elements = 2;
    n = n.substr(n.rfind('_', n.find("_d16") == std::string::npos ? n.size() : n.find("_d16") - 1) +
                 1);
    if (!moved(i, n)) return false;
    i.spread = i.elements == 2 ? i.bytes * strides : 1;
    return true;
  }
  return false;
}

class Reader {
 public:
  explicit Reader(const Program& p) : p_(p) {}

  void instruction(const std::string& line, Instruction& i) {
    const size_t comment = line.find("//");
    i.text = trim(line.substr(0, comment));
    const size_t space = i.text.find(' ');
    const std::string rest = space == std::string::npos ? "" : trim(i.text.substr(space));
    i.name = i.text.substr(0, space);
    if (comment != std::string::npos) {
      i.address = strtoull(line.c_str() + comment + 2, nullptr, 16);
      const size_t at = line.find('<', comment);
      if (at != std::string::npos) {
        const size_t plus = line.find('+', at);
        i.target = plus == std::string::npos
                       ? 0
                       : number(line.substr(plus + 1, line.find('>') - plus - 1));
      }
    }
    try {
      words(i, rest);
    } catch (const std::runtime_error& e) {
      unknown(p_.target + ": " + p_.name + ": " + i.text + ": " + e.what());
    }
  }

 private:
  void words(Instruction& i, const std::string& rest) {
    std::string& n = i.name;
    static const char* const nothing[] = {
        "s_nop",    "s_delay_alu", "s_wait_alu", "s_waitcnt_depctr",
        "s_clause", "s_sendmsg",   "s_code_end", "s_set_inst_prefetch_distance"};
    for (const char* name : nothing)
      if (n == name) return;
    if (n == "s_endpgm") return void(i.does = Does::kEnd);
    if (n == "s_barrier" || n == "s_barrier_wait") return void(i.does = Does::kBarrier);
    if (n == "s_barrier_signal") return void(i.does = Does::kSignal);
    if (n == "s_sleep") return void(i.does = Does::kSleep);
    if (caches(i, rest)) return;
    if (begins(n, "s_wait")) return wait(i, rest);
    if (branch(i)) return;
    const size_t dual = rest.find(" :: ");
    if (dual != std::string::npos) {
      i.second.reset(new Instruction);
      instruction(rest.substr(dual + 4), *i.second);
      n = "v_" + n.substr(7);
      return operands(i, rest.substr(0, dual));
    }
    if (begins(n, "v_dual_")) n = "v_" + n.substr(7);
    for (const char* form : {"_e32", "_e64", "_sdwa"})
      if (ends(n, form)) n = n.substr(0, n.size() - strlen(form));
    operands(i, rest);
  }

  // Emptying caches and writing back; some are counted as loads that bring nothing.
  bool caches(Instruction& i, const std::string& rest) const {
    static const std::map<std::string, int> all = {{"buffer_inv sc1", kFar},
                                                   {"buffer_wbl2 sc1", 0},
                                                   {"buffer_wbinvl1_vol ", kFar},
                                                   {"buffer_gl0_inv ", kNear},
                                                   {"buffer_gl1_inv ", kFar},
                                                   {"global_inv scope:SCOPE_SE", kNear},
                                                   {"global_inv scope:SCOPE_DEV", kNear | kFar}};
    const auto found = all.find(i.name + " " + rest);
    if (found == all.end()) return false;
    i.empties = found->second;
    i.writes_back = i.name == "buffer_wbl2";
    i.does = i.name == "global_inv" || i.writes_back ? Does::kMemory : Does::kEmpty;
    return true;
  }

  static bool branch(Instruction& i) {
    static const std::map<std::string, When> all = {
        {"s_branch", When::kAlways},         {"s_cbranch_scc0", When::kScc0},
        {"s_cbranch_scc1", When::kScc1},     {"s_cbranch_vccz", When::kVccZero},
        {"s_cbranch_vccnz", When::kVccNot},  {"s_cbranch_execz", When::kExecZero},
        {"s_cbranch_execnz", When::kExecNot}};
    if (!all.count(i.name)) return false;
    i.does = Does::kBranch;
    i.when = all.at(i.name);
    if (i.target < 0) unknown("no target");
    return true;
  }

  void wait(Instruction& i, const std::string& rest) {
    i.does = Does::kWait;
    const Counter stores = p_.generation == 9 ? kLoads : kStores;
    const Counter scalars = p_.generation == 12 ? kScalarLoads : kShared;
    if (i.name == "s_waitcnt") {
      for (const std::string& word : split(rest, ' ')) {
        const size_t open = word.find('(');
        const std::string counter = word.substr(0, open);
        if (counter != "vmcnt" && counter != "lgkmcnt") unknown(word);
        i.most[counter == "vmcnt" ? kLoads : kShared] =
            static_cast<int>(number(word.substr(open + 1, word.size() - open - 2)));
      }
      return;
    }
    const std::string last = rest.substr(rest.rfind(' ') + 1);
    const int n = static_cast<int>(number(last));
    if (i.name == "s_waitcnt_vscnt")
      i.most[stores] = n;
    else if (i.name == "s_wait_loadcnt")
      i.most[kLoads] = n;
    else if (i.name == "s_wait_storecnt")
      i.most[kStores] = n;
    else if (i.name == "s_wait_dscnt")
      i.most[kShared] = n;
    else if (i.name == "s_wait_kmcnt")
      i.most[scalars] = n;
    else if (i.name == "s_wait_loadcnt_dscnt")
      i.most[kLoads] = n >> 8, i.most[kShared] = n & 63;
    else if (i.name == "s_wait_storecnt_dscnt")
      i.most[kStores] = n >> 8, i.most[kShared] = n & 63;
    else
      unknown(i.name);
  }

  void operands(Instruction& i, const std::string& rest) {
    std::vector<std::string> all = split(rest, ',');
    std::vector<std::string> modifiers;
    if (!all.empty()) {  // a negated |v1| has no spaces
      modifiers = split(all.back(), ' ');
      all.back() = modifiers[0];
      modifiers.erase(modifiers.begin());
      while (!all.empty() && all.back().find(':') != std::string::npos &&
             all.back().find('[') == std::string::npos)
        modifiers.push_back(all.back()), all.pop_back();
    }
    if (is_memory(i)) {
      memory(i, all);
    } else if (begins(i.name, "s_load_")) {
      i.does = Does::kScalarLoad;
      if (!moved_scalars(i)) unknown(i.name);
      place(i, all, 'i', 2, 'i');
    } else if (i.name == "v_readfirstlane_b32") {
      i.does = Does::kFirstLane;
      place(i, all, 'i', 1, 'i');
    } else if (i.name == "v_readlane_b32" || i.name == "v_writelane_b32") {
      i.does = i.name == "v_readlane_b32" ? Does::kReadLane : Does::kWriteLane;
      place(i, all, 'i', 2, 'i');
    } else if (begins(i.name, "v_pk_")) {
      i.does = i.name == "v_pk_mov_b32" ? Does::kMovePacked : Does::kPacked;
      i.operation = vector_operation("v_" + i.name.substr(5));
      if (!i.operation) unknown("no such operation");
      place(i, all, 'q', static_cast<int>(all.size()) - 1, i.name == "v_pk_mov_b32" ? 'q' : 'p');
    } else if (begins(i.name, "v_mfma_") || begins(i.name, "v_wmma_")) {
      i.does = Does::kMatrix;
      place(i, all, 'i', static_cast<int>(all.size()) - 1, 'i');
    } else if (i.name.find("_saveexec_") != std::string::npos) {
      i.does = Does::kSaveExec;
      place(i, all, 'm', 1, 'm');
    } else {
      arithmetic(i, all);
    }
    for (const std::string& m : modifiers) modifier(i, m);
  }

  void arithmetic(Instruction& i, std::vector<std::string> all) {
    i.operation = scalar_operation(i.name);
    i.does = i.operation ? Does::kScalar : Does::kVector;
    if (!i.operation && begins(i.name, "v_cmpx_")) {
      i.to_exec = true;
      i.operation = vector_operation("v_cmp_" + i.name.substr(7));
      all.insert(all.begin(), p_.lanes == 64 ? "exec" : "exec_lo");
    } else if (!i.operation) {
      i.operation = vector_operation(i.name);
    }
    if (!i.operation) unknown("no such operation");
    const char* types = i.operation->types;
    const size_t to = strcspn(types, "="), of = strlen(types) - to - 1;
    if (all.size() == to + of - 1 && types[to + of] == 'm')
      all.push_back(p_.lanes == 64 ? "vcc" : "vcc_lo");
    if (all.size() != to + of) unknown("other operands than its operation has");
    for (size_t n = 0; n < to; n++) i.to.push_back(operand(all[n], types[n]));
    for (size_t n = 0; n < of; n++) i.of.push_back(operand(all[to + n], types[to + 1 + n]));
    for (const Operand& o : i.to)
      if (o.kind != (&o == &i.to[0] && i.does == Does::kVector && types[0] != 'm'
                         ? Operand::kVector
                         : Operand::kScalar))
        unknown("a result in a place that is not known");
  }

  void place(Instruction& i, const std::vector<std::string>& all, char to, int of, char type) {
    if (static_cast<int>(all.size()) != of + 1) unknown("other operands than are known");
    i.to.push_back(operand(all[0], to));
    for (int n = 1; n <= of; n++) i.of.push_back(operand(all[static_cast<size_t>(n)], type));
  }

  static bool moved_scalars(Instruction& i) {
    static const std::map<std::string, int> words = {
        {"dword", 1}, {"dwordx2", 2}, {"dwordx4", 4}, {"dwordx8", 8}, {"dwordx16", 16}, {"b32", 1},
        {"b64", 2},   {"b96", 3},     {"b128", 4},    {"b256", 8},    {"b512", 16}};
    const auto found = words.find(i.name.substr(7));
    if (found == words.end()) return false;
    i.bytes = found->second * 4;
    return true;
  }

  // Of a load: its register, then addresses; of a store addresses, then data.
  void memory(Instruction& i, std::vector<std::string> all) {
    if (i.atomic && !i.shared) i.load = all.size() == 4;  // else nobody asks what was there
    const size_t want = i.permutes ? 3
                        : i.shared ? 1 + (i.load ? 1 : 0) + (i.atomic ? 1 : 0) +
                                         (i.store ? static_cast<size_t>(i.elements) : 0)
                        : i.atomic && i.load ? 4
                                             : 3;
    if (all.size() != want) unknown("other operands than are known");
    if (i.load) {
      i.to.push_back(operand(all[0], 'i'));
      all.erase(all.begin());
    }
    if (!i.shared) {  // address, data where there is any, base
      if (all.back() == "off") all.back() = "null";
      std::swap(all[1], all.back());
    }
    for (const std::string& s : all) i.of.push_back(operand(s, 'i'));
    if (!i.shared && (i.of[0].words == 2) != (i.of[1].at == kNull)) unknown("an address");
    const int words = (i.bytes + 3) / 4;
    if (i.load && i.to[0].words != words * i.elements) unknown("registers that do not fit");
    for (size_t n = i.shared ? 1 : 2; n < i.of.size(); n++)
      if (i.of[n].words != words) unknown("registers that do not fit");
  }

  void modifier(Instruction& i, const std::string& m) {
    const size_t colon = m.find(':');
    const std::string name = m.substr(0, colon),
                      value = colon == std::string::npos ? "" : m.substr(colon + 1);
    const auto three = [&](auto* to) {
      const auto parts = split(value.substr(1, value.size() - 2), ',');
      for (size_t n = 0; n < parts.size() && n < 3; n++)
        to[n] = static_cast<std::remove_reference_t<decltype(to[0])>>(number(parts[n]));
    };
    if (name == "offset" || name == "offset0")
      i.offset[0] = number(value);
    else if (name == "offset1")
      i.offset[1] = number(value);
    else if (name == "bitop3")
      i.table = static_cast<uint64_t>(number(value));
    else if (name == "op_sel" && begins(i.name, "v_pk_"))
      three(i.low);
    else if (name == "op_sel_hi" && begins(i.name, "v_pk_"))
      three(i.high);
    else if (name == "neg_lo" && begins(i.name, "v_pk_"))
      three(i.low_negated);
    else if (name == "neg_hi" && begins(i.name, "v_pk_"))
      three(i.high_negated);
    else if (m == "neg_lo:[1,1,0]" && i.name == "v_dot4_i32_iu8")
      return;  // both signed
    else if (name == "op_sel" && i.name == "v_mov_b16")
      return;  // said by .l and .h too
    else if (i.name == "v_mfma_scale_f32_16x16x128_f8f6f4" &&
             (m == "op_sel_hi:[0,0,0]" || m == "cbsz:4" || m == "blgp:4"))
      i.table++;
    else if (name == "src0_sel" || name == "src1_sel")
      part(i.of[name[3] - '0'], value);
    else if (name == "dst_sel")
      part(i.to[0], value);
    else if (m == "dst_unused:UNUSED_PAD")
      return;
    else if (i.does == Does::kMemory)
      cached(i, name, m);
    else
      unknown(m);
  }
  void cached(Instruction& i, const std::string& name, const std::string& m) {
    static const char* const hints[] = {"nt", "slc", "dlc", "glc", "sc0", "sc1"};
    if (m == "sc1" || m == "glc" || m == "scope:SCOPE_DEV") i.device = true;
    if (m == "slc") i.device = false;  // with glc: not to be kept in a cache
    for (const char* h : hints)
      if (m == h) return;
    if (name != "scope" && name != "th") unknown(m);
  }
  static void part(Operand& o, const std::string& value) {
    if (value == "DWORD") return;
    if (value.size() != 6) unknown(value);
    const bool byte = begins(value, "BYTE_");
    if (!byte && !begins(value, "WORD_")) unknown(value);
    o.bits = byte ? 8 : 16;
    o.shift = (value[5] - '0') * o.bits;
  }

  int in_file(char file, int at, int words) const {
    const int most = file == 's'   ? 106
                     : file == 'a' ? p_.vectors - p_.accumulators
                                   : p_.accumulators;
    if (at + words > most) unknown("a register that the kernel does not have");
    return file == 'a' ? kAccumulators + at : at;
  }

  Operand operand(std::string s, char type) const {
    Operand o;
    const bool wide = type == 'q' || type == 'd' || type == 'p' || (type == 'm' && p_.lanes == 64);
    if (begins(s, "sext(")) o.extended = true, s = s.substr(5, s.size() - 6);
    if (s[0] == '-' && !isdigit(s[1])) o.negated = true, s = s.substr(1);
    if (s[0] == '|') o.absolute = true, s = s.substr(1, s.size() - 2);
    static const std::regex one("([vsa])(\\d+)(\\.[lh])?"), many("([vsa])\\[(\\d+):(\\d+)\\]"),
        trap("ttmp(\\d+)");
    static const std::map<std::string, std::pair<int, int>> named = {
        {"vcc", {kVcc, 2}},   {"vcc_lo", {kVcc, 1}},   {"vcc_hi", {kVcc + 1, 1}},
        {"exec", {kExec, 2}}, {"exec_lo", {kExec, 1}}, {"exec_hi", {kExec + 1, 1}},
        {"m0", {kM0, 1}},     {"null", {kNull, 1}}};
    std::smatch m;
    if (std::regex_match(s, m, one) || std::regex_match(s, m, many)) {
      o.kind = s[0] == 's' ? Operand::kScalar : Operand::kVector;
      const bool range = s.find('[') != std::string::npos;
      o.at = atoi(m.str(2).c_str());
      o.words = range ? atoi(m.str(3).c_str()) - o.at + 1 : 1;
      o.at = in_file(s[0], o.at, o.words);
      if (!range && m[3].matched) o.bits = 16, o.shift = m.str(3) == ".h" ? 16 : 0;
      if (type == 'h' && !m[3].matched) o.bits = 16;
    } else if (named.count(s)) {
      o.kind = Operand::kScalar;
      o.at = named.at(s).first;
      o.words = named.at(s).second;
    } else if (std::regex_match(s, m, trap)) {
      o.kind = Operand::kScalar;
      o.at = kTtmp + atoi(m.str(1).c_str());
    } else {
      return constant(s, type, o);
    }
    if (strchr("qdmhp", type) && o.at != kNull && o.words != (wide ? 2 : 1))
      unknown("an operand of another size: " + s);
    if (type == 'h' && o.kind != Operand::kVector) unknown("half of a scalar register");
    return o;
  }

  static Operand constant(const std::string& s, char type, Operand o) {
    o.kind = Operand::kConstant;
    uint64_t v;
    if (s.find('.') != std::string::npos) {
      char* end;
      const double d = strtod(s.c_str(), &end);
      if (*end || type == 'h' || type == 'k' || type == 'm') unknown("the number " + s);
      v = type == 'd' || type == 'q' ? ptx::bits(d) : ptx::bits(static_cast<float>(d));
    } else {
      v = static_cast<uint64_t>(number(s));
      if (type == 'k') v = static_cast<uint64_t>(int64_t{static_cast<int16_t>(v)});
      if (type == 'd' && begins(s, "0x")) v <<= 32;
      if (type == 'h') v &= 0xffff;
    }
    o.value[0] = static_cast<uint32_t>(v);
    o.value[1] = type == 'q' || type == 'd' ? static_cast<uint32_t>(v >> 32) : 0;
    return o;
  }

  const Program& p_;
};

}  // namespace

void read_instruction(const Program& p, const std::string& line, Instruction& i) {
  Reader(p).instruction(line, i);
}

}  // namespace amd
