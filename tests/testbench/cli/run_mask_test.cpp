/// `systole run --mask`: networks under a fixed attention mask of a file.

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/npy_bytes.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

std::string shape_text(std::size_t layers, std::size_t heads, std::size_t tokens) {
  const std::string side = std::to_string(tokens);
  return "(" + std::to_string(layers) + ", " + std::to_string(heads) + ", " + side + ", " + side +
         ")";
}

/// A cell in `period` is kept, and the diagonal.
std::string random_cells(std::size_t maps, std::size_t tokens, unsigned period, unsigned seed) {
  std::mt19937 random(seed);
  std::string pruned;
  for (std::size_t cell = 0; cell < maps * tokens * tokens; ++cell) {
    const bool diagonal = cell / tokens % tokens == cell % tokens;
    pruned += static_cast<char>(diagonal || random() % period == 0 ? 0 : 1);
  }
  return pruned;
}

class RunUnderMask : public testing::Test {
 protected:
  /// The statistics of a checked run of two inputs; its outputs go to values.safetensors.
  [[nodiscard]] json run(const std::string& machine, std::vector<std::string> model,
                         const std::string& mask) const {
    Words arguments =
        words_of("run -m " + machine + " -n 2 --check --stats " + folder_.path("run.json") +
                     " --outputs " + folder_.path("values.safetensors"),
                 model);
    if (!mask.empty()) arguments.insert(arguments.end(), {"--mask", folder_.path(mask)});
    const ProgramRun result = run_systole(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    const json document = document_of(read_file(folder_.path("run.json")));
    EXPECT_EQ(document["mismatched_bytes"], 0);
    EXPECT_GT(document["checked_bytes"], 0);
    return document;
  }
  [[nodiscard]] std::string values(const std::vector<std::string>& model,
                                   const std::string& mask) const {
    (void)run("vitcod", model, mask);
    return read_file(folder_.path("values.safetensors"));
  }

  TempDirectory folder_;
  const std::vector<std::string> vit_{"--model", "vit65"};
};

TEST_F(RunUnderMask, EnginesComputeTheKeptCellsAndOtherMachinesTheSameBits) {
  const std::string pruned = random_cells(4 * 4, 65, 12, 3);
  folder_.write("mask.npy", npy_mask(shape_text(4, 4, 65), pruned));
  const auto macs = [&](const json& document) {
    return document["blocks"]["attention"]["counters"]["macs"].get<std::uint64_t>();
  };
  const json dense = run("vitcod", vit_, ""), masked = run("vitcod", vit_, "mask.npy");
  EXPECT_LT(2 * macs(masked), macs(dense));
  EXPECT_LT(masked["cycles"], dense["cycles"]);
  EXPECT_NE(masked["model"], dense["model"]) << "the name says so";
  const std::string on_engines = read_file(folder_.path("values.safetensors"));
  (void)run("transformer", vit_, "mask.npy");
  EXPECT_EQ(read_file(folder_.path("values.safetensors")), on_engines);
}

TEST_F(RunUnderMask, AFullMaskChangesNothing) {
  folder_.write("full.npy", npy_mask(shape_text(4, 4, 65), std::string(16 * 65 * 65, '\0')));
  EXPECT_EQ(values(vit_, "full.npy"), values(vit_, ""));
}

TEST_F(RunUnderMask, OneLayerServesAllOfThem) {
  const std::string one = random_cells(4, 65, 6, 4), last = random_cells(4, 65, 6, 5);
  folder_.write("one.npy", npy_mask(shape_text(1, 4, 65), one));
  folder_.write("all.npy", npy_mask(shape_text(4, 4, 65), one + one + one + one));
  folder_.write("other.npy", npy_mask(shape_text(4, 4, 65), one + one + one + last));
  EXPECT_EQ(values(vit_, "one.npy"), values(vit_, "all.npy"));
  EXPECT_NE(values(vit_, "one.npy"), values(vit_, "other.npy"));
}

TEST_F(RunUnderMask, ShapesTakeMasksToo) {
  folder_.write("mask.npy", npy_mask(shape_text(2, 4, 24), random_cells(8, 24, 5, 6)));
  const std::vector<std::string> shape{"--model", "bert-base", "--length", "24", "--layers", "2",
                                       "--heads", "4",         "--d",      "64", "--ffn",    "64"};
  EXPECT_NE(values(shape, "mask.npy"), values(shape, ""));
}

}  // namespace
}  // namespace systole::testbench
