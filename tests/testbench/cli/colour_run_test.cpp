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
  return words_of("run -m gemmini --model " + directory.path("vit.int8.safetensors") + " -i " +
                      directory.path("p.safetensors"),
                  more);
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
  const json accuracy = document_of(judged.out)["accuracy"][0];
  EXPECT_EQ(accuracy["images"], 3);
  EXPECT_EQ(accuracy["fp32_accuracy"], accuracy["integer_accuracy"]);
}

TEST(ColourRun, BadInputIsOneLine) {
  const TempDirectory directory;
  put_network(directory, TinyHfVit());
  TinyHfVit(8, 4, 1).write_pictures(directory.path("grey.safetensors"), 1);
  TinyHfVit(16, 4).write_pictures(directory.path("large.safetensors"), 1);
  TinyHfVit().write_pictures(directory.path("labels.safetensors"), 2, {0, kLast + 1});
  TinyHfVit().write_pictures(directory.path("negative.safetensors"), 2, {0, -1});
  TinyHfVit distilled(8, 4, 3, "deit.");
  distilled.add("deit.embeddings.distillation_token", {1, 1, TinyHfVit::kWidth}, 0.5);
  distilled.write(directory.path("distilled.safetensors"));
  expect_rows_refused(R"(
Grey | run -m gemmini --model ./vit.int8.safetensors -i grey.safetensors | grey.safetensors | 1 x 8 x 8 | 3 x 8 x 8
GreyPicture | run -m gemmini --model ./vit.int8.safetensors -i grey.pgm | grey.pgm | 1 x 8 x 8 | 3 x 8 x 8 | file grey.pgm: P5 8 8 255\n\x01\*64
Large | run -m gemmini --model ./vit.int8.safetensors -i large.safetensors | large.safetensors | 3 x 16 x 16 | 3 x 8 x 8
Label | run -m gemmini --model ./vit.int8.safetensors -i labels.safetensors | labels.safetensors | is 300 | 0..299
NegativeLabel | run -m gemmini --model ./vit.int8.safetensors -i negative.safetensors | element 1 is -1 | 0..299
TheDigits | run -m gemmini --model ./vit.int8.safetensors | digits.safetensors | 1 x 8 x 8 | 3 x 8 x 8
Distilled | quantise ./distilled.safetensors -c p.safetensors -o o.int8.safetensors | distillation_token | class token alone
TruncatedConfig | quantise ./vit.safetensors -c p.safetensors -o o.int8.safetensors | preprocessor_config.json | JSON object | file preprocessor_config.json: {"image_mean": [0.5,
ConfigOfOtherChannels | quantise ./vit.safetensors -c p.safetensors -o o.int8.safetensors | preprocessor_config.json: image_mean | 3 | file preprocessor_config.json: {"image_mean": [0.5]}
ConfigThatDividesByZero | quantise ./vit.safetensors -c p.safetensors -o o.int8.safetensors | preprocessor_config.json: image_std[2] | file preprocessor_config.json: {"image_std": [1, 1, 0]}
)",
                      directory);
}

}  // namespace
}  // namespace systole::testbench
