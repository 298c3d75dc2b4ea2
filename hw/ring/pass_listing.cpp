#include "hw/ring/pass_listing.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "hw/ring/instruction_fields.h"

namespace systole::hw::dfx {
namespace {

constexpr std::array<std::string_view, 5> kSecondNames = {"none", "vector", "scalar", "constant",
                                                          "memory"};

class InstructionLine {
 public:
  explicit InstructionLine(std::string& text) : text_(text) {}

  void operator()(const char*, Opcode) {}  // the line begins with it
  void operator()(const char* name, Phase phase) {
    std::string word(name_of(phase));
    std::replace(word.begin(), word.end(), ' ', '_');
    put(name, word);
  }
  void operator()(const char* name, Second second) {
    if (second == Second::kNone) return;
    put(name, name_of(second));
  }
  void operator()(const char* name, TableFunction function) {
    if (function == TableFunction::kNone) return;
    put(name, name_of(function));
  }
  void operator()(const char* name, bool flag) {
    if (flag) text_ += std::string(" ") + name;
  }
  void operator()(const char* name, std::uint32_t number) {
    const bool usual = std::strcmp(name, "rows") == 0 ? number == Instruction().rows : number == 0;
    if (!usual) put(name, std::to_string(number));
  }
  void operator()(const char* name, std::uint16_t bits) { hexadecimal(name, bits); }
  void operator()(const char* name, std::uint64_t address) { hexadecimal(name, address); }

 private:
  void put(const char* name, std::string_view value) {
    text_ += ' ';
    text_ += name;
    text_ += '=';
    text_ += value;
  }
  void hexadecimal(const char* name, std::uint64_t value) {
    if (value == 0) return;
    std::array<char, 24> digits;
    std::snprintf(digits.data(), digits.size(), "0x%llx", static_cast<unsigned long long>(value));
    put(name, digits.data());
  }

  std::string& text_;
};

}  // namespace

std::string_view name_of(Second second) { return kSecondNames[static_cast<std::size_t>(second)]; }

std::string disassemble(const Pass& pass) {
  std::string text;
  for (std::size_t i = 0; i < pass.exchanges.size(); ++i) {
    const Exchange& exchange = pass.exchanges[i];
    text += "exchange " + std::to_string(i) + " base=" + std::to_string(exchange.base);
    if (exchange.sums) text += " sums";
    const char* separator = " first=";
    for (const std::uint32_t bound : exchange.first) {
      text += separator + std::to_string(bound);
      separator = ",";
    }
    text += '\n';
  }
  for (std::size_t i = 0; i < pass.instructions.size(); ++i) {
    const Instruction& instruction = pass.instructions[i];
    text += std::to_string(i) + " ";
    text += name_of(instruction.op);
    visit_fields(InstructionLine(text), instruction);
    if (instruction.constant.bits != 0) {
      std::array<char, 40> value;
      std::snprintf(value.data(), value.size(), " # constant %.6g", to_float(instruction.constant));
      text += value.data();
    }
    text += '\n';
  }
  return text;
}

}  // namespace systole::hw::dfx
