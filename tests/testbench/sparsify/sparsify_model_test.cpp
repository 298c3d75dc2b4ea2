/// `systole sparsify MODEL --input`: from a network and its inputs to masks, and what they cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/format/npy.h"
#include "model/mask/attention_mask.h"
#include "support/network/tiny_text.h"
#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "support/text_lines.h"

namespace systole::testbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class SparsifyModel : public testing::Test {
 protected:
  std::string text(const std::string& arguments) const {
    return output_of(words_of("sparsify", words_of(arguments)), folder_.path());
  }
  [[nodiscard]] json document(const std::string& arguments) const {
    return document_of(text(arguments + " --json"));
  }
  /// The document of a run of a network under a mask.
  [[nodiscard]] json run(const std::string& arguments) const {
    return document_of(output_of(
        words_of("run", words_of(arguments + " -n 1 --functional off --json")), folder_.path()));
  }

  const std::string digits_ = source_path("traces/data/digits.safetensors");
  const std::string mirror_ = source_path("traces/data/mirror.safetensors");
  TempDirectory folder_;
};

/// A curve's cycles and energy are those of `systole run --mask` with the mask that the same rule
/// writes, on the model that was quantised elsewhere.
TEST_F(SparsifyModel, CurveIsWhatRunsUnderItsMasksTake) {
  const std::string subject = "vit65 -i " + digits_ + " -n 6";
  const json curve = document(subject + " --curve 0.6,0.9")["curve"];
  ASSERT_EQ(curve.size(), 3U);
  const json dense = run("-m vitcod --model vit65");
  EXPECT_EQ(curve[0]["cycles"], dense["cycles"]);
  EXPECT_EQ(curve[0]["energy_joules"], dense["energy_joules"]);
  EXPECT_TRUE(curve[0]["shuffled"].is_null());
  for (const std::size_t point : {1U, 2U}) {
    const std::string sparsity = curve[point]["wanted"].dump();
    text(subject + " --sparsity " + sparsity + " -o mask.npy");
    const json pruned = run("-m vitcod --model vit65 --mask mask.npy");
    EXPECT_EQ(curve[point]["cycles"], pruned["cycles"]);
    EXPECT_EQ(curve[point]["energy_joules"], pruned["energy_joules"]);
    EXPECT_LT(curve[point]["attention_cycles"], curve[point - 1]["attention_cycles"]);
    const auto mask = model::load_mask(model::Npy::open(folder_.path("mask.npy")));
    EXPECT_NEAR(curve[point]["sparsity"].get<double>(), mask.sparsity(), 1e-12);
    EXPECT_NEAR(mask.sparsity(), std::stod(sparsity), 0.01);
  }
}

/// Maps that are written and read again give the mask that comes of them at once.
TEST_F(SparsifyModel, WritesTheMapsThatItPrunes) {
  const std::string subject = "vit17 -i " + digits_ + " -n 8 ";
  text(subject + "--maps maps.npy");
  text(subject + "--sparsity 0.7 -o direct.npy");
  text("maps.npy --cls --dim 16 --sparsity 0.7 -o from_maps.npy");
  EXPECT_EQ(read_file(folder_.path("direct.npy")), read_file(folder_.path("from_maps.npy")));
  text(subject + "--per-head --sparsity 0.7 -o heads.npy");
  const auto mask = model::load_mask(model::Npy::open(folder_.path("heads.npy")));
  for (std::size_t layer = 0; layer < 4; ++layer) {
    for (std::size_t head = 0; head < 4; ++head) {
      EXPECT_NEAR(static_cast<double>(mask.kept_count(layer, head)) / (17 * 17), 0.3, 0.04);
    }
  }
}

/// The accuracies that PyTorch printed when it wrote the checkpoints (script/train/README.md):
/// masks by attention hold on a task of long range, random ones of the same size do not.
TEST_F(SparsifyModel, MasksMatterOnTheMirrorTask) {
  const std::string inputs = " -i " + mirror_;
  const json found = document("mirror" + inputs + " --sparsity 0.8 --margin 0")["quality"];
  const json sparse = document("mirror-sparse80" + inputs)["quality"]["masked"];
  const json random = document("mirror-random80" + inputs)["quality"]["masked"];
  EXPECT_EQ(found["dense"]["accuracy"], 1.0);
  EXPECT_EQ(found["masked"]["accuracy"], 1.0);
  EXPECT_EQ(sparse["accuracy"], 1.0);
  EXPECT_NEAR(random["accuracy"].get<double>(), 0.0889, 0.0001);
  for (const json& one : {found["dense"], found["masked"], sparse}) {
    EXPECT_GE(one["integer_accuracy"], 0.99);
  }
  for (const json& one : {found["shuffled"], random}) EXPECT_LE(one["integer_accuracy"], 0.2);
}

TEST_F(SparsifyModel, MeasuresTheHiddenStatesOfTexts) {
  const std::string bert = test::TinyText::bert().write(folder_.path("bert.safetensors"));
  test::TinyText::write_ids(folder_.path("ids.safetensors"), 5, 11);
  const std::string subject = "./bert.safetensors -i ids.safetensors ";
  const json curve = document(subject + "--curve 0,0.3,0.6 --csv c.csv")["curve"];
  ASSERT_EQ(curve.size(), 4U);
  EXPECT_EQ(curve[0]["quality"]["hidden_error"], 0.0);
  EXPECT_TRUE(curve[0]["quality"]["accuracy"].is_null());
  EXPECT_EQ(curve[1]["quality"]["hidden_error"], 0.0);  // theta above 1: all cells are kept
  EXPECT_GT(curve[2]["quality"]["hidden_error"], 0.0);
  EXPECT_GT(curve[3]["quality"]["hidden_error"], curve[2]["quality"]["hidden_error"]);
  EXPECT_GT(curve[3]["shuffled"]["hidden_error"], curve[3]["quality"]["hidden_error"]);
  const std::vector<std::string> lines = lines_of(read_file(folder_.path("c.csv")));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_THAT(lines[0], HasSubstr("hidden_error,shuffled_hidden_error,cycles"));
}

/// Texts of all lengths: those of the most common one are taken.
TEST_F(SparsifyModel, ClassifiesLabelledTextsUnderItsMasks) {
  const std::string texts = source_path("traces/data/words.safetensors");
  const json report = document(source_path("traces/models/words.safetensors") + " -i " + texts +
                               " -n 40 --curve 0.3,0.6 --seed 2");
  EXPECT_EQ(report["inputs"], 40);
  const json& curve = report["curve"];
  ASSERT_EQ(curve.size(), 3U);
  for (const json& point : curve) {
    const json& quality = point["quality"];
    EXPECT_TRUE(quality["hidden_error"].is_null());
    EXPECT_NEAR(quality["integer_accuracy"].get<double>(), quality["accuracy"].get<double>(), 0.1);
  }
  EXPECT_GE(curve[0]["quality"]["accuracy"], 0.8);
  EXPECT_LE(curve[2]["quality"]["accuracy"], curve[0]["quality"]["accuracy"]);
  EXPECT_LT(curve[2]["attention_cycles"], curve[0]["attention_cycles"]);
}

TEST_F(SparsifyModel, NamesWhatItMeasures) {
  const std::string report = text("vit17 -i " + digits_ + " -n 10 --curve 0.7");
  for (const char* word : {"vit17", "fp32", "integer", "shuffled", "attention", "energy"}) {
    EXPECT_THAT(report, HasSubstr(word));
  }
  EXPECT_THAT(text("vit17 -i " + digits_ + " -n 10 --theta 0.5"), HasSubstr("under a random mask"));
}

}  // namespace
}  // namespace systole::testbench
