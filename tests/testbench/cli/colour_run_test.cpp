#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/network/tiny_hf_vit.h"
#include "support/program/bad_input.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

/// Checkpoints of colour pictures through the program.
namespace systole::testbench {
namespace {

using nlohmann::json;
using test::TinyHfVit;

constexpr std::int64_t kLast = TinyHfVit::kClasses - 1;

/// A network, its pictures and the integer model that the program makes of them.
void put_network(const TempDirectory& directory, const TinyHfVit& vit) {
  vit.write(directory.path("vit.safetensors"));
  vit.write_pictures(directory.path("p.safetensors"), 3, {0, 42, kLast});
  directory.write("preprocessor_config.json",
                  R"({"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})");
  output_of({"quantise", directory.path("vit.safetensors"), "-c", directory.path("p.safetensors"),
             "-o", directory.path("vit.int8.safetensors")});
}

Words run_of(const TempDirectory& directory, const Words& more) {
  Words arguments{"run",
                  "-m",
                  "gemmini",
                  "--model",
                  directory.path("vit.int8.safetensors"),
                  "-i",
                  directory.path("p.safetensors")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(ColourRun, ComputesEveryOperatorOfEveryPicture) {
  for (const TinyHfVit& vit : {TinyHfVit(), TinyHfVit(32, 8, 3, "deit.")}) {
    const TempDirectory directory;
    put_network(directory, vit);
    const json all = json_of(run_of(directory, {"--check"}));
    EXPECT_EQ(all["images"], 3);
    EXPECT_EQ(all["mismatched_bytes"], 0) << all["first_mismatch"];
    EXPECT_GT(all["checked_operators"], 3 * 20);
    EXPECT_TRUE(all["accuracy"].is_number());
  }
}

TEST(ColourRun, OtherCommandsKnowIt) {
  const TempDirectory directory;
  put_network(directory, TinyHfVit());
  const json described = json_of({"model", directory.path("vit.int8.safetensors")});
  EXPECT_EQ(described["channels"], 3);
  EXPECT_EQ(described["levels"], 256);
  EXPECT_EQ(described["classes"], TinyHfVit::kClasses);
  const std::string text = output_of({"model", directory.path("vit.safetensors")});
  EXPECT_NE(text.find("8 x 8 pixels, 3 channels of 256 levels"), std::string::npos) << text;
  // The same three pictures: a network of seeded weights need not know what they are.
  const ProgramRun judged =
      run_systole({"model", directory.path("vit.int8.safetensors"), "--accuracy", "-i",
                   directory.path("p.safetensors"), "--json"});
  const json accuracy = document_of(judged.out)[0];
  EXPECT_EQ(accuracy["images"], 3);
  EXPECT_EQ(accuracy["fp32_accuracy"], accuracy["integer_accuracy"]);
}

void put_tiny(const TempDirectory& directory) {
  put_network(directory, TinyHfVit());
  TinyHfVit(8, 4, 1).write_pictures(directory.path("grey.safetensors"), 1);
  TinyHfVit(16, 4).write_pictures(directory.path("large.safetensors"), 1);
  TinyHfVit().write_pictures(directory.path("labels.safetensors"), 2, {0, kLast + 1});
  TinyHfVit().write_pictures(directory.path("negative.safetensors"), 2, {0, -1});
  directory.write("grey.pgm", "P5 8 8 255\n" + std::string(64, '\x01'));
}

void put_distilled(const TempDirectory& directory) {
  put_tiny(directory);
  TinyHfVit vit(8, 4, 3, "deit.");
  vit.add("deit.embeddings.distillation_token", {1, 1, TinyHfVit::kWidth}, 0.5);
  vit.write(directory.path("vit.safetensors"));
}

Prepare tiny_with_config(std::string text) {
  return [text = std::move(text)](const TempDirectory& directory) {
    put_tiny(directory);
    directory.write("preprocessor_config.json", text);
  };
}

BadInput bad_run(const char* name, const std::string& input, const Words& error) {
  return {name,
          {"run", "-m", "gemmini", "--model", "./vit.int8.safetensors", "-i", input},
          {error},
          put_tiny};
}

BadInput bad_quantise(const char* name, const Words& error, Prepare prepare) {
  return {name,
          {"quantise", "./vit.safetensors", "-c", "p.safetensors", "-o", "o.int8.safetensors"},
          {error},
          std::move(prepare)};
}

class BadColourTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadColourTest, IsRefusedInOneLine) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Pictures, BadColourTest,
    testing::Values(
        bad_run("Grey", "grey.safetensors", {"grey.safetensors", "1 x 8 x 8", "3 x 8 x 8"}),
        bad_run("GreyPicture", "grey.pgm", {"grey.pgm", "1 x 8 x 8", "3 x 8 x 8"}),
        bad_run("Large", "large.safetensors", {"large.safetensors", "3 x 16 x 16", "3 x 8 x 8"}),
        bad_run("Label", "labels.safetensors", {"labels.safetensors", "is 300", "0..299"}),
        bad_run("NegativeLabel", "negative.safetensors", {"element 1 is -1", "0..299"}),
        BadInput{"TheDigits",
                 {"run", "-m", "gemmini", "--model", "./vit.int8.safetensors"},
                 {{"digits.safetensors", "1 x 8 x 8", "3 x 8 x 8"}},
                 put_tiny},
        bad_quantise("Distilled", {"distillation_token", "class token alone"}, put_distilled),
        bad_quantise("TruncatedConfig", {"preprocessor_config.json", "JSON object"},
                     tiny_with_config("{\"image_mean\": [0.5,")),
        bad_quantise("ConfigOfOtherChannels", {"preprocessor_config.json: image_mean", "3"},
                     tiny_with_config("{\"image_mean\": [0.5]}")),
        bad_quantise("ConfigThatDividesByZero", {"preprocessor_config.json: image_std[2]"},
                     tiny_with_config("{\"image_std\": [1, 1, 0]}"))),
    bad_input_name);

}  // namespace
}  // namespace systole::testbench
