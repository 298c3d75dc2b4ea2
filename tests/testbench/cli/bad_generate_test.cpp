/// What a user can get wrong with `systole generate`.

#include <gtest/gtest.h>

#include <string>

#include "support/program/bad_input.h"

namespace systole::testbench {
namespace {

constexpr const char* kCheckpoint = "traces/models/kjv.f16.safetensors";

/// `systole generate` with more arguments.
Words generate(const Words& more) {
  Words arguments{"generate"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}
/// The same of a shape, timing only.
Words generate_shape(const std::string& name, Words more) {
  more.insert(more.begin(), {"--functional=off", "--model", name});
  return generate(more);
}

class BadGenerateTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadGenerateTest, IsRefusedInOneLine) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Usage, BadGenerateTest,
    testing::Values(
        BadInput{"MachineWithoutCores",
                 generate({"-m", "transformer"}),
                 {{"transformer: dfx.cores: found 0", "such as dfx"}}},
        BadInput{"MachineForTextInARun",
                 {"run", "-m", "dfx", "--model", "vit17"},
                 {{"dfx: dfx.cores: found 1, expected 0", "systole generate"}}},
        BadInput{"NoCores", generate({"--cores", "0"}), {{"dfx.cores: found 0"}}},
        BadInput{"TooManyCores", generate({"--cores", "65"}), {{"dfx.cores", "0 to 64"}}},
        BadInput{"ProfileOfAnother",
                 generate({"-m", "tiny", "--profile", "ideal"}),
                 {{"--profile", "--machine tiny"}}},
        BadInput{"UnknownModel",
                 generate({"--model", "gpt9"}),
                 {{"'gpt9': unknown", "gpt2-xl-dfx", "kjv"}}},
        BadInput{"LongerThanItsContext",
                 generate({"--input-tokens", "200", "-n", "57"}),
                 {{"200 tokens of prompt and 57 to generate", "at most 256"}}},
        BadInput{"PromptLongerThanTheContext",
                 generate({"-p", std::string(257, 'a')}),
                 {{"257 tokens of prompt", "at most 256"}}},
        BadInput{"NoPrompt",
                 generate({"--input-tokens", "0"}),
                 {{"--input-tokens: found 0, expected a whole number from 1 (see"}}},
        BadInput{"NothingToGenerate",
                 generate({"-n", "0"}),
                 {{"--output-tokens: found 0, expected a whole number from 1 (see"}}},
        BadInput{"EvaluatesNothing",
                 generate({"--evaluate", "0"}),
                 {{"--evaluate: found 0, expected a whole number from 1 (see"}}},
        BadInput{"EmptyPrompt", generate({"-p", ""}), {{"--prompt: found no text, expected"}}},
        BadInput{"EmptyPromptWithoutValues",
                 generate({"--functional", "off", "--prompt="}),
                 {{"--prompt"}}},
        BadInput{"NoCharacterOfIts", generate({"-p", "caf\xc3\xa9"}), {{"0xc3"}}},
        BadInput{"TextWithoutValues",
                 generate({"--functional", "off", "-p", "a"}),
                 {{"--functional off", "--input-tokens"}}},
        BadInput{"TextOfAShape",
                 generate({"--model", "gpt2", "-p", "a"}),
                 {{"--prompt", "gpt2 is a shape"}}},
        BadInput{"PromptTwice",
                 generate({"-p", "a", "--input-tokens", "3"}),
                 {{"--prompt, --input-tokens: found both"}}},
        BadInput{"TemperatureNaN",
                 generate({"--top-k", "3", "--temperature", "nan"}),
                 {{"temperature"}}},
        BadInput{"EvaluatesMoreThanThereIs",
                 generate({"--evaluate", "99999999"}),
                 {{"--evaluate: found 99999999"}}},
        BadInput{"EvaluatesAShape",
                 generate({"--model", "gpt2", "--evaluate", "3"}),
                 {{"--evaluate: needs a checkpoint"}}},
        BadInput{"OneFileForTwo", generate({"--stats", "a", "--timeline", "a"}), {{"a"}}},
        BadInput{"LargerThanItsHbm",
                 generate_shape("gpt2-xl", {"--set", "hbm.mib=2048"}),
                 {{"hbm.mib: core 0 needs",
                   "more than its 2048 MiB; --set hbm.mib=4096, or more cores"}}},
        BadInput{"LargerThanItsDdr",
                 generate_shape("gpt2-xl", {"--set", "dram.mib=128"}),
                 {{"dram.mib: core 0 needs",
                   "more than its 128 MiB; --set dram.mib=256, or more cores"}}},
        BadInput{"TooFewRegisters",
                 generate_shape("gpt2-xl", {"--set", "vector.registers=64"}),
                 {{"vector.registers: found 64, expected at least"}}},
        BadInput{"TooFewPartialSums",
                 generate_shape("gpt2", {"--set", "matrix.partial_sums=3"}),
                 {{"matrix.partial_sums: found 3, expected at least 4"}}},
        BadInput{"HbmWithoutWholeRows",
                 generate_shape("gpt2", {"--set", "hbm.mib=8191", "--set", "hbm.banks=128"}),
                 {{"hbm.mib: found 8191", "whole rows"}}},
        BadInput{"HbmThatOnlyRefreshes",
                 generate_shape("gpt2", {"--set", "hbm.t_refi_ns=350"}),
                 {{"hbm.t_refi_ns: found 350"}}},
        BadInput{"HbmRowShorterThanABurst",
                 generate_shape("gpt2", {"--set", "hbm.row_bytes=64", "--set", "hbm.bus_bytes=32"}),
                 {{"hbm.row_bytes: found 64", "burst"}}}),
    bad_input_name);

INSTANTIATE_TEST_SUITE_P(
    Files, BadGenerateTest,
    testing::Values(
        BadInput{"NoFile", generate({"--model", "./none.safetensors"}), {{"none.safetensors"}}},
        BadInput{"TruncatedCheckpoint",
                 generate({"--model", "a.safetensors"}),
                 {{"a.safetensors"}},
                 made_of("a.safetensors", kCheckpoint, half)},
        BadInput{"OtherNetwork",
                 generate({"--model", "a.safetensors"}),
                 {{"a.safetensors"}},
                 made_of("a.safetensors", "traces/models/vit17.safetensors", unchanged)},
        BadInput{"VocabularyOfAnother",
                 generate({"--model", "a.safetensors"}),
                 {{"vocab.json", "128"}},
                 [](const TempDirectory& directory) {
                   made_of("a.safetensors", kCheckpoint, unchanged)(directory);
                   directory.write("vocab.json", "{\"a\":0,\"b\":1}");
                   directory.write("merges.txt", "#version: 0.2\n");
                 }},
        BadInput{
            "EmptyText", generate({"--evaluate", "3", "--text", "t"}), {{"t"}}, file("t", "")}),
    bad_input_name);

}  // namespace
}  // namespace systole::testbench
