#include "support/program/bad_input.h"

#include <gtest/gtest.h>

#include <string>

#include "support/paths.h"

namespace systole::testbench {
namespace {

const std::string kModel = "traces/models/vit17.int8.safetensors";
const std::string kIsqrt = "tests/golden/ibert/isqrt.json";
const std::string kCheckpoint = "traces/models/kjv.f16.safetensors";

/// A vector file with two products by 2^(30 - shift).
std::string requantisation(int shift) {
  return R"x({"op":"fixedpoint_mul (QuantAct requantisation)","cases":[{"name":"a","bit_num":8,)x"
         R"("S_in":4.0,"S_out":1.0,"m":1073741824,"e":)" +
         std::to_string(shift) + R"(,"x_int":[1,1073741824],"q_exact":[4,127]}]})";
}

class BadInputTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, IsRefusedInOneLine) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Model, BadInputTest,
    testing::Values(
        BadInput{"Garbage", {"model", "./m"}, {{"./m"}}, file("m", std::string(100, '\xee'))},
        BadInput{"HeaderLongerThanFile",
                 {"model", "./m"},
                 {{"./m", "header"}},
                 file("m", little_endian(1U << 20, 8) + "{}")},
        BadInput{"HeaderNoJson", {"model", "./m"}, {{"./m"}}, file("m", safetensors_of("{\"a\":"))},
        BadInput{
            "TensorOutsideTheFile",
            {"model", "./m"},
            {{"./m", "'a'"}},
            file("m", safetensors_of(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
                                     "four"))},
        BadInput{"ShapeOverflows",
                 {"model", "./m"},
                 {{"./m", "'a'"}},
                 file("m", safetensors_of(R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],)"
                                          R"("data_offsets":[0,0]}})"))},
        BadInput{"FloatModel",
                 {"run", "-m", "gemmini", "--model", "./m"},
                 {{"./m", "format"}},
                 made_of("m", "traces/models/vit17.safetensors", unchanged)},
        BadInput{"Truncated",
                 {"run", "-m", "gemmini", "--model", "./m"},
                 {{"./m"}},
                 made_of("m", kModel, half)},
        BadInput{"WrongVersion",
                 {"model", "./m"},
                 {{"./m", "version"}},
                 made_of("m", kModel,
                         [](const std::string& bytes) {
                           const std::string key = "\"version\":\"";
                           return patched(bytes, bytes.find(key) + key.size(), "9");
                         })},
        BadInput{"NoCheckpointBeside",
                 {"model", "./m.int8.safetensors", "--accuracy"},
                 {{"./m.safetensors"}},
                 made_of("m.int8.safetensors", kModel, unchanged)},
        BadInput{"QuantiseIntegerModel",
                 {"quantise", source_path("traces/models/vit17.int8.safetensors"), "-o",
                  "a.int8.safetensors"},
                 {{"vit17.int8.safetensors"}}}),
    bad_input_name);

INSTANTIATE_TEST_SUITE_P(
    Pictures, BadInputTest,
    testing::Values(
        BadInput{"PgmTooLong",
                 run({"-i", "p"}),
                 {{"p:"}},
                 file("p", "P5 8 8 16\n" + std::string(65, '\x01'))},
        BadInput{"PgmOtherSize",
                 run({"-i", "p"}),
                 {{"p:", "9 x 9"}},
                 file("p", "P5 9 9 16\n" + std::string(81, '\x01'))},
        BadInput{"PgmTwoByteSamples",
                 run({"-i", "p"}),
                 {{"p:"}},
                 file("p", "P5 8 8 65535\n" + std::string(128, '\x01'))},
        BadInput{"NoImages", run({"-i", "p"}), {{"p:", "images"}}, file("p", safetensors_of("{}"))},
        BadInput{"PixelTooBright",
                 run({"-i", "p"}),
                 {{"p:", "0..16"}},
                 file("p", pictures("[1,8,8]", std::string(64, '\x11')))},
        BadInput{"LabelTooLarge",
                 run({"-i", "p"}),
                 {{"p:", "labels"}},
                 file("p", pictures("[1,8,8]", std::string(64, '\x01'), "\x0a"))},
        BadInput{"LabelsTooFew",
                 run({"-i", "p"}),
                 {{"p:", "labels"}},
                 file("p", pictures("[2,8,8]", std::string(128, '\x01'), "\x01"))},
        BadInput{"NoPicture", run({"-i", "p"}), {{"p:"}}, file("p", pictures("[0,8,8]", ""))},
        BadInput{"OtherSizeThanTheModel",
                 run({"-i", "p"}),
                 {{"9"}},
                 file("p", pictures("[1,9,9]", std::string(81, '\x01')))},
        BadInput{"AccuracyWithoutLabels",
                 run({"-i", "p", "--min-accuracy", "0.5"}),
                 {{"p:", "labels"}},
                 file("p", pictures("[1,8,8]", std::string(64, '\x01')))}),
    bad_input_name);

INSTANTIATE_TEST_SUITE_P(
    Program, BadInputTest,
    testing::Values(
        BadInput{"AnotherFile",
                 {"map", "--read", "p"},
                 {{"p:", "systole-program 1"}},
                 made_of("p", kModel, unchanged)},
        BadInput{"Truncated", {"map", "--read", "p"}, {{"p:"}}, program("p", "--out", half)},
        BadInput{"TrailingBytes",
                 {"map", "--read", "p"},
                 {{"p:"}},
                 program("p", "--out", [](const std::string& bytes) { return bytes + "x"; })},
        BadInput{"OtherVersion",
                 {"map", "--read", "p"},
                 {{"p:", "header: program version 7, expected 6"}},
                 program("p", "--out",
                         [](const std::string& bytes) {
                           return patched(bytes, bytes.find("SYSTPROG") + 8, "\x07");
                         })},
        BadInput{"LyingCount",
                 {"map", "--read", "p"},
                 {{"p:", "of its header"}},
                 program("p", "--out",
                         [](const std::string& bytes) {
                           return patched(bytes, bytes.find("SYSTPROG") + 14, "\x7f");
                         })},
        BadInput{"BadOperators",
                 {"map", "--read", "p"},
                 {{"p: operators 0: pitch"}},
                 program("p", "--out",
                         [](const std::string& bytes) {
                           const std::size_t list = bytes.find("\"operators\":");
                           return patched(bytes, bytes.find("pitch", list), "pinch");
                         })},
        BadInput{
            "NoInput", {"run", "--program", "p"}, {{"--input"}}, program("p", "--out", unchanged)},
        BadInput{"InputOfAnotherShape",
                 {"run", "--program", "p", "--input", source_path(kModel)},
                 {{"'patches': missing"}},
                 program("p", "--out", unchanged)},
        BadInput{"TooLargeForTheMachine",
                 {"map", "--read", "p", "-m", "tiny"},
                 {{"p: on tiny: ", "scratchpad bytes"}},
                 program("p", "--out", unchanged)}),
    bad_input_name);

INSTANTIATE_TEST_SUITE_P(
    Vectors, BadInputTest,
    testing::Values(
        BadInput{"UnknownOperation",
                 {"vectors", "v"},
                 {{"v:", "IntTanh", "IntGELU"}},
                 file("v", R"({"op":"IntTanh","cases":[{}]})")},
        BadInput{"NoCases",
                 {"vectors", "v"},
                 {{"v:", "cases"}},
                 file("v", R"({"op":"IntGELU","cases":[]})")},
        BadInput{"WrongType",
                 {"vectors", "v"},
                 {{"v:", "cases[0]"}},
                 file("v", R"x({"op":"I-Sqrt (paper Algorithm 4)","cases":[[-1,0,0]]})x")},
        BadInput{"Truncated", {"vectors", "v"}, {{"v:"}}, made_of("v", kIsqrt, half)},
        BadInput{
            "OperationNotInRtl",
            {"vectors", "v", "--rtl"},
            {{"v: op: \"IntGELU\"", "--rtl", "I-Sqrt", "fixedpoint_mul", "Makefile.verilator"}},
            made_of("v", "tests/golden/ibert/gelu.json", unchanged)},
        BadInput{"ShiftNotInRtl",
                 {"vectors", "v", "--rtl"},
                 {{"v: case \"a\": e[0]: is 64", "--rtl", "at most 63"}},
                 file("v", requantisation(64))},
        BadInput{"ResultNotInRtl",
                 {"vectors", "v", "--rtl"},
                 {{"v: case \"a\": x_int[1]: scales to 4294967296", "--rtl", "32 bits"}},
                 file("v", requantisation(28))}),
    bad_input_name);

INSTANTIATE_TEST_SUITE_P(
    Generate, BadInputTest,
    testing::Values(BadInput{"TruncatedCheckpoint",
                             {"generate", "--model", "a.safetensors"},
                             {{"a.safetensors"}},
                             made_of("a.safetensors", kCheckpoint, half)},
                    BadInput{
                        "OtherNetwork",
                        {"generate", "--model", "a.safetensors"},
                        {{"a.safetensors"}},
                        made_of("a.safetensors", "traces/models/vit17.safetensors", unchanged)},
                    BadInput{"VocabularyOfAnother",
                             {"generate", "--model", "a.safetensors"},
                             {{"vocab.json", "128"}},
                             [](const TempDirectory& directory) {
                               made_of("a.safetensors", kCheckpoint, unchanged)(directory);
                               directory.write("vocab.json", "{\"a\":0,\"b\":1}");
                               directory.write("merges.txt", "#version: 0.2\n");
                             }}),
    bad_input_name);

INSTANTIATE_TEST_SUITE_P(
    Usage, BadInputTest,
    testing::Values(
        BadInput{"ControlCharacters", {"\x1b[31mred\n"}, {{"\\x1b[31mred\\x0a"}}},
        BadInput{"Bytes",
                 {"matmul", "8x8x8", "-m", "m.toml"},
                 {{"m.toml"}},
                 file("m.toml", std::string("\0\xff\xfe", 3))},
        BadInput{"TooLarge",
                 {"matmul", "8x8x8", "-m", "m.toml"},
                 {{"m.toml", "65536"}},
                 file("m.toml", "#" + std::string(70000, 'x'))},
        BadInput{"ThreeErrors",
                 {"matmul", "8x8x8", "-m", "m.toml"},
                 {{"m.toml:2", "array.rows", "33"},
                  {"m.toml:3", "array.dataflow", "sideways"},
                  {"m.toml:5", "dram.t_cl_ns"}},
                 file("m.toml",
                      "[array]\nrows = 33\ndataflow = \"sideways\"\n[dram]\nt_cl_ns = \"x\"\n")},
        BadInput{"NoCharacterOfIts", {"generate", "-p", "caf\xc3\xa9"}, {{"0xc3"}}}),
    bad_input_name);

}  // namespace
}  // namespace systole::testbench
