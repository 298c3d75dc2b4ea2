/// `systole rtl` and --rtl BLOCK=DIR: RTL of a user's own in place of a block.
#include "testbench/own/own_rtl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "support/tlm/fst_reader.h"
#include "support/tlm/rtl_wave.h"
#include "tests/rtl/core/random_core_runs.h"
#include "tests/testbench/gates/core_programs.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kProduct = {"matmul", "-m", "tiny", "9x10x11", "--json"};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

/// The example, with a text of one of its files replaced.
void write_example(const TempDirectory& directory, const std::string& file = "",
                   const std::string& what = "", const std::string& by = "") {
  for (const std::string name : {"rtl.toml", "my_requantizer.sv", "adapter.h"}) {
    const std::string text = read_file(source_path("examples/own_rtl/requantizer/" + name));
    directory.write(name, name == file ? replaced(text, what, by) : text);
  }
}

/// `systole rtl add`, with a compiler that does not optimise.
ProgramRun add_quickly(const TempDirectory& directory,
                       const std::vector<std::string>& options = {}) {
  std::vector<std::string> arguments = {"rtl", "add", directory.path()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_systole(arguments, ".", {{"CXX", source_path("tests/support/program/quick_cxx.sh")}});
}

/// kProduct with what is in the directory as a block.
std::vector<std::string> product_with(const TempDirectory& directory,
                                      const std::string& block = "requantizer") {
  std::vector<std::string> arguments = kProduct;
  arguments.insert(arguments.end(), {"--rtl", block + "=" + directory.path()});
  return arguments;
}

/// Builds what is in the directory, and multiplies with it.
ProgramRun built_and_run(const TempDirectory& directory,
                         const std::vector<std::string>& options = {}) {
  const ProgramRun built = add_quickly(directory, options);
  EXPECT_EQ(built.exit_code, 0) << built.err;
  return run_systole(product_with(directory));
}

std::uint64_t cycles_in(const ProgramRun& run) { return document_of(run.out)["cycles"]; }
nlohmann::json counts_in(const ProgramRun& run) {
  return document_of(run.out)["rtl"]["requantizer"];
}

/// Exit code 2 and one line.
void expect_refusal(const std::vector<std::string>& arguments, const std::string& text) {
  const ProgramRun run = run_systole(arguments);
  EXPECT_EQ(run.exit_code, 2) << text;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_THAT(run.err, testing::HasSubstr(text));
}

TEST(OwnRtl, OtherPortsAndAnAdapterTakeTheBlocksPlace) {
  const TempDirectory directory;
  write_example(directory);
  const ProgramRun run = built_and_run(directory);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(counts_in(run)["operations"], 0);
  EXPECT_EQ(counts_in(run)["mismatches"], 0);
  EXPECT_EQ(counts_in(run)["source"], directory.path());
  EXPECT_EQ(cycles_in(run), cycles_in(run_systole(kProduct)));

  const std::vector<std::string> other_lanes = {
      "matmul", "-m", "transformer", "9x10x11", "--rtl", "requantizer=" + directory.path()};
  expect_refusal(other_lanes, "requantizer has 4 lanes, expected postop.lanes of the machine, 16");
  const auto own = [&](const std::string& block) { return product_with(directory, block); };
  expect_refusal(own("i_gelu"), "rtl.toml is of requantizer, expected i_gelu");
  expect_refusal(own("systolic_array"), "rtl.toml is of requantizer, expected systolic_array");
  expect_refusal(
      {"run", "-m", "tiny", "--model", "vit17", "-n", "1", "--rtl", "core=" + directory.path()},
      "rtl.toml is of requantizer, expected core");
  expect_refusal(own("dma"), "expected BLOCK=DIR with one of systolic_array, accumulator_sram");
  // Whoever changes a source has to add it again.
  fs::last_write_time(directory.path("adapter.h"),
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  expect_refusal(own("requantizer"), "adapter.h: changed after its library was built");
  fs::remove_all(directory.path("systole_build"));
  expect_refusal(own("requantizer"), "has not been built, expected: systole rtl add");
}

TEST(OwnRtl, AFastOneTakesTheSameCyclesAndWritesNoWaveform) {
  const TempDirectory directory;
  write_example(directory);
  const ProgramRun run = built_and_run(directory, {"--fast"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(counts_in(run)["operations"], 0);
  EXPECT_EQ(counts_in(run)["mismatches"], 0);
  EXPECT_EQ(cycles_in(run), cycles_in(run_systole(kProduct)));
  std::vector<std::string> arguments = product_with(directory);
  arguments.insert(arguments.end(), {"--wave", directory.path("w.fst")});
  expect_refusal(arguments, "was added with --fast, without waveforms, expected: systole rtl add");
}

TEST(OwnRtl, ACopyOfOursNeedsNoMapping) {
  const TempDirectory directory;
  directory.write("copy.sv", replaced(read_file(source_path("rtl/postop/systole_requantizer.sv")),
                                      "module systole_requantizer", "module renamed"));
  directory.write("rtl.toml",
                  "block = \"requantizer\"\ntop = \"renamed\"\nlanes = 4\n"
                  "sources = [\"copy.sv\"]\nparameters = { Lanes = 4 }\n");
  const ProgramRun run = built_and_run(directory);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(counts_in(run)["operations"], 0);
  EXPECT_EQ(counts_in(run)["mismatches"], 0);
}

/// A block in Systole's own SystemVerilog, built as a user's, and a command that runs it.
struct BuiltBlock {
  std::string block, module, sizes, parameters;
  std::vector<std::string> command;
};

std::string text_of_block(const BuiltBlock& block) {
  return "block = \"" + block.block + "\"\ntop = \"systole_" + block.block + "\"\n" + block.sizes +
         "sources = [\"" + block.module + "\"]\n[parameters]\n" + block.parameters;
}

/// Exit code 0 and no mismatches, in as many cycles as the model takes.
void expect_as_the_model(const TempDirectory& directory, const BuiltBlock& block,
                         const std::string& of_machine) {
  directory.write("rtl.toml", text_of_block(block));
  const ProgramRun built = add_quickly(directory);
  ASSERT_EQ(built.exit_code, 0) << built.err;
  std::vector<std::string> arguments = block.command;
  arguments.insert(arguments.end(), {"--json", "--rtl", of_machine + "=" + directory.path()});
  const ProgramRun run = run_systole(arguments);
  ASSERT_EQ(run.exit_code, 0) << block.block << run.err;
  const nlohmann::json counts = document_of(run.out)["rtl"][of_machine];
  EXPECT_GT(counts["operations"], 0) << block.block;
  EXPECT_EQ(counts["mismatches"], 0) << block.block;
  EXPECT_EQ(counts["source"], directory.path());
  arguments = block.command;
  arguments.emplace_back("--json");
  EXPECT_EQ(cycles_in(run), cycles_in(run_systole(arguments))) << block.block;
}

BuiltBlock square_array(const std::string& size, const std::string& machine,
                        const std::string& product) {
  return {"systolic_array",
          "array/systole_systolic_array.sv",
          "rows = " + size + "\ncols = " + size + "\n",
          "Rows = " + size + "\nCols = " + size + "\n",
          {"matmul", "-m", machine, product, "--set", "array.rows=" + size, "--set",
           "array.cols=" + size}};
}

TEST(OwnRtl, AnArrayOfAnySizeTakesTheBlocksPlace) {
  const TempDirectory directory;
  expect_as_the_model(directory, square_array("2", "tiny", "12x11x13"), "systolic_array");
}

TEST(OwnRtl, AnArrayOf32x32TakesTheBlocksPlaceIfAskedFor) {
  if (std::getenv("SYSTOLE_LARGE_RTL") == nullptr) {
    GTEST_SKIP() << "compiling 32 x 32 PEs takes minutes: SYSTOLE_LARGE_RTL=1 runs this test";
  }
  const TempDirectory directory;
  expect_as_the_model(directory, square_array("32", "transformer", "150x100x130"),
                      "systolic_array");
}

// What the program does not come with in the width of preset vitcod: a chain at a time in
// micro-code.
TEST(OwnRtl, APostopPipelineOf64LanesTakesTheBlocksPlaceIfAskedFor) {
  if (std::getenv("SYSTOLE_LARGE_RTL") == nullptr) {
    GTEST_SKIP() << "compiling 64 lanes takes 200 CPU seconds: SYSTOLE_LARGE_RTL=1 runs this test";
  }
  const TempDirectory directory;
  expect_as_the_model(directory,
                      {"postop_pipeline",
                       "postop/systole_postop_pipeline.sv",
                       "lanes = 64\n",
                       "Lanes = 64\n",
                       {"run", "-m", "vitcod", "--model", "vit17", "-n", "1", "--check"}},
                      "postop_pipeline");
}

/// A user's core in this process, which has the code of the program.
RtlOptions core_options(const std::string& folder) {
  const std::string version = output_of({"--version"});  // systole 0.1.0 (COMMIT)
  const std::size_t open = version.find(" ("), close = version.find(')');
  EXPECT_LT(open, close) << version;
  const std::string program =
      version.substr(8, open - 8) + " " + version.substr(open + 2, close - open - 2);
  RtlOptions options;
  options.own["core"] = &load_own_rtl(folder, "core", program);
  return options;
}

/// On its bus beside the model: no byte and no cycle differs.
void expect_programs(const RtlOptions& options, const char* name) {
  const char* const wanted = std::getenv("SYSTOLE_CORE_PROGRAMS");
  const ProgramsOff off = compare_programs(
      options, kTinyCore, wanted == nullptr ? 100 : std::strtoull(wanted, nullptr, 10));
  off.print(name);
  EXPECT_EQ(off.equal, off.programs);
  EXPECT_EQ(off.worst, 0U);
}

// Layers of an encoder as the mapper fuses them, and programs that nobody would write, each byte
// and each cycle.
TEST(OwnRtl, ACoreOf16x16RunsProgramsOfItsMachineIfAskedFor) {
  if (std::getenv("SYSTOLE_LARGE_RTL") == nullptr) {
    GTEST_SKIP() << "compiling a core of 16 x 16 takes minutes: SYSTOLE_LARGE_RTL=1 runs this test";
  }
  const TempDirectory directory;
  directory.write("rtl.toml", read_file(source_path("examples/own_rtl/core_16x16/rtl.toml")));
  // Optimised: it runs half a million cycles.
  const ProgramRun built = run_systole({"rtl", "add", directory.path()});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const std::string core = "core=" + directory.path();
  const ProgramRun run =
      run_systole({"run", "-m", "transformer", "--model", "bert-base", "--layers", "1", "--d", "64",
                   "--heads", "4", "--ffn", "128", "-l", "24", "--json", "--rtl", core});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json document = document_of(run.out);
  EXPECT_EQ(document["gates"]["compared_bytes"], 24 * 64);
  EXPECT_EQ(document["rtl"]["core"]["mismatches"], 0);
  EXPECT_EQ(document["rtl"]["core"]["source"], directory.path());
  for (const char* const model : {"vit17", "vit65", "vit17-post"}) {
    const ProgramRun exact = run_systole(
        {"run", "-m", "transformer", "--model", model, "-n", "1", "--rtl", core, "--exact"});
    EXPECT_EQ(exact.exit_code, 0) << model << ": " << exact.out;
  }
  expect_refusal({"run", "-m", "tiny", "--model", "vit17", "-n", "1", "--rtl", core},
                 "core.load_queue: found 4, expected 8, that of the core's RTL, ");
  expect_refusal({"matmul", "9x10x11", "-m", "transformer", "--rtl", core},
                 "--rtl core: runs whole programs");
  const RtlOptions options = core_options(directory.path());
  const auto gates = make_core(options);
  EXPECT_EQ(gates->size().lanes, 16U);
  const RandomCoreRuns runs = run_random_programs(*gates, 300, 16);
  EXPECT_GT(runs.counts.operations, 2'000U);
  EXPECT_GT(runs.waits, runs.counts.operations / 4);
  EXPECT_GT(runs.operands, 500U);
  expect_programs(options, "16x16");
}

/// A core whose dispatcher takes a command in every other cycle at most.
void write_slow_core(const TempDirectory& directory, const std::string& sizes) {
  const std::string ours = read_file(source_path("rtl/core/systole_dispatcher.sv"));
  directory.write("systole_dispatcher.sv",
                  replaced(ours, "  assign ready_o = room[unit_i];\n",
                           "  logic taken_q;\n"
                           "  always_ff @(posedge clk_i or negedge rst_ni) begin\n"
                           "    if (!rst_ni) taken_q <= 1'b0;\n"
                           "    else         taken_q <= take;\n"
                           "  end\n"
                           "  assign ready_o = room[unit_i] && !taken_q;\n"));
  directory.write("rtl.toml",
                  "block = 'core'\ntop = 'systole_core'\n"
                  "sources = ['systole_dispatcher.sv', 'core/systole_core.sv']\n" +
                      sizes);
}

/// Those of preset tiny.
constexpr const char* kTinySizes =
    "lanes = 4\nload_queue = 4\ncompute_queue = 4\nstore_queue = 2\n"
    "fetch_commands = 4\nrow_statistics = 64\nrequest_bytes = 16\noutstanding = 4\n"
    "scratchpad_banks = 4\nscratchpad_rows = 256\naccumulator_banks = 2\n"
    "accumulator_rows = 128\nchain_slots = 8\nstages = 4\nparameter_beats = 16\n"
    "operand_bytes = 4096\npreop = 0\n";

// All that is before it in time is equal, it is not, and the waveform is what is around it.
TEST(OwnRtl, ASlowerCoreStopsAtTheFirstCommandThatDiffers) {
  using nlohmann::json;
  const TempDirectory directory;
  write_slow_core(directory, kTinySizes);
  const ProgramRun built = add_quickly(directory);
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const std::string layer =
      "run -m tiny --model bert-base --layers 1 --d 8 --ffn 16 -l 8 --heads 1 --rtl core=" +
      directory.path() + " ";
  const json whole = document_of(run_systole(words_of(layer + "--json")).out);
  EXPECT_EQ(whole["rtl"]["core"]["mismatches"], 0);
  const ProgramRun run =
      run_systole(words_of(layer + "--exact --wave run.fst --json"), directory.path("."));
  ASSERT_EQ(run.exit_code, 1) << run.out << run.err;
  const json difference = document_of(run.out)["difference"];
  EXPECT_EQ(difference["command"], 1);
  ASSERT_EQ(difference["moment"], "dispatched");
  const std::uint64_t found = difference["gates"], expected = difference["model"];
  EXPECT_EQ(found, expected + 1);
  const json& commands = whole["gates"]["commands"];
  EXPECT_EQ(commands[1]["opcode"], difference["opcode"]);
  EXPECT_EQ(commands[1]["gates"]["dispatched"], found);
  EXPECT_EQ(commands[1]["model"]["dispatched"], expected);
  for (const json& other : commands) {
    for (const char* when : {"dispatched", "completed"}) {
      if (other["gates"][when] < found) EXPECT_EQ(other["gates"][when], other["model"][when]);
    }
  }
  const test::Vcd vcd = test::read_fst(directory.path("run.fst"));
  const auto& clock = vcd.changes(test::port_of("core", "clk_i"));
  const auto cycles = std::count_if(clock.begin(), clock.end(),
                                    [](const auto& change) { return change.value == 1U; });
  EXPECT_GE(cycles, 500);
  EXPECT_LE(cycles, 1002);

  const ProgramRun text = run_systole(words_of(layer + "--exact"), directory.path("."));
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_EQ(text.out.rfind("command 1, ", 0), 0U) << text.out;
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 1);
}

// Four lanes as in the core that is built, stages before the anchor, and every other size as small
// as it can be.
TEST(OwnRtl, ASmallCoreRunsRandomProgramsIfAskedFor) {
  if (std::getenv("SYSTOLE_LARGE_RTL") == nullptr) {
    GTEST_SKIP() << "compiling a core takes minutes: SYSTOLE_LARGE_RTL=1 runs this test";
  }
  const TempDirectory directory;
  directory.write("rtl.toml",
                  "block = 'core'\ntop = 'systole_core'\nsources = ['core/systole_core.sv']\n"
                  "lanes = 4\nload_queue = 2\ncompute_queue = 2\nstore_queue = 2\n"
                  "fetch_commands = 2\nrow_statistics = 64\nrequest_bytes = 16\noutstanding = 2\n"
                  "scratchpad_banks = 2\nscratchpad_rows = 512\naccumulator_banks = 2\n"
                  "accumulator_rows = 128\nchain_slots = 4\nstages = 4\nparameter_beats = 16\n"
                  "operand_bytes = 4096\npreop = 1\n");
  const ProgramRun built = run_systole({"rtl", "add", directory.path()});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  expect_programs(core_options(directory.path()), "4x4, small");
}

TEST(OwnRtl, AnOutputStationaryArrayTakesTheBlocksPlace) {
  const TempDirectory directory;
  expect_as_the_model(directory,
                      {"output_array",
                       "array/systole_output_array.sv",
                       "rows = 4\ncols = 2\n",
                       "Rows = 4\nCols = 2\n",
                       {"matmul", "-m", "tiny", "12x11x13", "--set", "array.cols=2", "--set",
                        "array.dataflow=output-stationary"}},
                      "systolic_array");
  const std::string rtl = "systolic_array=" + directory.path();
  expect_refusal({"matmul", "-m", "tiny", "9x10x11", "--rtl", rtl},
                 "is of output_array, expected systolic_array by array.dataflow of the machine");
  expect_refusal({"matmul", "-m", "tiny", "9x10x11", "--rtl", rtl, "--set",
                  "array.dataflow=output-stationary", "--set", "array.rows=8"},
                 "output_array has 4 rows, expected array.rows of the machine, 8");
}

TEST(OwnRtl, TheSoftmaxOfTheEnginesTakesTheBlocksPlace) {
  const TempDirectory directory;
  expect_as_the_model(directory,
                      {"attention_softmax",
                       "attention/systole_attention_softmax.sv",
                       "lanes = 1\n",
                       "Lanes = 1\n",
                       {"attention", "-m", "vitcod", "--tokens", "20", "--heads", "2", "--dim",
                        "12", "--set", "attention.softmax_lanes=1"}},
                      "attention_softmax");
}

// Systole's own module has the parameters of its sizes without a table of them.
TEST(OwnRtl, SizesAreParametersOfOurModule) {
  const TempDirectory directory;
  expect_as_the_model(directory,
                      {"requantizer",
                       "postop/systole_requantizer.sv",
                       "lanes = 2\n",
                       "",
                       {"matmul", "-m", "tiny", "9x10x11", "--set", "postop.lanes=2"}},
                      "requantizer");
}

TEST(OwnRtl, AWrongValueIsReported) {
  const TempDirectory directory;
  write_example(directory, "my_requantizer.sv", "below + 65'sd1", "below");
  const ProgramRun run = built_and_run(directory);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_GT(counts_in(run)["mismatches"], 0);
  EXPECT_EQ(cycles_in(run), cycles_in(run_systole(kProduct)));
}

TEST(OwnRtl, ACycleTooManyIsReportedAndSpent) {
  const TempDirectory directory;
  write_example(directory, "rtl.toml", "Stages = 5", "Stages = 6");
  const ProgramRun run = built_and_run(directory);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_EQ(counts_in(run)["mismatches"], counts_in(run)["operations"]);
  EXPECT_GT(cycles_in(run), cycles_in(run_systole(kProduct)));
}

TEST(OwnRtl, BadManifestsAreOneLine) {
  struct Case {
    const char *what, *by, *says;
  };
  const Case cases[] = {
      {"\"requantizer\"", "\"dma\"",
       "rtl.toml:2:11: found \"dma\", expected one of systolic_array"},
      {"block   = \"requantizer\"", "", "block is missing"},
      {"lanes   = 4", "lanes = 0", "found 0, expected 1 to 64"},
      {"my_requantizer.sv", "none.sv", "found \"none.sv\", expected a file below"},
      {"\"my_requantizer\"", "\"my-top\"", "found \"my-top\", expected a name of letters"},
      {"[adapter]", "[adaptor]", "adaptor: unknown key, expected one of block"},
      {"lanes   = 4", "lanes = 4\nrows = 4", "rows: unknown key, expected one of block"},
      {"Stages = 5", "Stages = \"five\"", "found \"five\", expected an integer"},
      {"\"low\"", "3", "found 3, expected a text"},
      {"[ports]", "[ports", "rtl.toml:"},
  };
  for (const Case& one : cases) {
    const TempDirectory directory;
    write_example(directory, "rtl.toml", one.what, one.by);
    expect_refusal({"rtl", "add", directory.path()}, one.says);
    EXPECT_FALSE(fs::exists(directory.path("systole_build")));
  }
  const TempDirectory empty;
  expect_refusal({"rtl", "add", empty.path()}, "rtl.toml");
  expect_refusal({"rtl", "ports", "dma"}, "rtl ports: found dma, expected one of systolic_array");
}

TEST(OwnRtl, PortsThatDoNotFitAreOneLine) {
  struct Case {
    const char *file, *what, *by, *says;
  };
  const Case cases[] = {
      {"rtl.toml", "\"s_tkeep\"", "\"s_keep\"", "my_requantizer has no port s_keep, expected one"},
      {"rtl.toml", "Lanes  = 4", "Lanes = 8",
       "port s_tkeep of my_requantizer: found an input of 8"},
      {"my_requantizer.sv", "aclk,\n", "aclk, input logic test_mode,\n", "test_mode of my_requant"},
  };
  for (const Case& one : cases) {
    const TempDirectory directory;
    write_example(directory, one.file, one.what, one.by);
    // Without its adapter, which may do what the check cannot know.
    std::string manifest = read_file(directory.path("rtl.toml"));
    manifest = replaced(manifest.substr(0, manifest.find("[adapter]")), "[ports]",
                        "[ports]\nrst_ni = \"areset\"");
    directory.write("rtl.toml", manifest);
    expect_refusal({"rtl", "add", directory.path()}, one.says);
  }
}

TEST(OwnRtl, PortsAreThoseOfTheBlock) {
  const std::string ports = output_of({"rtl", "ports", "requantizer", "--size", "lanes=8"});
  EXPECT_THAT(ports, testing::ContainsRegex("\nmultiplier_i +input +256\n"));
  EXPECT_THAT(ports, testing::ContainsRegex("\nmask_o +output +8\n"));
  EXPECT_THAT(output_of({"rtl", "ports", "output_array", "--size", "rows=3", "--size", "cols=7"}),
              testing::ContainsRegex("\nresult_o +output +224\n"));
  expect_refusal({"rtl", "ports", "requantizer", "--size", "rows=3"},
                 "--size rows=3: expected lanes=1 to 64");
  expect_refusal({"rtl", "ports", "i_sqrt", "--size", "lanes=3"},
                 "--size lanes=3: expected none: i_sqrt has one size");
  expect_refusal({"rtl", "ports", "sparser_line", "--size", "macs=9"}, "expected macs=8 to 8");
}

}  // namespace
}  // namespace systole::testbench
