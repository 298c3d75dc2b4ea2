/// The command `systole attention`: its document, its figures, its options.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "support/documented_names.h"
#include "support/npy_bytes.h"
#include "support/program/program_run.h"
#include "support/shared_data.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// Two layers of three heads with 40 queries and 50 keys; every query keeps keys 7 and 8.
std::string mask_file() {
  std::mt19937 random(11);
  std::string pruned;
  for (std::size_t row = 0; row < 2 * 3 * 40; ++row) {
    for (std::size_t key = 0; key < 50; ++key) {
      pruned += static_cast<char>(key == 7 || key == 8 ? 0 : random() % 10 != 0);
    }
  }
  return npy_mask("(2, 3, 40, 50)", pruned);
}

/// Columns of all heads of that mask in which a cell is kept.
std::uint64_t used_keys() {
  const std::string file = mask_file();
  const std::string pruned = file.substr(file.size() - 2 * 3 * 40 * 50);
  std::set<std::size_t> used;
  for (std::size_t cell = 0; cell < pruned.size(); ++cell) {
    if (pruned[cell] == '\0') used.insert(cell / (40 * 50) * 50 + cell % 50);
  }
  return used.size();
}

std::uint64_t number(const json& value) { return value.get<std::uint64_t>(); }

std::uint64_t stalled(const json& object) {
  std::uint64_t sum = 0;
  for (const auto& [cause, cycles] : object["stalled"].items()) sum += number(cycles);
  return sum;
}

class AttentionCommand : public testing::Test {
 protected:
  AttentionCommand() { directory_.write("mask.npy", mask_file()); }

  std::string text_of(const Words& arguments) const {
    const Words words = words_of("attention -m vitcod", arguments);
    return output_of(words, directory_.path());
  }
  [[nodiscard]] json json_of(Words arguments) const {
    arguments.emplace_back("--json");
    return document_of(text_of(arguments));
  }
  [[nodiscard]] json mask_json(const Words& more = {}) const {
    const Words arguments = words_of("--mask mask.npy", more);
    return json_of(arguments);
  }

  TempDirectory directory_;
};

TEST_F(AttentionCommand, ChecksEveryByte) {
  const json result = mask_json({"--dim", "24"});
  EXPECT_EQ(result["checked_bytes"], 2 * 3 * 40 * 24);
  EXPECT_EQ(result["mismatched_bytes"], 0);
  EXPECT_EQ(result["machine"], "vitcod");
  EXPECT_EQ(result["mask"], "mask.npy");
  EXPECT_EQ(result["layer_count"], 2);
  EXPECT_EQ(result["head_count"], 3);
  EXPECT_EQ(result["queries"], 40);
  EXPECT_EQ(result["keys"], 50);
  EXPECT_EQ(result["dim"], 24);
  EXPECT_EQ(result["v_dim"], 24);
}

TEST_F(AttentionCommand, ChecksValuesOfAnotherWidth) {
  for (const std::uint64_t width : {1U, 8U, 100U}) {
    const json result = mask_json({"--dim", "24", "--v-dim", std::to_string(width)});
    EXPECT_EQ(result["checked_bytes"], 2 * 3 * 40 * width);
    EXPECT_EQ(result["mismatched_bytes"], 0);
    EXPECT_EQ(result["v_dim"], width);
    EXPECT_EQ(result["key_bytes"], used_keys() * 24);
    EXPECT_EQ(result["value_bytes"], used_keys() * width);
    EXPECT_EQ(result["dram_written_bytes"], 2 * 3 * 40 * width);
    EXPECT_NEAR(result["utilisation"],
                (24.0 + static_cast<double>(width)) * result["kept"].get<double>() /
                    (result["engine_cycles"].get<double>() * 512),
                1e-12);
  }
}

TEST_F(AttentionCommand, SumsHeadsToLayersAndLayersToTheWhole) {
  const json result = mask_json();
  const std::string pruned = mask_file();
  const auto kept = std::count(pruned.end() - 2 * 3 * 40 * 50, pruned.end(), '\0');
  EXPECT_EQ(result["kept"], kept);
  ASSERT_EQ(result["layers"].size(), 2U);
  for (const char* name : {"sddmm_cycles", "softmax_cycles", "spmm_cycles", "cells", "kept",
                           "computed", "global_columns", "stalled", "cycles"}) {
    const auto figure = [&](const json& object) {
      return std::string(name) == "stalled" ? stalled(object) : number(object[name]);
    };
    std::uint64_t of_layers = 0;
    for (const json& layer : result["layers"]) {
      ASSERT_EQ(layer["heads"].size(), 3U);
      std::uint64_t of_heads = 0;
      for (const json& head : layer["heads"]) of_heads += figure(head);
      EXPECT_EQ(figure(layer), of_heads) << name;
      of_layers += of_heads;
    }
    if (std::string(name) == "cycles") {
      EXPECT_EQ(result["engine_cycles"], of_layers);
    } else {
      EXPECT_EQ(figure(result), of_layers) << name;
    }
  }
}

TEST_F(AttentionCommand, FiguresAgreeWithEachOther) {
  const json result = mask_json();
  EXPECT_EQ(number(result["engine_cycles"]),
            number(result["sddmm_cycles"]) + number(result["spmm_cycles"]));
  EXPECT_GE(number(result["cycles"]), number(result["engine_cycles"]));
  const json& lines = result["lines"];
  EXPECT_EQ(number(lines["busy"]) + stalled(lines) + number(lines["idle"]), lines["total"]);
  EXPECT_EQ(lines["total"], 64 * number(result["engine_cycles"]));
  EXPECT_GT(number(lines["busy"]), 0U);
  EXPECT_LE(number(lines["idle"]), number(lines["total"])) << "wrapped around";
  EXPECT_EQ(
      number(result["qkv_bytes"]),
      number(result["query_bytes"]) + number(result["key_bytes"]) + number(result["value_bytes"]));
  EXPECT_EQ(result["query_bytes"], 2 * 3 * 40 * 64);
  EXPECT_EQ(result["key_bytes"], used_keys() * 64) << "keys that no query attends to stay away";
  EXPECT_EQ(result["value_bytes"], used_keys() * 64);
  EXPECT_EQ(number(result["dram_read_bytes"]),
            number(result["qkv_bytes"]) + number(result["index_bytes"]));
  EXPECT_EQ(result["dram_written_bytes"], 2 * 3 * 40 * 64);
  const double offered = result["engine_cycles"].get<double>() * 512;
  EXPECT_NEAR(result["utilisation"], 2 * 64 * result["kept"].get<double>() / offered, 1e-12);
  EXPECT_GT(result["energy_joules"], 0.0);
}

TEST_F(AttentionCommand, TimingAloneHasTheSameCyclesAndBytes) {
  json with = mask_json(), without = mask_json({"--functional=off"});
  EXPECT_FALSE(without.contains("checked_bytes"));
  for (const char* name : {"checked_bytes", "mismatched_bytes", "wall_seconds"}) {
    with.erase(name);
    without.erase(name);
  }
  EXPECT_EQ(with, without);
}

TEST_F(AttentionCommand, RunsAreTheSameEveryTime) {
  json first = mask_json(), second = mask_json();
  first.erase("wall_seconds");
  second.erase("wall_seconds");
  EXPECT_EQ(first, second);
}

TEST_F(AttentionCommand, OptionsChooseTheGlobalColumns) {
  EXPECT_EQ(mask_json({"--no-reorder"})["global_columns"], 0);
  EXPECT_EQ(mask_json({"--threshold", "39"})["global_columns"], 2 * 2 * 3);
  EXPECT_EQ(mask_json({"--threshold", "0"})["global_columns"], used_keys());
  EXPECT_EQ(mask_json({"--threshold", "40"})["global_columns"], 0);
  EXPECT_LE(mask_json()["sddmm_cycles"], mask_json({"--no-reorder"})["sddmm_cycles"]);
}

TEST_F(AttentionCommand, WithoutAMaskAllCellsAreKept) {
  const json result = json_of({"--tokens", "20", "--heads", "2", "--layers", "3"});
  EXPECT_EQ(result["mask"], "dense");
  EXPECT_EQ(result["kept"], 3 * 2 * 20 * 20);
  EXPECT_EQ(result["cells"], result["kept"]);
  EXPECT_EQ(result["layer_count"], 3);
  EXPECT_EQ(result["checked_bytes"], 3 * 2 * 20 * 64);
  EXPECT_EQ(result["mismatched_bytes"], 0);
}

TEST_F(AttentionCommand, AHeadMayBeEmpty) {
  directory_.write("empty.npy", npy_mask("(1, 2, 2, 1)", std::string("\1\1\0\0", 4)));
  const json result = json_of({"--mask", "empty.npy"});
  EXPECT_EQ(result["mismatched_bytes"], 0);
  EXPECT_EQ(result["layers"][0]["heads"][0]["kept"], 0);
  EXPECT_EQ(result["layers"][0]["heads"][1]["kept"], 2);
}

TEST_F(AttentionCommand, DeitTinyAsPublished) {
  const std::string mask = shared_data("vitcod/deit_tiny_0.95_pruned.npy");
  if (mask.empty()) GTEST_SKIP() << "NOT TESTED: a run of DeiT-Tiny, no mask of it";
  const json result = json_of({"--mask", mask});
  EXPECT_EQ(result["kept"], 74399);
  EXPECT_EQ(result["qkv_bytes"], 1361664);
  EXPECT_EQ(result["mismatched_bytes"], 0);
  EXPECT_GE(result["engine_cycles"], 18600);
  const json latent = json_of({"--mask", mask, "--latent-heads", "2"});
  EXPECT_EQ(latent["qkv_bytes"], 1059072);
  EXPECT_EQ(latent["mismatched_bytes"], 0);
}

TEST_F(AttentionCommand, LatentHeadsAreDecodedAndComparedWithARunWithout) {
  const json plain = mask_json(), result = mask_json({"--latent-heads", "2"});
  EXPECT_EQ(result["mismatched_bytes"], 0);
  EXPECT_EQ(result["latent_heads"], 2);
  EXPECT_EQ(plain["latent_heads"], 0);
  EXPECT_EQ(result["without_auto_encoder_cycles"], plain["cycles"]);
  EXPECT_EQ(result["query_bytes"], 2 * 2 * 40 * 64) << "two heads instead of three";
  EXPECT_GT(number(result["decode_cycles"]), 0U);
  EXPECT_EQ(plain["decode_cycles"], 0);
  EXPECT_EQ(plain["stalled"]["decode"], 0);
  // A token is decoded for the head that needs it first, all of them for one of the three.
  for (const json& layer : result["layers"]) {
    std::uint64_t of_heads = 0, last = 0;
    for (const json& head : layer["heads"]) {
      of_heads += number(head["decode_cycles"]);
      last = std::max(last, number(head["link_cycles"]));
    }
    EXPECT_EQ(of_heads, layer["decode_cycles"]);
    EXPECT_EQ(last, layer["link_cycles"]);
  }
}

TEST_F(AttentionCommand, WithoutDecoderLinesTheEnginesWaitForTheArray) {
  const json lines = mask_json({"--latent-heads", "2"}),
             array = mask_json({"--latent-heads", "2", "--set", "attention.decoder_lines=0"});
  EXPECT_EQ(array["mismatched_bytes"], 0);
  EXPECT_EQ(array["qkv_bytes"], lines["qkv_bytes"]);
  EXPECT_GE(number(array["stalled"]["decode"]), number(array["decode_cycles"]));
}

TEST_F(AttentionCommand, TheTextSaysWhetherTheAutoEncoderPays) {
  const std::string plain = text_of({"--mask", "mask.npy"});
  EXPECT_EQ(plain.find("decode"), std::string::npos);
  const std::string text = text_of({"--mask", "mask.npy", "--latent-heads", "2"});
  EXPECT_THAT(text, HasSubstr("auto-encoder  3 -> 2 heads: "));
  EXPECT_THAT(text, HasSubstr(" decode\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST_F(AttentionCommand, StatisticsFileIsWhatJsonPrints) {
  const std::string printed =
      text_of({"--tokens", "5", "--heads", "1", "--stats", "a.json", "--json"});
  EXPECT_EQ(read_file(directory_.path("a.json")), printed);
}

TEST_F(AttentionCommand, TextFitsATerminalAndSaysWhatWasChecked) {
  const std::string text = text_of({"--mask", "mask.npy"});
  EXPECT_THAT(text, HasSubstr("15,360 bytes equal to the dense masked product"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST_F(AttentionCommand, TextHasTheSingularWhereItBelongs) {
  EXPECT_THAT(text_of({"--tokens", "5", "--heads", "1", "--dim", "1"}),
              HasSubstr("dense: 1 layer, 1 head, 5 queries, 5 keys, 1 feature\n"));
}

TEST_F(AttentionCommand, EveryNameIsDocumentedAndNoOther) {
  test::expect_documented(mask_json({"--latent-heads", "2"}), "docs/attention.md");
}

TEST(DynamicAttentionCommand, EveryNameIsDocumentedAndNoOther) {
  // Both machines together have all names of their page, which has those of their keys too.
  json all = json::array();
  for (const std::string machine : {"sanger", "spatten"}) {
    const TempDirectory directory;
    json document = document_of(output_of(
        words_of("attention -m " + machine + " --tokens 20 --heads 2 --layers 2 --json", {}),
        directory.path()));
    for (const auto& [key, value] : document["machine_keys"]["dynamic"].items()) {
      document["dynamic." + key] = value;
    }
    document.erase("provenance");
    document.erase("machine_keys");
    all.push_back(document);
  }
  test::expect_documented(all, "docs/blocks/dynamic_attention.md");
}

TEST(DynamicAttentionCommand, TextFitsATerminal) {
  for (const std::string machine : {"sanger", "spatten"}) {
    const TempDirectory directory;
    const std::string text =
        output_of(words_of("attention -m " + machine + " --tokens 197 --heads 3 --layers 12", {}),
                  directory.path());
    EXPECT_THAT(text, HasSubstr("197 queries, 197 keys, 64 features"));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

}  // namespace
}  // namespace systole::testbench
