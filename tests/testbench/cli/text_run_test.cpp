#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/checkpoint/text_checkpoint.h"
#include "model/float/float_text.h"
#include "model/float/float_vit.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"
#include "support/network/tiny_text.h"
#include "support/paths.h"
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
      output_of({"quantise", path(name + ".safetensors"), "-c", path("ids.safetensors"),
                 "--row-scales", "-o", model(name + "-rows")});
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
  for (const std::string name : {"bert", "gpt", "bert-rows", "gpt-rows"}) {
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
  for (const std::string name : {"gpt", "gpt-rows"}) {
    const json steps = json_of(run(name, {"--decode", "--past", "2", "--check"}));
    EXPECT_EQ(steps["images"], 7);
    EXPECT_EQ(steps["decode"]["past"], 2);
    EXPECT_EQ(steps["mismatched_bytes"], 0) << steps["first_mismatch"];
  }
}

TEST_F(TextRun, ComparesEmbeddingsWithTheCheckpoint) {
  TinyText::write_ids(path("many.safetensors"), 12, 9, 5);
  const auto judged = [&](const std::string& name) {
    return document_of(
        run_systole({"model", model(name), "--accuracy", "--json", "-i", path("many.safetensors"),
                     "--checkpoint", path("bert.safetensors")})
            .out)["similarity"];
  };
  for (const std::string name : {"bert", "bert-rows"}) {
    const json found = judged(name);
    EXPECT_EQ(found["texts"], 12);
    EXPECT_LE(found["least_cosine"], found["mean_cosine"]);
    EXPECT_LE(found["mean_cosine"], 1.0);
    EXPECT_GT(found["mean_cosine"], 0.998);
    EXPECT_EQ(found["holds"], found["mean_cosine"] >= 0.99);
    EXPECT_GT(found["neighbours_kept"], 0.5);
    EXPECT_LE(found["neighbours_kept"], 1.0);
  }
  // Of another network's states the direction is another.
  TinyText other = TinyText::bert();
  other.scale("bert.encoder.layer.1.output.dense.weight", -3.0F);
  other.write(path("other.safetensors"));
  const Words arguments = {
      "model",        model("bert-rows"),       "--accuracy", "-i", path("ids.safetensors"),
      "--checkpoint", path("other.safetensors")};
  const ProgramRun bad = run_systole(arguments);
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_NE(bad.out.find("  no"), std::string::npos);
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

/// Five texts, two with padding, whose labels are what the real network says but for the last two.
class ClassifierRun : public TextRun {
 protected:
  ClassifierRun() {
    TinyText::classifier().write(path("class.safetensors"));
    for (std::int64_t i = 0; i < kTexts * kLength; ++i) {
      ids_.push_back((i * i + 5 * i) % static_cast<std::int64_t>(TinyText::kVocabulary));
      mask_.push_back(i / kLength % 2 == 1 && i % kLength > 5 ? 0 : 1);
    }
    const model::FloatText real(model::load_text_checkpoint(path("class.safetensors")));
    for (std::int64_t text = 0; text < kTexts; ++text) {
      const auto begin = ids_.begin() + text * kLength;
      const std::int64_t valid = text % 2 == 1 ? 6 : kLength;
      const auto label = static_cast<std::int64_t>(
          model::argmax(real.logits(std::vector<std::int32_t>(begin, begin + valid))));
      const bool wrong = text + 2 >= kTexts;
      labels_.push_back(wrong ? (label + 1) % static_cast<std::int64_t>(TinyText::kClasses)
                              : label);
    }
    write("texts.safetensors", labels_);
    output_of({"quantise", path("class.safetensors"), "-c", path("texts.safetensors"), "-o",
               model("class")});
  }
  void write(const std::string& name, const std::vector<std::int64_t>& labels) const {
    std::vector<model::TensorData> tensors;
    const std::vector<std::size_t> shape{kTexts, kLength};
    tensors.push_back(model::make_tensor("input_ids", model::FileDtype::kI64, shape, ids_));
    tensors.push_back(model::make_tensor("attention_mask", model::FileDtype::kI64, shape, mask_));
    if (!labels.empty()) {
      tensors.push_back(
          model::make_tensor("labels", model::FileDtype::kI64, {labels.size()}, labels));
    }
    model::write_safetensors(path(name), tensors);
  }
  [[nodiscard]] Words run_texts(const std::string& machine, const Words& more) const {
    return words_of(
        "run -m " + machine + " --model " + model("class") + " -i " + path("texts.safetensors"),
        more);
  }

  static constexpr std::int64_t kTexts = 5, kLength = 9;
  std::vector<std::int64_t> ids_, mask_, labels_;
};

TEST_F(ClassifierRun, MeasuresAccuracyAndWritesClasses) {
  std::vector<std::int32_t> first;  // not of gemmini, whose host computes in float32
  for (const std::string machine : {"gemmini", "transformer", "tiny"}) {
    const std::string out = path("out.safetensors");
    const json run = json_of(run_texts(machine, {"--check", "--outputs", out}));
    EXPECT_EQ(run["mismatched_bytes"], 0) << run["first_mismatch"];
    EXPECT_EQ(run["accuracy"], 0.6);
    const model::Safetensors file = model::Safetensors::open(out);
    EXPECT_EQ(file.tensor("logits").shape, (std::vector<std::size_t>{5, 1, TinyText::kClasses}));
    const auto classes = file.copy<std::int32_t>("classes");
    const auto labels = file.copy<std::int32_t>("labels");
    EXPECT_TRUE(std::equal(labels.begin(), labels.end(), labels_.begin(), labels_.end()));
    EXPECT_TRUE(std::equal(classes.begin(), classes.begin() + 3, labels.begin()));
    EXPECT_NE(classes[3], labels[3]);
    EXPECT_NE(classes[4], labels[4]);
    const auto logits = file.copy<std::int32_t>("logits");
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * TinyText::kClasses);
      EXPECT_EQ(std::max_element(row, row + TinyText::kClasses) - row, classes[i]);
    }
    if (machine == "transformer") first = logits;
    if (machine == "tiny") EXPECT_EQ(logits, first) << "the same on every machine";
  }
}

TEST_F(ClassifierRun, IsJudgedBesideTheRealNetwork) {
  const json found =
      json_of({"model", model("class"), "--accuracy", "-i", path("texts.safetensors")});
  const json& judged = found["accuracy"][0];
  EXPECT_EQ(judged["texts"], 5);
  EXPECT_EQ(judged["fp32_accuracy"], 0.6);
  EXPECT_EQ(judged["integer_accuracy"], 0.6);
  EXPECT_EQ(judged["holds"], true);
  EXPECT_EQ(json_of({"model", model("class")})["classes"], TinyText::kClasses);
  EXPECT_EQ(json_of({"model", model("bert")})["classes"], 0);
}

// The network that comes with Systole: transformers, which trained it, has 91.17 % of the same
// texts.
TEST(Words, AreClassifiedByIntegersAsByTheCheckpoint) {
  const TempDirectory directory;
  const std::string model = directory.path("words.int8.safetensors");
  const std::string data = source_path("traces/data/");
  output_of({"quantise", "words", "-c", data + "words_calibration.safetensors", "-o", model});
  const json judged =
      json_of({"model", model, "--accuracy", "-i", data + "words.safetensors", "--checkpoint",
               source_path("traces/models/words.safetensors")})["accuracy"][0];
  EXPECT_EQ(judged["texts"], 600);
  EXPECT_NEAR(judged["fp32_accuracy"].get<double>(), 0.9117, 0.004);
  EXPECT_TRUE(judged["holds"].get<bool>()) << judged;
  const json run = json_of({"run", "-m", "transformer", "--model", model, "-i",
                            data + "words.safetensors", "-n", "40", "--check"});
  EXPECT_EQ(run["mismatched_bytes"], 0) << run["first_mismatch"];
  EXPECT_GE(run["accuracy"], 0.8);
}

// The encoder-decoder that comes with Systole: transformers, which trained it, has 93.05 % of the
// tokens of the same texts.
TEST(Vowels, AreWrittenByIntegersAsByTheCheckpoint) {
  const TempDirectory directory;
  const std::string model = directory.path("vowels.int8.safetensors");
  const std::string data = source_path("traces/data/");
  output_of({"quantise", "vowels", "-c", data + "vowels_calibration.safetensors", "-o", model});
  const json judged =
      json_of({"model", model, "--accuracy", "-i", data + "vowels.safetensors", "--checkpoint",
               source_path("traces/models/vowels.safetensors")})["accuracy"][0];
  EXPECT_EQ(judged["tokens"], 4146);
  EXPECT_NEAR(judged["fp32_accuracy"].get<double>(), 0.9305, 0.0003);
  EXPECT_TRUE(judged["holds"].get<bool>()) << judged;
  std::vector<json> runs;
  for (const char* beams : {"1", "4"}) {
    runs.push_back(json_of({"generate", "--model", model, "--prompt", "nd th wtrs rtrnd", "--check",
                            "--beams", beams}));
    const json& run = runs.back();
    EXPECT_EQ(run["mismatched_bytes"], 0) << run["first_mismatch"];
    EXPECT_EQ(run["encoder"]["mismatches"], 0);
    EXPECT_GT(run["encoder"]["checked_bytes"], 0);
    EXPECT_EQ(run["source_tokens"], 16);
    EXPECT_EQ(run["text"], "and the waters returned");
  }
  EXPECT_EQ(runs[0]["copied_bytes"], 0);
  EXPECT_GT(runs[1]["copied_bytes"], 0);
  EXPECT_GT(runs[1]["cycles_per_token"], runs[0]["cycles_per_token"]);
}

// All tokens of a target at once, each source up to its padding.
TEST(Vowels, RunAsPairsOfTexts) {
  const TempDirectory directory;
  const std::string model = directory.path("vowels.int8.safetensors");
  const std::string data = source_path("traces/data/"), texts = data + "vowels.safetensors";
  output_of({"quantise", "vowels", "-c", data + "vowels_calibration.safetensors", "-o", model});
  for (const std::string machine : {"transformer", "gemmini"}) {
    const json run =
        json_of({"run", "-m", machine, "--model", model, "-i", texts, "-n", "3", "--check"});
    EXPECT_EQ(run["mismatched_bytes"], 0) << run["first_mismatch"];
    EXPECT_GT(run["checked_bytes"], 0);
    EXPECT_GE(run["accuracy"], 0.8);
    EXPECT_EQ(run["images"], 3);
  }
  const json expected =
      json_of({"analyse", "-m", "transformer", "--model", model, "--length", "16", "--simulate"});
  const json map = json_of({"map", "-m", "transformer", "--model", model, "--length", "16"});
  EXPECT_GT(expected["cycles"], 0);
  EXPECT_EQ(map["expected_cycles"], expected["mapped_total"]["expected_cycles"]);
  const auto refused = [&](const Words& arguments, const std::string& what) {
    const ProgramRun run = run_systole(arguments);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_NE(run.err.find(what), std::string::npos) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  };
  const Words run = {"run", "-m", "transformer", "--model", model};
  refused(run, "expected a safetensors file with input_ids and decoder_input_ids");
  refused(words_of("run -m transformer --model " + model + " -i " + texts, {"--decode"}),
          "--decode");
  refused(words_of("run -m transformer --model " + model + " -i " + texts, {"--mask", "m.npy"}),
          "is an encoder-decoder, expected a network of one part");
  refused({"run", "-m", "vitcod", "--model", model, "-i", texts},
          "attention_mask: found padding, but vitcod has attention engines");
  refused({"analyse", "--model", model}, "of Transformers of one part, expected --machine");
  refused({"map", "-m", "transformer", "--model", model, "--length", "1000"},
          "--length: found 1000");
}

TEST_F(ClassifierRun, CoresShareItsTexts) {
  mask_.assign(mask_.size(), 1);
  write("texts.safetensors", labels_);
  const json alone = json_of(run_texts("transformer", {}));
  for (const std::string split : {"batch", "layers", "heads"}) {
    const json run = json_of(run_texts("transformer", {"--check", "--cores=2", "--split", split}));
    EXPECT_EQ(run["mismatched_bytes"], 0) << split << run["first_mismatch"];
    EXPECT_EQ(run["accuracy"], alone["accuracy"]);
  }
}

TEST_F(ClassifierRun, BadLabelsAreOneLine) {
  write("none.safetensors", {});
  write("few.safetensors", {1, 2});
  write("high.safetensors", {0, 1, 2, 3, 5});
  write("low.safetensors", {0, 1, 2, 3, -1});
  model::write_safetensors(
      path("real.safetensors"),
      {model::make_tensor("input_ids", model::FileDtype::kI64, {kTexts, kLength}, ids_),
       model::make_tensor("labels", model::FileDtype::kF32, {kTexts}, std::vector<float>(kTexts))});
  expect_rows_refused(R"(
Few | run -m gemmini --model ./class.int8.safetensors -i few.safetensors | few.safetensors: tensor 'labels' | [2] | expected [5]
High | run -m gemmini --model ./class.int8.safetensors -i high.safetensors | high.safetensors: tensor 'labels' | element 4 is 5 | 0 to 4
Low | run -m gemmini --model ./class.int8.safetensors -i low.safetensors | low.safetensors: tensor 'labels' | element 4 is -1 | 0 to 4
Real | run -m gemmini --model ./class.int8.safetensors -i real.safetensors | real.safetensors: tensor 'labels' | F32
NoneNeeded | run -m gemmini --model ./class.int8.safetensors -i none.safetensors --min-accuracy 0.5 | none.safetensors: has no labels
NoClasses | run -m gemmini --model ./bert.int8.safetensors -i ids.safetensors --min-accuracy 0.5 | --min-accuracy: bert does not classify
AccuracyOfStatesWithoutTexts | model ./bert.int8.safetensors --accuracy | --input: bert reads texts | input_ids
AccuracyOfOtherStates | model ./bert.int8.safetensors --accuracy -i ids.safetensors --checkpoint gpt.safetensors | gpt.safetensors: has another shape
RowScalesOfPictures | quantise vit17 --row-scales -o a.int8.safetensors | --row-scales: of BERT and GPT-2 | vit17
AccuracyWithoutTexts | model ./class.int8.safetensors --accuracy | --input: class classifies texts | labels
AccuracyWithoutLabels | model ./class.int8.safetensors --accuracy -i none.safetensors | no labels
AccuracyOfAnother | model ./class.int8.safetensors --accuracy -i texts.safetensors --checkpoint bert.safetensors | bert.safetensors: has another shape
)",
                      directory_);
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
