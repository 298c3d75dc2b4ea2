/// What a user can get wrong with `systole attention`.

#include <gtest/gtest.h>

#include <string>

#include "support/npy_bytes.h"
#include "support/program/bad_input.h"

namespace systole::testbench {
namespace {

/// `systole attention` of one head on vitcod, with more arguments; and of four tokens.
Words attention_words(const Words& more) {
  Words arguments{"attention", "-m", "vitcod", "--heads", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}
Words dense(Words more) {
  more.insert(more.begin(), {"--tokens", "4"});
  return attention_words(more);
}

/// `systole attention` with the mask in the file "a".
Words attention_mask(const Words& more = {}) {
  Words arguments{"attention", "-m", "vitcod", "--mask", "a", "--stats", "s.json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

class BadAttentionTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadAttentionTest, IsRefusedInOneLine) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Usage, BadAttentionTest,
    testing::Values(
        BadInput{"NoMachine", {"attention", "--tokens", "4"}, {{"--machine is required"}}},
        BadInput{"NoEngines",
                 {"attention", "-m", "gemmini", "--tokens", "4", "--heads", "1"},
                 {{"gemmini: attention.lines: found 0", "vitcod"}}},
        BadInput{"NoMask", {"attention", "-m", "vitcod"}, {{"--mask", "--tokens and --heads"}}},
        BadInput{"NoHeads", {"attention", "-m", "vitcod", "--tokens", "4"}, {{"--heads"}}},
        BadInput{"TokensZero", attention_words({"--tokens", "0"}), {{"--tokens: found 0", "4096"}}},
        BadInput{"TokensNegative", attention_words({"--tokens", "-4"}), {{"--tokens: found -4"}}},
        BadInput{
            "TokensTooMany", attention_words({"--tokens", "4097"}), {{"--tokens: found 4097"}}},
        BadInput{"LayersZero", dense({"--layers", "0"}), {{"--layers: found 0", "1 to 1024"}}},
        BadInput{"TooManyCells",
                 attention_words({"--tokens", "4096", "--layers", "5"}),
                 {{"83886080 cells", "67108864"}}},
        BadInput{"DimZero", dense({"--dim", "0"}), {{"--dim: found 0", "4096"}}},
        BadInput{"DimNegative", dense({"--dim", "-8"}), {{"--dim: found -8"}}},
        BadInput{"DimTooLarge", dense({"--dim", "4097"}), {{"--dim: found 4097"}}},
        BadInput{"LatentHeadsZero",
                 dense({"--latent-heads", "0"}),
                 {{"--latent-heads: found 0", "1 to 64"}}},
        BadInput{"LatentHeadsTooMany",
                 dense({"--latent-heads", "65"}),
                 {{"--latent-heads: found 65", "1 to 64"}}},
        BadInput{
            "LatentHeadsOfTooManyHeads",
            {"attention", "-m", "vitcod", "--tokens", "4", "--heads", "65", "--latent-heads", "2"},
            {{"--latent-heads: 65 heads, expected at most 64"}}},
        BadInput{"QueryBufferHoldsNoDecodedToken",
                 {"attention", "-m", "vitcod", "--tokens", "4", "--heads", "17", "--latent-heads",
                  "2", "--set", "attention.query_kib=1"},
                 {{"attention.query_kib is 1", "1088 bytes"}}},
        BadInput{"ThresholdNegative", dense({"--threshold", "-1"}), {{"--threshold: found -1"}}},
        BadInput{"ThresholdAndNoReorder",
                 dense({"--threshold", "5", "--no-reorder"}),
                 {{"--threshold", "--no-reorder"}}},
        BadInput{
            "MaskWithTokens", dense({"--mask", "a"}), {{"--tokens, --heads, --layers", "--mask"}}},
        BadInput{"MaskWithLayers",
                 {"attention", "-m", "vitcod", "--mask", "a", "--layers", "2"},
                 {{"--tokens, --heads, --layers", "--mask"}}},
        BadInput{"Softmax",
                 dense({"--set", "datapath.softmax=ibert-round"}),
                 {{"datapath.softmax: expected deferred"}}},
        BadInput{"ChainTooLong", dense({"--set", "postop.max_stages=1"}), {{"2 stages", "1"}}},
        BadInput{"OneLine",
                 dense({"--set", "attention.lines=1", "--set", "attention.macs_per_line=256",
                        "--set", "array.rows=32"}),
                 {{"attention.lines: found 1", "each of the two engines"}}},
        BadInput{"BuffersExceedTheScratchpad",
                 dense({"--set", "attention.key_kib=100"}),
                 {{"scratchpad.kib", "attention buffers", "attention.key_kib = 100"}}},
        BadInput{"AccumulatorHoldsNoToken",
                 dense({"--dim", "1024", "--set", "accumulator.kib=4"}),
                 {{"one query", "accumulator's 4096"}}},
        BadInput{"QueryBufferHoldsNoToken",
                 dense({"--dim", "4096", "--set", "attention.query_kib=1"}),
                 {{"attention.query_kib is 1", "4096 bytes"}}},
        BadInput{"KeyBufferHoldsNoToken",
                 dense({"--dim", "4096", "--set", "attention.key_kib=2"}),
                 {{"attention.key_kib is 2", "4096 bytes"}}},
        BadInput{"ValueBufferHoldsNoToken",
                 dense({"--dim", "4096", "--set", "attention.value_kib=3"}),
                 {{"attention.value_kib is 3", "4096 bytes"}}},
        BadInput{"MemoryTooSmall",
                 dense({"--layers", "1000", "--set", "dram.mib=1"}),
                 {{"dram.mib = 1; --set dram.mib="}}},
        BadInput{"NoDirectory", dense({"--stats", "no/a.json"}), {{"no/a.json: cannot write"}}}),
    bad_input_name);

INSTANTIATE_TEST_SUITE_P(
    Mask, BadAttentionTest,
    testing::Values(
        BadInput{"MissingFile", attention_mask(), {{"a: cannot read"}}},
        BadInput{"Empty", attention_mask(), {{"a: "}}, file("a", "")},
        BadInput{"Garbage", attention_mask(), {{"a: "}}, file("a", std::string(200, '\xee'))},
        BadInput{"ThreeDimensions",
                 attention_mask(),
                 {{"a: shape [1, 2, 2]", "four dimensions"}},
                 file("a", npy_mask("(1, 2, 2)", std::string(4, '\0')))},
        BadInput{"Floats",
                 attention_mask(),
                 {{"a: elements are F32, expected bool"}},
                 file("a", npy_floats("(1, 1, 2, 2)", {0.5F, 0.5F, 0.5F, 0.5F}))},
        BadInput{"Integers",
                 attention_mask(),
                 {{"a: ", "'<i4'", "bool"}},
                 file("a", npy_of(npy_header("<i4", "(1, 1, 2, 2)"), std::string(16, '\0')))},
        BadInput{"Truncated",
                 attention_mask(),
                 {{"a: 3 bytes of elements, expected 4"}},
                 file("a", npy_mask("(1, 1, 2, 2)", std::string(3, '\0')))},
        BadInput{"ByteTwo",
                 attention_mask(),
                 {{"a: element 1: byte 2"}},
                 file("a", npy_mask("(1, 1, 1, 2)", std::string("\0\2", 2)))},
        BadInput{"NoLayers",
                 attention_mask(),
                 {{"a: shape [0, 1, 1, 5]", "at least 1"}},
                 file("a", npy_mask("(0, 1, 1, 5)", ""))},
        BadInput{"IndexOverflow",
                 attention_mask(),
                 {{"a: shape [1, 1, 1, 65536]", "at most 65535"}},
                 file("a", npy_mask("(1, 1, 1, 65536)", std::string(65536, '\0')))},
        BadInput{"RowWithoutKey",
                 attention_mask(),
                 {{"a: layer 0, head 1, row 0: keeps no key"}},
                 file("a", npy_mask("(1, 2, 2, 1)", std::string("\0\0\1\0", 4)))},
        BadInput{"AccumulatorHoldsNoRow",
                 attention_mask(),
                 {{"one query take 262396 bytes", "accumulator's 110592"}},
                 file("a", npy_mask("(1, 1, 1, 65535)", std::string(65535, '\0')))}),
    bad_input_name);

}  // namespace
}  // namespace systole::testbench
