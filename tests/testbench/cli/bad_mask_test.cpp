/// What a user can get wrong with attention maps and masks.

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "support/npy_bytes.h"
#include "support/program/bad_input.h"

namespace systole::testbench {
namespace {

/// `systole attention` with the mask in the file "a".
Words attention_mask() { return {"attention", "-m", "vitcod", "--mask", "a", "--stats", "s.json"}; }

/// `systole sparsify` of the file "a", with a mask to write.
Words sparsify(const Words& more = {"--theta", "0.5"}) {
  Words arguments{"sparsify", "a", "-o", "m.npy"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// A map of one head with two rows.
std::string attention(float a, float b, float c, float d) {
  return npy_floats("(1, 1, 2, 2)", {a, b, c, d});
}

class BadMaskTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadMaskTest, IsRefusedInOneLine) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Attention, BadMaskTest,
    testing::Values(
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

INSTANTIATE_TEST_SUITE_P(
    Sparsify, BadMaskTest,
    testing::Values(
        BadInput{"NoNumPy", sparsify(), {{"a: ", "NumPy"}}, file("a", safetensors_of("{}"))},
        BadInput{"NoDictionary", sparsify(), {{"a: ", "byte 10"}}, file("a", npy_of("[1, 2]"))},
        BadInput{"Truncated",
                 sparsify(),
                 {{"a: ", "8 bytes of elements, expected 16"}},
                 file("a", npy_of(npy_header("<f4", "(1, 1, 2, 2)"), std::string(8, '\0')))},
        BadInput{"TrailingBytes",
                 sparsify(),
                 {{"a: ", "17 bytes of elements, expected 16"}},
                 file("a", npy_of(npy_header("<f4", "(1, 1, 2, 2)"), std::string(17, '\0')))},
        BadInput{"FortranOrder",
                 sparsify(),
                 {{"a: ", "fortran_order is True"}},
                 file("a", npy_of("{'descr':'<f4','fortran_order':True,'shape':(1,)}", "four"))},
        BadInput{"BigEndian",
                 sparsify(),
                 {{"a: ", "'>f4' is big-endian"}},
                 file("a", npy_of(npy_header(">f4", "(1,)"), "four"))},
        BadInput{"Objects",
                 sparsify(),
                 {{"a: ", "'|O'"}},
                 file("a", npy_of(npy_header("|O", "(1,)"), "eight by"))},
        BadInput{"ShapeOverflows",
                 sparsify(),
                 {{"a: ", "out of range"}},
                 file("a", npy_floats("(4294967296, 4294967296, 1, 1)", {1}))},
        BadInput{"OneDimension",
                 sparsify(),
                 {{"a: shape [2]", "four dimensions"}},
                 file("a", npy_floats("(2,)", {0.5F, 0.5F}))},
        BadInput{"NoHeads",
                 sparsify(),
                 {{"a: shape [1, 0, 2, 2]", "at least 1"}},
                 file("a", npy_floats("(1, 0, 2, 2)", {}))},
        BadInput{"TooManyTokens",
                 sparsify({}),
                 {{"a: shape [1, 1, 1, 65536]", "at most 65535 tokens"}},
                 file("a", npy_mask("(1, 1, 1, 65536)", std::string(65536, '\0')))},
        BadInput{"IntegersForAttention",
                 sparsify(),
                 {{"a: elements are U8", "F32"}},
                 file("a", npy_of(npy_header("|u1", "(1, 1, 1, 1)"), "\1"))},
        BadInput{"AttentionNoNumber",
                 sparsify(),
                 {{"a: layer 0, head 0, row 1: key 0", "nan"}},
                 file("a", attention(0.5F, 0.5F, std::numeric_limits<float>::quiet_NaN(), 1))},
        BadInput{"AttentionNegative",
                 sparsify(),
                 {{"a: layer 0, head 0, row 0: key 1", "-0.5"}},
                 file("a", attention(1.5F, -0.5F, 0, 1))},
        BadInput{"AttentionSum",
                 sparsify(),
                 {{"a: layer 0, head 0, row 1", "sums to 0.75", "expected 1"}},
                 file("a", attention(0.5F, 0.5F, 0.25F, 0.5F))},
        BadInput{"AttentionWithoutRule",
                 sparsify({}),
                 {{"a: attention maps", "--theta or --sparsity"}},
                 file("a", attention(0.5F, 0.5F, 0.5F, 0.5F))},
        BadInput{"SparsityOutOfReach",
                 sparsify({"--sparsity", "0.9"}),
                 {{"a: sparsity 0.9", "0.000000"}},
                 file("a", attention(0.5F, 0.5F, 0.5F, 0.5F))},
        BadInput{"MaskWithRule",
                 sparsify(),
                 {{"a: is a mask", "--theta"}},
                 file("a", npy_mask("(1, 1, 1, 2)", std::string(2, '\0')))},
        BadInput{"MaskWithCls",
                 sparsify({"--cls"}),
                 {{"a: is a mask", "--cls"}},
                 file("a", npy_mask("(1, 1, 1, 2)", std::string(2, '\0')))},
        BadInput{"MaskWithMargin",
                 sparsify({"--margin", "0"}),
                 {{"a: is a mask", "--margin"}},
                 file("a", npy_mask("(1, 1, 1, 2)", std::string(2, '\0')))},
        BadInput{"MaskByteTwo",
                 sparsify({}),
                 {{"a: element 1: byte 2"}},
                 file("a", npy_mask("(1, 1, 1, 2)", "\1\2"))},
        BadInput{"MaskRowWithoutKey",
                 sparsify({}),
                 {{"a: layer 0, head 1, row 1: keeps no key"}},
                 file("a", npy_mask("(1, 2, 2, 1)", std::string("\1\1\0\1", 4)))}),
    bad_input_name);

}  // namespace
}  // namespace systole::testbench
