#include "tests/testbench/docs/docs_tables.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <regex>
#include <stdexcept>

#include "hw/array/array.h"
#include "hw/description/machine_text.h"
#include "hw/machine/machine.h"
#include "hw/postop/postop.h"
#include "hw/ring/pass_image.h"
#include "model/network/network_ops.h"
#include "support/text_lines.h"

namespace systole::testbench {
namespace {

using hw::Counter;

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string head(const std::vector<std::string>& titles) {
  return row(titles) + "|" + [&] {
    std::string rule;
    for (std::size_t i = 0; i < titles.size(); ++i) rule += "---|";
    return rule;
  }() + "\n";
}

std::string code(std::string_view text) { return "`" + std::string(text) + "`"; }

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// One name for all initiators, one for all channels or banks, and one for all links.
std::string general_name(const std::string& part) {
  static const std::regex initiator("^system\\..*\\.socket$"), number("^(channel|bank)[0-9]+$"),
      link("^(link_[0-9]+_[0-9]+|from|to)_[a-z0-9]+$");
  const std::string name = std::regex_replace(part, initiator, "INITIATOR");
  return std::regex_replace(std::regex_replace(name, number, "$1N"), link, "LINK");
}

/// Rows of unlike lines, and parts after their block.
std::string table_of(const hw::BlockReport& report,
                     const std::function<std::vector<Counter>(const hw::BlockReport&)>& lines) {
  std::vector<std::string> rows;
  const auto add = [&](const hw::BlockReport& block, const std::string& prefix) {
    for (const Counter& line : lines(block)) {
      std::string text = row({code(prefix + line.name), line.unit, line.meaning});
      if (std::find(rows.begin(), rows.end(), text) == rows.end()) rows.push_back(std::move(text));
    }
  };
  add(report, "");
  for (const hw::BlockReport& part : report.parts) add(part, general_name(part.name) + ".");
  if (rows.empty()) return {};
  std::string text = head({"name", "unit", "meaning"});
  for (const std::string& line : rows) text += line;
  return text;
}

std::vector<Counter> times_of(const hw::BlockReport& block) {
  if (!block.time) return {};
  const std::string& unit = block.time->unit;
  std::vector<Counter> lines{{"busy", unit, "working", 0}};
  for (const hw::TimeAccount::Stall& stall : block.time->stalled) {
    lines.push_back({"stalled." + stall.cause, unit, stall.meaning, 0});
  }
  lines.push_back({"idle", unit, "nothing to do", 0});
  lines.push_back({"total", unit, "busy, stalled and idle together", 0});
  return lines;
}

}  // namespace

std::string keys_table(std::string_view section) {
  const std::string key = "`" + std::string(section) + ".";
  const std::vector<std::string> all = lines_of(hw::describe_machine_keys());
  std::string table, rules;
  for (const std::string& line : all) {
    if (begins_with(line, "| " + key)) table += line + "\n";
    if (begins_with(line, "- " + key)) rules += line + "\n";
  }
  if (table.empty()) {
    throw std::invalid_argument("no machine keys in section " + std::string(section));
  }
  std::string text = all.at(0) + "\n" + all.at(1) + "\n" + table;
  return rules.empty() ? text : text + "\nRules:\n\n" + rules;
}

std::string counters_table(const hw::BlockReport& report) {
  return table_of(report, [](const hw::BlockReport& block) { return block.counters; });
}

std::string stalls_table(const hw::BlockReport& report) { return table_of(report, times_of); }

std::string network_ops_table() {
  const auto form = [](const model::OpForm& of) {
    std::string text;
    for (const model::OpInput& input : of.inputs) {
      text += (text.empty() ? "" : ", ") + std::string(input.name);
      if (input.optional) text += "?";
    }
    std::string attributes;
    for (const model::OpAttribute& attribute : of.attributes) {
      attributes += (attributes.empty() ? "" : ", ") + code(attribute.name);
      if (attribute.optional) attributes += "?";
    }
    if (!attributes.empty()) text += "; " + attributes;
    return text.empty() ? std::string("-") : text;
  };
  std::string text = head({"op", "result", "shapes", "of real numbers", "of integers"});
  for (const model::NetworkOp& op : model::network_ops()) {
    text += row({code(op.name), std::string(op.meaning), std::string(op.shapes), form(op.real),
                 form(op.integer)});
  }
  return text;
}

std::string stages_table() {
  std::string text = head({"stage", "operands", "immediates", "words per channel", "whole row",
                           "read passes", "latency", "least interval of rows"});
  for (std::uint8_t i = 0; i < hw::kStageOps; ++i) {
    hw::Stage stage = hw::default_stage(static_cast<hw::StageOp>(i));
    const hw::StageInfo& info = hw::stage_info(stage.op);
    std::string operands;
    for (std::uint8_t kind = 0; kind < hw::kOperandKinds; ++kind) {
      const auto operand = static_cast<hw::Operand>(kind);
      if (info.takes(operand))
        operands += (operands.empty() ? "" : ", ") + std::string(hw::name_of(operand));
    }
    std::string immediates;
    for (const std::string_view name : info.imm) {
      if (!name.empty()) immediates += (immediates.empty() ? "" : ", ") + std::string(name);
    }
    std::string words = std::to_string(hw::parameter_words(stage));
    if (info.takes(hw::Operand::kChannel)) {
      stage.operand = hw::Operand::kChannel;
      const std::string channel_words = std::to_string(hw::parameter_words(stage));
      if (channel_words != words) words += " or " + channel_words;
    }
    text += row({code(info.name), operands, immediates.empty() ? "-" : immediates, words,
                 info.row_wise ? "yes" : "no", std::to_string(info.passes),
                 std::to_string(info.latency), std::to_string(hw::stage_interval(stage, 1))});
  }
  return text;
}

std::string instruction_fields_table() {
  std::string text = head({"field", "offset", "bytes"});
  for (const hw::dfx::InstructionField& field : hw::dfx::instruction_fields()) {
    text += row({code(field.name), std::to_string(field.offset), std::to_string(field.bytes)});
  }
  return text;
}

std::string array_cycles_table() {
  constexpr std::uint32_t kSides[] = {16, 32, 128};
  constexpr hw::ArrayOverlap kOverlaps[] = {hw::ArrayOverlap::kNone, hw::ArrayOverlap::kPreload,
                                            hw::ArrayOverlap::kFull};
  constexpr const char* kNames[] = {"none", "preload", "full"};
  std::string text = head({"`array.overlap`", "16 x 16", "32 x 32", "128 x 128"});
  for (std::size_t i = 0; i < std::size(kOverlaps); ++i) {
    std::vector<std::string> cells{code(kNames[i])};
    for (const std::uint32_t side : kSides) {
      hw::Machine::Array array;
      array.rows = array.cols = side;
      array.overlap = kOverlaps[i];
      cells.push_back(std::to_string(hw::lone_matmul_cycles(array, 128, 768, 768)));
    }
    text += row(cells);
  }
  return text;
}

}  // namespace systole::testbench
