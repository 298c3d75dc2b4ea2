#include "hw/description/machine_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "hw/description/machine_presets.h"
#include "support/input_error.h"
#include "support/paths.h"
#include "support/temp_directory.h"

namespace systole::hw {
namespace {

std::string parse_error(const std::string& text) {
  return input_error_of([&] { static_cast<void>(parse_machine(text, "m.toml")); });
}

std::string load_error(const std::string& path) {
  return input_error_of([&] { static_cast<void>(load_machine(path)); });
}

std::string find_error(const std::string& name) {
  return input_error_of([&] { static_cast<void>(find_machine(name)); });
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

/// Replaces the presets by those of a separate directory.
class MachinePresetDirectory : public testing::Test {
 protected:
  MachinePresetDirectory() {
    std::filesystem::create_directory(directory.path("machines"));
    ::setenv("SYSTOLE_DATA", directory.path().c_str(), 1);
  }
  ~MachinePresetDirectory() override { ::unsetenv("SYSTOLE_DATA"); }

  void add(const std::string& name, const std::string& text) {
    directory.write("machines/" + name + ".toml", text);
  }

  TempDirectory directory;
};

TEST(MachineFile, SetsWhatItNamesAndKeepsTheRest) {
  const Machine m = parse_machine(
      "name = 'mine'\n"
      "scratchpad = { kib = 0x40, banks = 8 }\n"
      "core.clock_mhz = 1_200\n"
      "[dram]\n"
      "t_cl_ns = 15  # an integer is a number\n"
      "t_rp_ns = 1.5e1\n"
      "[array]\n"
      "overlap = \"preload\"\r\n",
      "m.toml");
  const Machine defaults;
  EXPECT_EQ(m.name, "mine");
  EXPECT_EQ(m.scratchpad.kib, 64U);
  EXPECT_EQ(m.scratchpad.banks, 8U);
  EXPECT_EQ(m.scratchpad.ports, defaults.scratchpad.ports);
  EXPECT_EQ(m.core.clock_mhz, 1200U);
  EXPECT_EQ(m.dram.t_cl_ns, 15.0);
  EXPECT_EQ(m.dram.t_rp_ns, 15.0);
  EXPECT_EQ(m.dram.t_rcd_ns, defaults.dram.t_rcd_ns);
  EXPECT_EQ(m.array.overlap, ArrayOverlap::kPreload);
  EXPECT_EQ(m.array.rows, defaults.array.rows);
}

TEST(MachineFile, RefusesAFileThatSaysNothing) {
  for (const char* text : {"", "\n", "# nothing\n# at all", "\xEF\xBB\xBF", " \t\r\n"}) {
    EXPECT_EQ(parse_error(text),
              "m.toml: found no key, expected a machine: base = \"NAME\" of a preset, or sections "
              "as [array] with their keys");
  }
  // A section by its name alone says which machine it is: the default one.
  EXPECT_EQ(parse_machine("[array]\n", "m.toml").name, "custom");
  EXPECT_EQ(parse_machine("[array]\n", "m.toml").array.rows, Machine{}.array.rows);
}

TEST(MachineFile, CommentsMayHoldAnything) {
  EXPECT_EQ(
      parse_machine("# 3 \xC2\xB5s, \xE6\xB5\x8B, \xFF\xED\xA0\x80\n[array]\nrows = 8\n", "m.toml")
          .array.rows,
      8U);
  // Columns count characters.
  EXPECT_EQ(parse_error("array = { rows = 3, x\xC3\xA4 = 1 }").substr(0, 12), "m.toml:1:22:");
}

TEST(MachineFile, TellsAllErrorsAtOnce) {
  EXPECT_EQ(
      parse_error("name = 'two words'\n"
                  "speed = 3\n"
                  "[core]\n"
                  "clock_mhz = 0\n"
                  "load_queue = '8'\n"
                  "[array]\n"
                  "rows = 33\n"
                  "colums = 16\n"
                  "dataflow = \"os\"\n"
                  "[scratchpad]\n"
                  "kib = 1.5\n"
                  "[accumulator]\n"
                  "kib = 1\n"
                  "banks = 32\n"
                  "[drams]\n"
                  "mib = 4\n"
                  "[dram]\n"
                  "t_ras_ns = 10\n"
                  "t_refi_ns = inf\n"),
      "m.toml:1:8: name: found \"two words\", expected a name of letters, digits, '.', '_' and "
      "'-' (characters, 1 to 64)\n"
      "m.toml:2:1: speed: unknown key, expected one of name, base, core, array, scratchpad, "
      "accumulator, postop, preop, datapath, attention, dma, unroller, stream, tlb, dynamic, bus, "
      "noc, l2, "
      "memory, "
      "dram, mapper, host, "
      "energy, area, "
      "backend, dfx, matrix, vector, hbm, ring, pcie\n"
      "m.toml:4:13: core.clock_mhz: found 0, expected an integer (MHz, 1 to 10000)\n"
      "m.toml:5:14: core.load_queue: found \"8\", expected an integer (commands, 1 to 256)\n"
      "m.toml:7:8: array.rows: found 33, expected a power of two (PEs, 1 to 256)\n"
      "m.toml:8:1: array.colums: unknown key, did you mean array.cols?\n"
      "m.toml:9:12: array.dataflow: found \"os\", expected \"weight-stationary\" or "
      "\"output-stationary\"\n"
      "m.toml:11:7: scratchpad.kib: found 1.5, expected an integer (KiB, 1 to 65536)\n"
      "m.toml:14:9: accumulator.banks: found 32, expected equal memories of whole rows of "
      "array.cols int32 (accumulator.memories = 1, accumulator.kib = 1, array.cols = 16)\n"
      "m.toml:15:2: drams: unknown section, did you mean dram?\n"
      "m.toml:18:12: dram.t_ras_ns: found 10.0, expected at least dram.t_rcd_ns "
      "(dram.t_rcd_ns = 14.16)\n"
      "m.toml:19:13: dram.t_refi_ns: found inf, expected a number (ns, 0 to 1000000)");
}

TEST(MachineFile, DocumentationShowsRealErrors) {
  const std::string error = input_error_of([] {
    static_cast<void>(
        parse_machine("[array]\nrows = 33\ncolums = 16\n\n[dram]\nt_ras_ns = 10.0\n", "wide.toml"));
  });
  const std::string page = read_file(source_path("docs/machine.md"));
  EXPECT_NE(page.find("```text\n" + error + "\n```\n"), std::string::npos) << error;
}

TEST(MachineFile, BlamesTheKeyThatTheFileSets) {
  EXPECT_EQ(parse_error("[array]\ncols = 256\nrows = 256\n"),
            "m.toml:3:8: accumulator.kib: found 64, expected room for two tiles of array.rows x "
            "array.cols int32 (array.rows = 256, array.cols = 256)");
}

struct BadInput {
  std::string text, error;
};

TEST(MachineFile, RefusesEachBadInputWithOneLine) {
  const std::vector<BadInput> inputs = {
      // Values
      {"core.clock_mhz = 10001", "1:18: core.clock_mhz: found 10001, expected an integer"},
      {"core.clock_mhz = -1", "1:18: core.clock_mhz: found -1, expected an integer"},
      {"core.clock_mhz = 9223372036854775807", "1:18: core.clock_mhz: found 9223372036854775807,"},
      {"core.clock_mhz = 4294967297", "1:18: core.clock_mhz: found 4294967297, expected"},
      {"core.clock_mhz = true", "1:18: core.clock_mhz: found true, expected an integer"},
      {"core.clock_mhz = 1979-05-27", "1:18: core.clock_mhz: found a date or time, expected"},
      {"core.clock_mhz = [1000]", "1:18: core.clock_mhz: found an array, expected an integer"},
      {"core.clock_mhz = {}", "1:18: core.clock_mhz: found a table, expected an integer"},
      {"core.clock_mhz = 1000.0", "1:18: core.clock_mhz: found 1000.0, expected an integer"},
      {"[core.clock_mhz]\n", "1:1: core.clock_mhz: found a table, expected an integer"},
      {"array.rows = 12", "1:14: array.rows: found 12, expected a power of two (PEs, 1 to 256)"},
      {"array.overlap = 'Full'", "1:17: array.overlap: found \"Full\", expected \"none\", "},
      {"array.overlap = 2", "1:17: array.overlap: found 2, expected \"none\", \"preload\" or"},
      {"array.overlap = \"a\\nb\\u001b\"", "1:17: array.overlap: found \"a\\x0ab\\x1b\", expected"},
      {"dram.t_cl_ns = nan", "1:16: dram.t_cl_ns: found nan, expected a number"},
      {"dram.t_cl_ns = '14'", "1:16: dram.t_cl_ns: found \"14\", expected a number"},
      {"dram.t_cl_ns = 0", "1:16: dram.t_cl_ns: found 0, expected a number (ns, 0.1 to 1000)"},
      {"name = ''", "1:8: name: found \"\", expected a name of letters"},
      {"name = 5", "1:8: name: found 5, expected a name of letters"},
      {"name = '../x'", "1:8: name: found \"../x\", expected a name of letters"},
      {"name = '" + std::string(65, 'n') + "'", "1:8: name: found \"nnnn"},
      // Structure
      {"core = 5", "1:8: core: found 5, expected a section [core]"},
      {"[[core]]\nclock_mhz = 1", "2:1: clock_mhz: unknown key of a core, expected one of "},
      {"[name]\n", "1:1: name: found a table, expected a name"},
      {"[Core]\nclock_mhz = 5", "1:2: Core: unknown section, did you mean core?"},
      {"[cache]\nkib = 5", "1:2: cache: unknown section, expected one of core, array, "},
      {"kib = 5", "1:1: kib: unknown key, did you mean scratchpad.kib?"},
      {"core.clock = 5", "1:6: core.clock: unknown key, expected one of clock_mhz, load_queue,"},
      {"core.clock_mhz.max = 5", "1:6: core.clock_mhz: found a table, expected an integer"},
      {"\"core.clock_mhz\" = 5", "1:1: core.clock_mhz: unknown key, did you mean core.clock_mhz?"},
      {"core.\"a\\nb\" = 5", "1:6: core.a\\x0ab: unknown key, expected one of clock_mhz"},
      {"\"\" = 5", "1:1: : unknown key, expected one of name, base, core"},
      {std::string(5000, 'k') + " = 5", "1:1: kkkk"},
      // Main memory
      {"memory.model = 'sram'",
       "1:16: memory.model: found \"sram\", expected \"dram\" or \"fixed\""},
      {"memory.latency = 0",
       "1:18: memory.latency: found 0, expected an integer (bus cycles, 1 to"},
      {"memory.latency = 41",
       "1:18: memory.latency: found 41, expected no key of a fixed memory, memory.model is "
       "\"dram\""},
      {"memory.model = 'fixed'\ndram.channels = 2",
       "2:17: dram.channels: found 2, expected no key of a DRAM, memory.model is \"fixed\""},
      {"memory.model = 'fixed'\ndram.t_cl_ns = 12.5",
       "2:16: dram.t_cl_ns: found 12.5, expected no key of a DRAM, memory.model is \"fixed\""},
      // Base
      {"base = 'unheard-of'",
       "1:8: base: found \"unheard-of\", expected dfx, dfx-ideal, gemmini, gemmini-bare, "
       "gemmini-firesim, ita, sanger, spatten, survey, tiny, transformer or vitcod"},
      {"base = 5", "1:8: base: found 5, expected the name of a machine preset in quotes"},
      {"base = '../machines/tiny'", "1:8: base: found \"../machines/tiny\", expected dfx,"},
      // TOML
      {"core.clock_mhz = 5\ncore.clock_mhz = 6", "2:"},
      {"[core]\n[core]\n", "2:"},
      {"core.clock_mhz", "1:"},
      {"core.clock_mhz = ", "1:"},
      {"[core\n", "1:"},
      {"[{x = 1}]", "1:2: not valid TOML: "},
      {"name = \"a", "1:"},
      {"core.clock_mhz = 99999999999999999999", "1:"},
      {"name = \"\xFF\"", "1:"},
      {"name = \"\xC0\x80\"", "1:"},
      {"name = 'B\xC3\xA4r'", "1:8: name: found \"B?r\", expected a name of letters"},
      {"\xC3\xA4 = 1", "1:1: not valid TOML: "},
      {"core\xC2\xA0= 1", "1:"},
      {std::string("name = 'a\0b'", 12), "1:"},
      {std::string("\x7F"
                   "ELF\x02\x01\x01\0\0\0",
                   10),
       "1:"},
      {"\xFF\xFE"
       "a\0=\0",
       "1:"},
      {"name = " + std::string(3000, '['), "1:"},
      {"name = " + repeated("{a=", 3000), "1:"},
      {"name = 5\r\rcore", "1:"},
      // Limits
      {repeated("a.", 17) + "a = 5", "1:34: found more than 16 dots in a line, expected keys of"},
      {"\n[" + repeated("a.", 20000) + "a]", "2:35: found more than 16 dots in a line, expected"},
  };
  ::unsetenv("SYSTOLE_DATA");  // the presets that the errors list are those of the source tree
  for (const BadInput& input : inputs) {
    const std::string error = parse_error(input.text);
    const std::string expected = "m.toml:" + input.error;
    EXPECT_EQ(error.substr(0, expected.size()), expected) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_LT(error.size(), 400U);
  }
}

TEST(MachineFile, KeepsItsTreeShallow) {
  // 16 dots in each of 250 nested arrays: as deep as the limits allow.
  const std::string text = "a=" + repeated("[{a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=\n", 120);
  EXPECT_EQ(parse_error(text).substr(0, 7), "m.toml:");
  std::string closed = "a=" + repeated("[\n{a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=", 120) + "1" +
                       repeated("}]", 120) + "\n";
  EXPECT_EQ(parse_error(closed).substr(0, 7), "m.toml:");
}

TEST(MachineFile, ManyErrorsAreCutShort) {
  std::string text = "[core]\n";
  for (int i = 0; i < 4000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  const std::string error = parse_error(text);
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 100);
  EXPECT_EQ(error.substr(error.rfind('\n')), "\nm.toml: and 3900 more errors");
}

TEST(MachineFile, RefusesWhatIsNoReadableFile) {
  const TempDirectory directory;
  EXPECT_EQ(load_error("no/such.toml"),
            "no/such.toml: found no such file, expected a machine file");
  EXPECT_EQ(load_error("line\nbreak.toml"),
            "line\\x0abreak.toml: found no such file, expected a machine file");
  EXPECT_EQ(load_error(""), ": found no such file, expected a machine file");
  EXPECT_EQ(load_error(directory.path()),
            directory.path() + ": found a directory or a device, expected a machine file");
  EXPECT_EQ(load_error("/dev/zero"),
            "/dev/zero: found a directory or a device, expected a machine file");
  ASSERT_EQ(::mkfifo(directory.path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(load_error(directory.path("pipe")),
            directory.path("pipe") + ": found a directory or a device, expected a machine file");
  const std::string path = directory.write("big.toml", std::string(kMaxMachineFile + 1, '\n'));
  EXPECT_EQ(load_error(path),
            path + ": found more than 65536 bytes, expected a machine description");
}

TEST(MachineFile, LargestFileIsRead) {
  const TempDirectory directory;
  const std::string end = "[array]\nrows = 8\n";
  const std::string comment = "#" + std::string(kMaxMachineFile - end.size() - 2, '-') + "\n";
  EXPECT_EQ(load_machine(directory.write("m.toml", comment + end)).array.rows, 8U);
}

TEST(MachineFile, ErrorsBearThePathAsGiven) {
  const TempDirectory directory;
  const std::string path = directory.write("m.toml", "[array]\nrows = 3\n");
  EXPECT_EQ(load_error(path),
            path + ":2:8: array.rows: found 3, expected a power of two (PEs, 1 to 256)");
  EXPECT_EQ(find_error(path), load_error(path));
}

TEST_F(MachinePresetDirectory, IsListedAndRead) {
  add("b", "[array]\nrows = 8\n");
  add("a", "name = 'a'\n");
  directory.write("machines/notes.txt", "not a preset");
  EXPECT_EQ(machine_presets(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(find_machine("b").array.rows, 8U);
  EXPECT_EQ(find_error("c"), "machine: found \"c\", expected a or b, or a path to a .toml file");
  EXPECT_EQ(find_error(""), "machine: found \"\", expected a or b, or a path to a .toml file");
}

TEST_F(MachinePresetDirectory, MayBeEmptyOrMissing) {
  const std::string none =
      "machine: found \"a\", expected a machine preset, but there are none in " +
      directory.path("machines") + ", or a path to a .toml file";
  EXPECT_EQ(find_error("a"), none);
  std::filesystem::remove(directory.path("machines"));
  EXPECT_TRUE(machine_presets().empty());
  EXPECT_EQ(find_error("a"), none);
}

TEST_F(MachinePresetDirectory, IsWhereBasesComeFrom) {
  add("a", "name = 'a'\n[array]\nrows = 8\ncols = 8\n");
  add("b", "base = 'a'\nname = 'b'\n[array]\nrows = 4\n");
  const Machine m = parse_machine("base = 'b'\n[bus]\nwidth_bytes = 8\n", "m.toml");
  EXPECT_EQ(m.name, "custom");
  EXPECT_EQ(m.array.rows, 4U);
  EXPECT_EQ(m.array.cols, 8U);
  EXPECT_EQ(m.bus.width_bytes, 8U);
}

TEST_F(MachinePresetDirectory, HasNoCircles) {
  add("a", "base = 'b'\n");
  add("b", "base = 'a'\n");
  const std::string a = directory.path("machines/a.toml"), b = directory.path("machines/b.toml");
  EXPECT_EQ(find_error("a"),
            a + ":1:8: base: " + b + ":1:8: base: found \"a\", which is its own base");
}

TEST_F(MachinePresetDirectory, ShowsTheErrorsOfABase) {
  add("a", "[array]\nrows = 3\ncols = 5\n");
  EXPECT_EQ(parse_error("base = 'a'\narray.rows = 4\nx = 1\n"),
            "m.toml:1:8: base: " + directory.path("machines/a.toml") +
                ":2:8: array.rows: found 3, expected a power of two (PEs, 1 to 256)\n" +
                directory.path("machines/a.toml") +
                ":3:8: array.cols: found 5, expected a power of two (PEs, 1 to 256)\n" +
                "m.toml:3:1: x: unknown key, expected one of name, base, core, array, scratchpad, "
                "accumulator, postop, preop, datapath, attention, dma, unroller, stream, tlb, "
                "dynamic, bus, "
                "noc, l2, memory, "
                "dram, mapper, host, "
                "energy, area, backend, dfx, matrix, vector, hbm, ring, pcie");
}

}  // namespace
}  // namespace systole::hw
