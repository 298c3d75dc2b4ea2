#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/format/safetensors_writer.h"
#include "support/network/tiny_text.h"
#include "support/program/bad_input.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using nlohmann::json;
using test::TinyText;

/// Checkpoints, ids, and the integer models that the program makes of them.
class TextRun : public testing::Test {
 protected:
  TextRun() {
    TinyText::bert().write(path("bert.safetensors"));
    TinyText::gpt2("").write(path("gpt.safetensors"));
    TinyText::write_ids(path("ids.safetensors"), 3, 9);
    for (const std::string name : {"bert", "gpt"}) {
      output_of({"quantise", path(name + ".safetensors"), "-c", path("ids.safetensors"), "-o",
                 model(name)});
    }
  }

  [[nodiscard]] std::string path(const std::string& name) const { return directory_.path(name); }
  [[nodiscard]] std::string model(const std::string& name) const {
    return path(name + ".int8.safetensors");
  }
  [[nodiscard]] Words run(const std::string& name, const Words& more) const {
    return words_of("run -m gemmini --model " + model(name) + " -i " + path("ids.safetensors"),
                    more);
  }

  TempDirectory directory_;
};

TEST_F(TextRun, ComputesEveryOperatorOfEveryText) {
  for (const std::string name : {"bert", "gpt"}) {
    const json all = json_of(run(name, {"--check"}));
    EXPECT_EQ(all["images"], 3);
    EXPECT_EQ(all["mismatched_bytes"], 0) << all["first_mismatch"];
    EXPECT_GT(all["checked_operators"], 3 * 20);
    EXPECT_TRUE(all["seeded"].is_null());
    EXPECT_EQ(json_of(run(name, {"-n", "1", "--functional=off"}))["cycles_min"],
              json_of(run(name, {"-n", "1"}))["cycles_min"]);
  }
}

TEST_F(TextRun, DecodesATextTokenByToken) {
  const json steps = json_of(run("gpt", {"--decode", "--past", "2", "--check"}));
  EXPECT_EQ(steps["images"], 7);
  EXPECT_EQ(steps["decode"]["past"], 2);
  EXPECT_EQ(steps["mismatched_bytes"], 0) << steps["first_mismatch"];
}

/// Three texts of 9 tokens, the second and third with padding.
const std::string& write_padded(const std::string& path, bool padding, bool types) {
  std::vector<std::int64_t> ids, mask, kinds;
  for (std::int64_t i = 0; i < 27; ++i) {
    ids.push_back(i * 7 % static_cast<std::int64_t>(TinyText::kVocabulary));
    mask.push_back(padding && (i / 9 == 1 ? i % 9 > 3 : i / 9 == 2 && i % 9 > 6) ? 0 : 1);
    kinds.push_back(i % 9 > 2 ? 1 : 0);
  }
  const auto tensor = [](const char* name, const std::vector<std::int64_t>& values) {
    return model::make_tensor(name, model::FileDtype::kI64, {3, 9}, values);
  };
  std::vector<model::TensorData> tensors{tensor("input_ids", ids), tensor("attention_mask", mask)};
  if (types) tensors.push_back(tensor("token_type_ids", kinds));
  model::write_safetensors(path, tensors);
  return path;
}

TEST_F(TextRun, PaddingIsMaskedAndCostsNothingWhereThereIsNone) {
  for (const std::string machine : {"gemmini", "transformer"}) {
    for (const std::string name : {"bert", "gpt"}) {
      const bool types = name == "bert";
      const auto run_on = [&](bool padding, const Words& more) {
        const Words arguments =
            words_of("run -m " + machine + " --model " + model(name) + " -i " +
                         write_padded(path("padded.safetensors"), padding, types),
                     more);
        return json_of(arguments);
      };
      const json none = run_on(false, {"--check"});
      const json some = run_on(true, {"--check"});
      for (const json& document : {none, some}) {
        EXPECT_EQ(document["images"], 3);
        EXPECT_EQ(document["mismatched_bytes"], 0) << document["first_mismatch"];
      }
      EXPECT_LT(some["macs"], none["macs"]) << "products with the padding's keys are left out";
      EXPECT_EQ(run_on(true, {"--functional=off"})["cycles"], some["cycles"]);
      // The first text has no padding: its program is the same, and so are its cycles.
      EXPECT_EQ(run_on(true, {"-n", "1"})["cycles"], run_on(false, {"-n", "1"})["cycles"]);
    }
  }
}

TEST_F(TextRun, DecodesATextUpToItsPadding) {
  model::write_safetensors(
      path("ids.safetensors"),
      {model::make_tensor("input_ids", model::FileDtype::kI64, {1, 9},
                          std::vector<std::int64_t>{1, 2, 3, 4, 5, 0, 0, 0, 0}),
       model::make_tensor("attention_mask", model::FileDtype::kI64, {1, 9},
                          std::vector<std::int64_t>{1, 1, 1, 1, 1, 0, 0, 0, 0})});
  const json steps = json_of(run("gpt", {"--decode", "--past", "2", "--check"}));
  EXPECT_EQ(steps["images"], 3);
  EXPECT_EQ(steps["mismatched_bytes"], 0) << steps["first_mismatch"];
}

TEST_F(TextRun, OtherCommandsKnowIt) {
  const json described = json_of({"model", model("bert")});
  EXPECT_EQ(described["vocabulary"], TinyText::kVocabulary);
  EXPECT_TRUE(described["post_norm"].get<bool>());
  const json checkpoint = json_of({"model", path("gpt.safetensors")});
  EXPECT_EQ(checkpoint["family"], "GPT-2");
  EXPECT_EQ(checkpoint["heads"], TinyText::kHeads);
  EXPECT_NE(output_of({"model", path("bert.safetensors")}).find("BERT"), std::string::npos);
  EXPECT_EQ(json_of({"map", "-m", "gemmini", "--model", model("gpt"), "-l", "4"})["model"], "gpt");
  EXPECT_EQ(json_of({"analyse", "--model", model("gpt"), "-l", "7"})["length"], 7);
}

TEST_F(TextRun, BadInputIsOneLine) {
  TinyText::write_ids(path("long.safetensors"), 2, 12);
  write_padded(path("padded.safetensors"), true, false);
  expect_rows_refused(R"(
NoTexts | run -m gemmini --model ./bert.int8.safetensors | --input | input_ids
NoIds | run -m gemmini --model ./bert.int8.safetensors -i bert.safetensors | bert.safetensors | 'input_ids': missing
TooLong | run -m gemmini --model ./bert.int8.safetensors -i long.safetensors | long.safetensors | 12 tokens | 11 positions
LengthOfATextRun | run -m gemmini --model ./bert.int8.safetensors -i ids.safetensors --length 3 | --length | expected none
EncoderByTokens | run -m gemmini --model ./bert.int8.safetensors -i ids.safetensors --decode | --decode: bert is no pre-norm decoder
MapBeyondThePositions | map -m gemmini --model ./bert.int8.safetensors -l 12 | --length: found 12 | 1 to 11
PaddingOnAttentionEngines | run -m vitcod --model ./bert.int8.safetensors -i padded.safetensors | padded.safetensors: attention_mask | vitcod | without padding
WaveOfSeveralProgramsOfPaddedTexts | run -m gemmini --model ./bert.int8.safetensors -i padded.safetensors --wave a.vcd --wave-images 2 | --wave-images | text with padding | expected 1
NoCalibration | quantise ./bert.safetensors -o b.int8.safetensors | --calibration | input_ids
UnknownFamily | quantise ./ids.safetensors -o b.int8.safetensors | ids.safetensors | known family | attn.c_attn
)",
                      directory_);
}

}  // namespace
}  // namespace systole::testbench
