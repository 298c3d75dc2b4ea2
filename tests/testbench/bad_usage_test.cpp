#include <gtest/gtest.h>

#include <string>

#include "testbench/bad_input.h"

namespace systole::testbench {
namespace {

/// A small matrix product on the machine file "m.toml".
Words on_file() { return {"matmul", "8x8x8", "-m", "m.toml"}; }

class BadUsageTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadUsageTest, IsRefusedInOneLine) { expect_refused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Usage, BadUsageTest,
    testing::Values(
        BadInput{"NoCommand", {}, {{"no command", "--help"}}},
        BadInput{"UnknownCommand", {"frobnicate"}, {{"frobnicate"}}},
        BadInput{"UnknownOption", run({"--frob"}), {{"--frob", "systole run --help"}}},
        BadInput{"ControlCharacters", {"\x1b[31mred\n"}, {{"\\x1b[31mred\\x0a"}}},
        BadInput{"NoMachine", {"run", "--model", "vit17"}, {{"--machine is required"}}},
        BadInput{"NoModel", {"run", "-m", "tiny"}, {{"--model is required"}}},
        BadInput{"OptionWithoutValue", run({"--stats"}), {{"--stats"}}},
        BadInput{"LimitZero", run({"-n", "0"}), {{"limit"}}},
        BadInput{"LimitNegative", run({"-n", "-3"}), {{"limit"}}},
        BadInput{"LimitNoNumber", run({"-n", "many"}), {{"many"}}},
        BadInput{"LimitTooLarge", run({"-n", "99999999999999999999999"}), {{"limit"}}},
        BadInput{"FunctionalMaybe", run({"--functional=maybe"}), {{"functional", "maybe"}}},
        BadInput{"AccuracyAboveOne", run({"--min-accuracy", "2"}), {{"min-accuracy"}}},
        BadInput{"AccuracyNoNumber", run({"--min-accuracy", "nan"}), {{"min-accuracy"}}},
        BadInput{"CheckWithoutValues",
                 run({"--functional=off", "--check"}),
                 {{"--functional=off", "--check"}}},
        BadInput{"AccuracyWithoutValues",
                 run({"--functional=off", "--min-accuracy", "0.5"}),
                 {{"--functional=off", "--min-accuracy"}}},
        BadInput{"OneFileForTwo",
                 run({"--stats", "a.json", "--timeline", "a.json"}),
                 {{"a.json", "two outputs"}}},
        BadInput{"WaveWindowWithoutWave", run({"--wave-to", "9"}), {{"--wave-to", "--wave"}}},
        BadInput{"WaveWindowEmpty",
                 run({"--wave", "a.vcd", "--wave-from", "9", "--wave-to", "9"}),
                 {{"from cycle 9 to 9"}}},
        BadInput{"MachineTomlAndJson", {"machine", "tiny", "--toml", "--json"}, {{"--toml"}}},
        BadInput{"MapWithoutModel", {"map", "-m", "tiny"}, {{"--model", "--read"}}},
        BadInput{"MapTwiceToStandardOutput",
                 {"map", "-m", "tiny", "--model", "vit17", "--asm", "-", "--json"},
                 {{"--asm -", "--json"}}},
        BadInput{"ReadWithModel", {"map", "--read", "a", "--model", "vit17"}, {{"--read"}}},
        BadInput{"CheckpointWithoutModel",
                 {"model", "--accuracy", "--checkpoint", "a.safetensors"},
                 {{"--checkpoint"}}},
        BadInput{"InputWithoutAccuracy", {"model", "vit17", "--input", "a"}, {{"--accuracy"}}},
        BadInput{"MatmulWithoutShape", {"matmul", "-m", "tiny"}, {{"shape is required"}}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Shape, BadUsageTest,
    testing::Values(
        BadInput{"Empty", {"matmul", "", "-m", "tiny"}, {{"MxNxK"}}},
        BadInput{"OneSide", {"matmul", "64", "-m", "tiny"}, {{"64", "MxNxK"}}},
        BadInput{"TwoSides", {"matmul", "64x64", "-m", "tiny"}, {{"64x64", "MxNxK"}}},
        BadInput{"FourSides", {"matmul", "4x4x4x4", "-m", "tiny"}, {{"4x4x4x4", "MxNxK"}}},
        BadInput{"Letters", {"matmul", "axbxc", "-m", "tiny"}, {{"axbxc", "MxNxK"}}},
        BadInput{"Fraction", {"matmul", "6.5x1x1", "-m", "tiny"}, {{"6.5x1x1", "MxNxK"}}},
        BadInput{"Exponent", {"matmul", "1e3x1x1", "-m", "tiny"}, {{"1e3x1x1", "MxNxK"}}},
        BadInput{"Sign", {"matmul", "+1x1x1", "-m", "tiny"}, {{"+1x1x1", "MxNxK"}}},
        BadInput{"Blank", {"matmul", "1x1x1 ", "-m", "tiny"}, {{"1x1x1", "MxNxK"}}},
        BadInput{"Negative", {"matmul", "1x-1x1", "-m", "tiny"}, {{"1x-1x1", "MxNxK"}}},
        BadInput{"ZeroRows", {"matmul", "0x1x1", "-m", "tiny"}, {{"M is 0", "1 to 65536"}}},
        BadInput{"ZeroDepth", {"matmul", "1x1x0", "-m", "tiny"}, {{"K is 0", "1 to 65536"}}},
        BadInput{"SideTooLarge", {"matmul", "1x65537x1", "-m", "tiny"}, {{"N is 65537"}}},
        BadInput{"SideOverflows",
                 {"matmul", "18446744073709551617x1x1", "-m", "tiny"},
                 {{"18446744073709551617", "64 bits"}}},
        BadInput{"MatrixTooLarge",
                 {"matmul", "65536x65536x1", "-m", "tiny"},
                 {{"C (M x N)", "4294967296 elements"}}},
        BadInput{"CommandsTooMany",
                 {"matmul", "4096x4096x4096", "-m", "tiny"},
                 {{"4096x4096x4096", "dram.mib = 16"}}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Machine, BadUsageTest,
    testing::Values(
        BadInput{"UnknownPreset", {"machine", "gemini"}, {{"gemini", "gemmini"}}},
        BadInput{"MissingFile", {"machine", "no/m.toml"}, {{"no/m.toml"}}},
        BadInput{"Directory", {"machine", "./"}, {{"./"}}},
        BadInput{"NoToml", on_file(), {{"m.toml:1"}}, file("m.toml", "array = {rows")},
        BadInput{"Truncated", on_file(), {{"m.toml:2"}}, file("m.toml", "[array]\nrows =")},
        BadInput{"Bytes", on_file(), {{"m.toml"}}, file("m.toml", std::string("\0\xff\xfe", 3))},
        BadInput{"TooLarge",
                 on_file(),
                 {{"m.toml", "65536"}},
                 file("m.toml", "#" + std::string(70000, 'x'))},
        BadInput{"UnknownKey",
                 on_file(),
                 {{"m.toml:2:1", "array.rowz", "array.rows"}},
                 file("m.toml", "[array]\nrowz = 8\n")},
        BadInput{"ThreeErrors",
                 on_file(),
                 {{"m.toml:2", "array.rows", "33"},
                  {"m.toml:3", "array.dataflow", "sideways"},
                  {"m.toml:5", "dram.t_cl_ns"}},
                 file("m.toml",
                      "[array]\nrows = 33\ndataflow = \"sideways\"\n[dram]\nt_cl_ns = \"x\"\n")},
        BadInput{"LyingType", on_file(), {{"m.toml:1", "array"}}, file("m.toml", "array = 5\n")},
        BadInput{"NotFinite", on_file(), {{"dram.t_cl_ns"}}, file("m.toml", "dram.t_cl_ns = nan")},
        BadInput{
            "UnknownBase", on_file(), {{"m.toml:1", "nobody"}}, file("m.toml", "base=\"nobody\"")},
        BadInput{"KeysContradict",
                 on_file(),
                 {{"m.toml:2", "dram.t_ras_ns", "dram.t_rcd_ns"}},
                 file("m.toml", "[dram]\nt_ras_ns = 1.0\n")},
        BadInput{"SettingUnknown", run({"--set", "array.rowz=8"}), {{"array.rowz", "array.rows"}}},
        BadInput{"SettingWithoutValue", run({"--set", "array.rows"}), {{"array.rows"}}},
        BadInput{
            "SettingOutOfRange", run({"--set", "array.rows=99999"}), {{"array.rows", "99999"}}},
        BadInput{"SettingNoNumber", run({"--set", "array.rows=wide"}), {{"array.rows", "wide"}}},
        BadInput{"SettingsContradict",
                 run({"--set", "dram.t_ras_ns=1"}),
                 {{"dram.t_ras_ns", "dram.t_rcd_ns"}}},
        BadInput{"RtlUnknown", run({"--rtl", "dma"}), {{"--rtl", "dma", "softmax_unit"}}},
        BadInput{
            "RtlArraySize",
            run({"--rtl", "systolic_array", "--set", "array.rows=32", "--set", "array.cols=32"}),
            {{"systolic_array", "32", "4, 8"}}},
        BadInput{"RtlArrayNotSquare",
                 run({"--set", "backend.systolic_array=rtl", "--set", "array.rows=8"}),
                 {{"systolic_array", "8 x 16", "square"}}},
        BadInput{"RtlDataflow",
                 run({"--rtl", "all", "--set", "array.dataflow=output-stationary"}),
                 {{"systolic_array", "output-stationary"}}},
        BadInput{"RtlLanes",
                 run({"--rtl", "softmax_unit", "--set", "postop.lanes=8"}),
                 {{"softmax_unit", "8 lanes", "4 or 16"}}},
        BadInput{"RtlPorts",
                 run({"--rtl", "accumulator_sram", "--set", "accumulator.ports=1"}),
                 {{"accumulator_sram"}}},
        BadInput{"OtherSoftmax",
                 run({"--set", "datapath.softmax=ibert-floor"}),
                 {{"vit17", "datapath.softmax", "ibert-floor"}}},
        BadInput{"NarrowResidual",
                 run({"--set", "datapath.residual_bits=12"}),
                 {{"vit17", "datapath.residual_bits", "12"}}},
        BadInput{"ScratchpadTooSmall",
                 run({"--set", "scratchpad.kib=1", "--set", "array.rows=32"}),
                 {{"scratchpad.kib: found 1", "array.rows = 32"}}},
        BadInput{"AccumulatorTooSmall",
                 run({"--set", "accumulator.kib=1", "--set", "array.rows=32"}),
                 {{"accumulator.kib: found 1", "array.rows = 32"}}},
        BadInput{"RowStatisticsTooFew",
                 run({"--set", "postop.row_statistics=4"}),
                 {{"postop.row_statistics"}}},
        BadInput{"DramTooSmall",
                 {"matmul", "4096x4096x64", "-m", "tiny"},
                 {{"dram.mib = 16", "4096x4096x64"}}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Output, BadUsageTest,
    testing::Values(BadInput{"StatsNowhere", run({"--stats", "no/a.json"}), {{"no/a.json"}}},
                    BadInput{"StatsDirectory", run({"--stats", "."}), {{".:"}}},
                    BadInput{"StatsDiskFull", run({"--stats", "/dev/full"}), {{"/dev/full"}}},
                    BadInput{"WaveNowhere", run({"--wave", "no/a.vcd"}), {{"no/a.vcd"}}},
                    BadInput{"WaveEnding", run({"--wave", "a.wav"}), {{"a.wav", ".vcd"}}},
                    BadInput{"TimelineNowhere", run({"--timeline", "no/a.json"}), {{"no/a.json"}}},
                    BadInput{"OneOfTwoNowhere",
                             run({"--stats", "a.json", "--wave", "no/a.vcd"}),
                             {{"no/a.vcd"}}},
                    BadInput{"ProgramNowhere",
                             {"map", "-m", "tiny", "--model", "vit17", "--out", "no/a.prog"},
                             {{"no/a.prog"}}},
                    BadInput{"AssemblyNowhere",
                             {"map", "-m", "tiny", "--model", "vit17", "--asm", "no/a.s"},
                             {{"no/a.s"}}},
                    BadInput{"ModelNowhere",
                             {"quantise", "vit17", "-o", "no/a.int8.safetensors"},
                             {{"no/a.int8.safetensors"}}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Sparsify, BadUsageTest,
    testing::Values(
        BadInput{"NoInput", {"sparsify"}, {{"input is required"}}},
        BadInput{"ThetaZero", {"sparsify", "a", "--theta", "0"}, {{"--theta", "found 0"}}},
        BadInput{"ThetaTooLarge", {"sparsify", "a", "--theta", "2.1"}, {{"--theta", "2.1"}}},
        BadInput{"ThetaNoNumber", {"sparsify", "a", "--theta", "nan"}, {{"--theta", "nan"}}},
        BadInput{"ThetaWord", {"sparsify", "a", "--theta", "all"}, {{"theta", "all"}}},
        BadInput{"SparsityOne", {"sparsify", "a", "--sparsity", "1"}, {{"--sparsity", "found 1"}}},
        BadInput{"SparsityNegative",
                 {"sparsify", "a", "--sparsity", "-0.1"},
                 {{"--sparsity", "found -0.1"}}},
        BadInput{"ThetaAndSparsity",
                 {"sparsify", "a", "--theta", "1", "--sparsity", "0.5"},
                 {{"--theta", "--sparsity"}}},
        BadInput{"ThresholdNegative",
                 {"sparsify", "a", "--threshold", "-1"},
                 {{"--threshold: found -1"}}},
        BadInput{"ThresholdAndAuto",
                 {"sparsify", "a", "--threshold", "5", "--global", "auto"},
                 {{"--threshold", "--global"}}},
        BadInput{"GlobalUnknown", {"sparsify", "a", "--global", "best"}, {{"global", "best"}}},
        BadInput{"MarginNegative", {"sparsify", "a", "--margin", "-1"}, {{"--margin: found -1"}}},
        BadInput{"MarginTooLarge",
                 {"sparsify", "a", "--margin", "65536"},
                 {{"--margin: found 65536, expected 0 to 65535"}}},
        BadInput{"DimZero", {"sparsify", "a", "--dim", "0"}, {{"--dim: found 0", "65536"}}},
        BadInput{"DimNegative", {"sparsify", "a", "--dim", "-8"}, {{"--dim: found -8"}}},
        BadInput{"DimTooLarge", {"sparsify", "a", "--dim", "65537"}, {{"--dim: found 65537"}}},
        BadInput{"OutIsInput", {"sparsify", "a", "-o", "a"}, {{"a: ", "expected one each"}}},
        BadInput{"NoEngines",
                 {"sparsify", "a", "-m", "gemmini"},
                 {{"gemmini: attention.lines: found 0", "vitcod"}}},
        BadInput{"LinesContradict",
                 {"sparsify", "a", "--set", "attention.lines=32"},
                 {{"attention.lines", "array.rows"}}},
        BadInput{"MachineUnknown", {"sparsify", "a", "-m", "vitcot"}, {{"vitcot", "vitcod"}}}),
    name_of);

TEST(BadOutput, FullStandardOutputIsAnError) {
  const ProgramRun result = run_systole({"machine"}, ".", {}, "/dev/full");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "systole: standard output: cannot be written\n");
}

}  // namespace
}  // namespace systole::testbench
