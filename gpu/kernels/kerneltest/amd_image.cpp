// Reading a code object of AMD's as LLVM's tools write it: its kernels, and what their metadata and
// descriptors say.
#include <stdlib.h>
#include <string.h>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include "amd.h"

namespace amd {
namespace {

// A key and its value: ".offset:         8".
std::pair<std::string, std::string> entry(const std::string& s) {
  const size_t colon = s.find(':'), value = s.find_first_not_of(' ', colon + 1);
  return {s.substr(1, colon - 1), value == std::string::npos ? "" : s.substr(value)};
}

// Everything of a kernel but its code, by the kernel's name and the names of its symbols.
class Image {
 public:
  void line(const std::string& s) {
    std::smatch m;
    static const std::regex key("^(  - |      - |    |        )\\.(\\w+): +(.*)"),
        symbol("^ *\\d+: ([0-9a-f]+) +64 OBJECT .* (\\w+)\\.kd"),
        bytes("^ ([0-9a-f]+) ((?:[0-9a-f]{8} ?){1,4})"), heading("^([0-9a-f]+) <(\\w+)>:");
    if (s[0] == '\t') {
      if (!at_) unknown("code outside of a kernel: " + s);
      at_->code.emplace_back();
      read_instruction(*at_, s, at_->code.back());
    } else if (begins(s, "amdhsa.target:")) {
      const std::string target = s.substr(s.rfind('-') + 1);
      for (auto& p : programs_) p.second->target = target;
    } else if (begins(s, "  - .")) {  // an item's first key may be any
      described_ = new Program;
      metadata(s.substr(4));
    } else if (begins(s, "      - .") && described_) {
      described_->arguments.emplace_back();
      argument(s.substr(8));
    } else if (begins(s, "        .") && described_) {
      argument(s.substr(8));
    } else if (begins(s, "    .") && described_) {
      metadata(s.substr(4));
    } else if (std::regex_search(s, m, symbol)) {
      descriptors_[m.str(2)] = strtoull(m.str(1).c_str(), nullptr, 16);
    } else if (begins(s, "Contents of section .rodata")) {
      dump_ = true;
    } else if (std::regex_search(s, m, heading)) {
      dump_ = false;
      begin(m.str(2), strtoull(m.str(1).c_str(), nullptr, 16));
    } else if (dump_ && std::regex_search(s, m, bytes)) {
      uint64_t at = strtoull(m.str(1).c_str(), nullptr, 16);
      std::string hex;
      for (char c : m.str(2))
        if (c != ' ') hex += c;
      for (size_t n = 0; n + 1 < hex.size(); n += 2)
        memory_[at++] = static_cast<uint8_t>(strtoul(hex.substr(n, 2).c_str(), nullptr, 16));
    }
  }

  std::vector<Program*> finish() {
    std::vector<Program*> all;
    for (auto& named : programs_) {
      Program& p = *named.second;
      if (p.code.empty()) unknown(p.name + " has no code");
      std::map<uint64_t, int64_t> index;
      for (size_t n = 0; n < p.code.size(); n++) index[p.code[n].address] = int64_t(n);
      for (Instruction& i : p.code) {
        if (i.does != Does::kBranch) continue;
        const auto found = index.find(p.code[0].address + uint64_t(i.target));
        if (found == index.end()) unknown("a branch to nowhere: " + i.text);
        i.target = found->second;
      }
      all.push_back(&p);
    }
    return all;
  }

 private:
  void metadata(const std::string& s) {
    const auto [name, value] = entry(s);
    if (name == "name") programs_[described_->name = value] = described_;
    if (name == "max_flat_workgroup_size") described_->threads = atoi(value.c_str());
    if (name == "wavefront_size") described_->lanes = atoi(value.c_str());
  }
  void argument(const std::string& s) {
    if (described_->arguments.empty()) return;
    Argument& a = described_->arguments.back();
    const auto [name, value] = entry(s);
    if (name == "offset") a.offset = atoi(value.c_str());
    if (name == "size") a.size = atoi(value.c_str());
    if (name == "value_kind") a.kind = value;
    if (name == "value_kind" && !begins(value, "hidden_")) described_->sizes.push_back(a.size);
  }
  uint32_t word(uint64_t at) const {
    uint32_t v = 0;
    for (uint64_t n = 0; n < 4; n++) {
      if (!memory_.count(at + n)) unknown("no descriptor");
      v |= uint32_t{memory_.at(at + n)} << n * 8;
    }
    return v;
  }
  // The kernel's descriptor, LLVM's User Guide for AMDGPU Backend, Kernel Descriptor.
  void begin(const std::string& name, uint64_t entry) {
    if (!programs_.count(name) || !descriptors_.count(name)) unknown("no metadata of " + name);
    Program& p = *programs_[name];
    const uint64_t at = descriptors_[name];
    if (at + word(at + 16) != entry) unknown(name + " begins elsewhere");
    p.generation = begins(p.target, "gfx12") ? 12 : begins(p.target, "gfx11") ? 11 : 9;
    p.shared_bytes = word(at);
    p.argument_bytes = word(at + 8);
    p.settings[0] = word(at + 48);
    p.settings[1] = word(at + 52);
    p.settings[2] = word(at + 44);
    p.properties = word(at + 56);
    if (word(at + 4) || p.settings[1] & 1) unknown(name + " has private memory");
    if ((p.settings[0] >> 12 & 0xff) != 0xf0)
      unknown(name + " rounds or flushes subnormals in another way");
    if (p.properties & ~0x409u || !(p.properties & 8)) unknown(name + " wants other registers");
    p.vectors = static_cast<int>((p.settings[0] & 63) + 1) * 8;
    p.accumulators = p.generation == 9 ? static_cast<int>((p.settings[2] & 63) + 1) * 4 : p.vectors;
    if (p.generation == 9 && p.settings[2] >> 16 & 1) unknown(name + " is cut into parts");
    at_ = &p;
  }

  std::map<std::string, Program*> programs_;
  std::map<std::string, uint64_t> descriptors_;
  std::map<uint64_t, uint8_t> memory_;
  Program *described_ = nullptr, *at_ = nullptr;
  bool dump_ = false;
};

}  // namespace

std::vector<Program*> parse(const std::string& text) {
  Image image;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) image.line(line);
  return image.finish();
}

}  // namespace amd
