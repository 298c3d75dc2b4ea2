#include "hw/description/core_system.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/memory/fixed_memory.h"
#include "hw/program/program.h"
#include "hw/ring/ring_map.h"
#include "support/input_error.h"
#include "support/temp_directory.h"

namespace systole::hw {
namespace {

CoreSystem read(const std::string& text) {
  const TempDirectory directory;
  directory.write("s.toml", text);
  return find_system(directory.path("s.toml"));
}

/// Without the path of the file.
std::string error_of(const std::string& text) {
  const std::string error = input_error_of([&] { static_cast<void>(read(text)); });
  const auto at = error.find("s.toml:");
  return at == std::string::npos ? error : error.substr(at + 7);
}

TEST(CoreSystem, HasTheKeysOfTheFileOfAPresetAndOfEachTable) {
  const CoreSystem system = read(
      "base = 'transformer'\n"
      "dram.mib = 2048\n"
      "scratchpad.kib = 512\n"
      "[[core]]\n"
      "[[core]]\n"
      "name = 'small'\n"
      "use = 'gemmini'\n"
      "array.rows = 8\n"
      "array.cols = 8\n"
      "link_ns = 20\n"
      "registers = 0x10000010000\n");
  ASSERT_EQ(system.cores.size(), 2U);
  const CoreSite &first = system.cores[0], &second = system.cores[1];
  EXPECT_EQ(first.name, "core0");
  EXPECT_EQ(first.registers, kRegistersBase);
  EXPECT_EQ(first.link_ns, 0U);
  EXPECT_TRUE(same_keys(first.machine, system.machine));
  EXPECT_EQ(second.name, "small");
  EXPECT_EQ(second.registers, 0x10000010000U);
  EXPECT_EQ(second.link_ns, 20U);
  EXPECT_EQ(second.machine.array.rows, 8U);
  EXPECT_EQ(second.machine.scratchpad.kib, find_machine("gemmini").scratchpad.kib);
  EXPECT_EQ(second.machine.dram.mib, 2048U) << "the memory is everybody's";
  EXPECT_FALSE(same_keys(first.machine, second.machine));

  const std::vector<AddressRange> map = address_map(system);
  ASSERT_EQ(map.size(), 3U);
  EXPECT_EQ(map[0].target, "dram");
  EXPECT_EQ(map[0].bytes, std::uint64_t{2048} << 20);
  EXPECT_EQ(map[1].target, "core0");
  EXPECT_EQ(map[2].target, "small");
}

TEST(CoreSystem, PutsCoresAtNodesOfAMesh) {
  CoreSystem system = read(
      "base = 'transformer'\nnoc.columns = 3\nnoc.rows = 2\nnoc.node = 1\n"
      "[[core]]\n[[core]]\nnode = 5\n[[core]]\n");
  const auto nodes = [&] {
    std::vector<std::uint32_t> all;
    for (const CoreSite& core : system.cores) all.push_back(core.machine.noc.node);
    return all;
  };
  EXPECT_EQ(nodes(), (std::vector<std::uint32_t>{1, 5, 3}));
  EXPECT_TRUE(same_keys(system.cores[0].machine, system.cores[1].machine)) << "the same program";
  system.machine.noc.node = 2;
  place_cores(system);
  EXPECT_EQ(nodes(), (std::vector<std::uint32_t>{2, 5, 4})) << "after a change of a key";
  Machine machine = system.machine;
  machine.noc.node = 0;
  system = equal_cores(machine, 4);
  EXPECT_EQ(nodes(), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(mesh_problem(system), "");
  EXPECT_NE(mesh_problem(equal_cores(machine, 7)), "");
  machine.noc.columns = 0;
  system = equal_cores(machine, 2);
  EXPECT_EQ(nodes(), (std::vector<std::uint32_t>{0, 0})) << "no mesh";
}

// As a table with `use` is, unless the machine has engines already.
TEST(CoreSystem, AKindWithEnginesHasThoseOfItsPreset) {
  const CoreSystem system = read(
      "base = 'transformer'\n[[core]]\nkind = 'tile'\n[[core]]\nkind = 'vitcod'\n"
      "[[core]]\nuse = 'vitcod'\n[[core]]\nkind = 'vitcod'\nattention.dividers = 3\n");
  ASSERT_EQ(system.cores.size(), 4U);
  EXPECT_TRUE(same_keys(system.cores[0].machine, find_machine("transformer")));
  EXPECT_TRUE(same_keys(system.cores[1].machine, system.cores[2].machine));
  EXPECT_EQ(system.cores[1].machine.attention.lines, find_machine("vitcod").attention.lines);
  EXPECT_EQ(system.cores[1].machine.dram.channels, find_machine("transformer").dram.channels);
  EXPECT_EQ(system.cores[3].machine.attention.dividers, 3U);
  const CoreSystem own =
      read("base = 'vitcod'\narray.rows = 32\nattention.lines = 32\n[[core]]\nkind = 'vitcod'\n");
  EXPECT_EQ(own.cores[0].machine.attention.lines, 32U);
}

TEST(CoreSystem, ARingHasAPartOfTheMemoryAndAWindow) {
  const CoreSystem system = read(
      "base = 'transformer'\n[dram]\nmib = 512\nchannels = 2\n[[core]]\nkind = 'ring'\n"
      "dfx.cores = 3\nddr_mib = 64\ncore.clock_mhz = 300\n[[core]]\n");
  const CoreSite& ring = system.cores[0];
  EXPECT_TRUE(is_ring(ring));
  EXPECT_EQ(ring_of(system), &ring);
  EXPECT_EQ(ring.name, "ring");
  EXPECT_EQ(ring.machine.core.clock_mhz, 300U);
  EXPECT_EQ(ring.machine.dfx.issue_cycles, find_machine("dfx").dfx.issue_cycles);
  EXPECT_EQ(ring.machine.dram.channels, 2U) << "of the system";
  EXPECT_EQ(ring.machine.dram.mib, 64U);
  constexpr std::uint64_t kMiB = 1U << 20U;
  EXPECT_EQ(ring_ddr(system, ring),
            (std::vector<std::uint64_t>{320 * kMiB, 384 * kMiB, 448 * kMiB}));
  EXPECT_EQ(memory_of_tiles(system), 320 * kMiB);
  const CoreSystem tiles = tiles_of(system);
  ASSERT_EQ(tiles.cores.size(), 1U);
  EXPECT_EQ(tiles.cores[0].name, "core1");
  EXPECT_EQ(tiles.machine.dram.mib, 512U);
  EXPECT_EQ(memory_of_tiles(tiles), 320 * kMiB);
  std::size_t of_ring = 0;
  std::uint64_t end = 0;
  for (const AddressRange& range : address_map(system)) {
    EXPECT_GE(range.base, end) << range.target;
    end = range.base + range.bytes;
    if (range.target.rfind("ring.core", 0) != 0) continue;
    ++of_ring;
    EXPECT_GE(range.base, dfx::kRingWindow);
    EXPECT_LE(end, dfx::kRingWindow + dfx::window_bytes(ring.machine));
  }
  EXPECT_EQ(of_ring, 12U);
}

TEST(CoreSystem, AFileWithoutTablesIsAMachine) {
  const CoreSystem system = read("base = 'gemmini'\n[core]\nclock_mhz = 500\n");
  EXPECT_TRUE(system.cores.empty());
  EXPECT_EQ(system.machine.core.clock_mhz, 500U);
  EXPECT_TRUE(find_system("gemmini").cores.empty());
}

TEST(CoreSystem, RefusesBadTablesInOneLineEach) {
  const struct {
    const char *text, *error;
  } cases[] = {
      {"[[core]]\nkind = 'ring'\n",
       "1:1: core: found a ring alone, expected a tile core beside it (or base = \"dfx\" without "
       "tables)"},
      {"[[core]]\n[[core]]\nkind = 'ring'\n[[core]]\nkind = 'ring'\nname = 'b'\n",
       "5:8: kind: found a second ring, expected one at most: the window of the bus at 2^44 and "
       "the "
       "PCIe of the host are one ring's"},
      {"[[core]]\n[[core]]\nkind = 'ring'\nuse = 'tiny'\n",
       "4:7: use: found \"tiny\", expected a ring, such as dfx"},
      {"[[core]]\n[[core]]\nkind = 'ring'\ndfx.cores = 8\n",
       "1:1: core: found 8 cores with 128 MiB of DDR each, expected less than the 1024 MiB of "
       "dram.mib"},
      {"[[core]]\n[[core]]\nkind = 'ring'\nddr_mib = 0\n",
       "4:11: ddr_mib: found 0, expected an integer (MiB, 1 to 32768)"},
      {"[[core]]\n[[core]]\nkind = 'ring'\nregisters = 0\n",
       "4:13: registers: found 0, expected no such key of a ring"},
      {"[[core]]\n[[core]]\nkind = 'ring'\narray.rows = 8\n",
       "4:1: array: belongs to another kind of core, expected one of core, "},
      {"[[core]]\nhbm.mib = 8\n",
       "2:1: hbm: belongs to another kind of core, expected one of core, array, "},
      {"[[core]]\nddr_mib = 8\n", "2:1: ddr_mib: unknown key of a core"},
      {"[[core]]\nregisters = 0x100000000000\n",
       "2:13: registers: found 0x100000000000, expected an address below that of rings, "
       "0x100000000000"},
      {"[[core]]\nkind = 3\n", "2:8: kind: found 3, expected \"tile\", \"vitcod\" or \"ring\""},
      {"[[core]]\nkind = 'vitcod'\nuse = 'tiny'\n",
       "2:8: kind: found \"vitcod\" and attention.lines = 0, expected a core with attention "
       "engines"},
      {"[[core]]\nname = 'a'\n[[core]]\nname = 'a'\n",
       "4:8: name: found \"a\" twice, expected a unique name"},
      {"[[core]]\nname = 'core1'\n[[core]]\n",
       "3:1: name: found \"core1\" twice, expected a unique name"},
      {"[[core]]\nname = 'dram'\n",
       "2:8: name: found \"dram\", which names another block of the system"},
      {"[[core]]\nname = '1a'\n",
       "2:8: name: found \"1a\", expected a name of letters, digits and '_' that begins with a "
       "letter, up to 32, in quotes"},
      {"[[core]]\n[[core]]\nregisters = 0x10000000008\n",
       "3:13: registers: found 0x10000000008, which overlaps the registers of core0 at "
       "0x10000000000, expected 48 bytes of its own"},
      {"[[core]]\nregisters = 4096\n",
       "2:13: registers: found 0x1000, which overlaps the DRAM, expected an address from "
       "0x40000000 on"},
      {"[[core]]\nregisters = 0x10000000004\n",
       "2:13: registers: found 0x10000000004, expected a multiple of 8"},
      {"[[core]]\nuse = 'dfx'\n",
       "2:7: use: found \"dfx\", whose core is of another kind, expected a tile machine"},
      {"[[core]]\nlink_ns = -1\n",
       "2:11: link_ns: found -1, expected an integer (ns, 0 to 1000000)"},
      {"noc.columns = 2\n[[core]]\nnode = -1\n",
       "3:8: node: found -1, expected a node of the mesh, from 0, row by row"},
      {"[[core]]\nnode = 1\n",
       "1:1: core: found node = 1 of core0 and noc.columns = 0, expected a mesh"},
      {"noc.columns = 2\n[[core]]\nnode = 1\n[[core]]\n",
       "2:1: core: found cores 0 and 1 at node 1, expected a node for each core"},
      {"noc.columns = 2\n[[core]]\n[[core]]\n[[core]]\n",
       "2:1: core: found core 2 of 3 at node 2, expected less than the 2 nodes of noc.columns = 2, "
       "noc.rows = 1"},
      {"[[core]]\ndram.mib = 64\n",
       "2:1: dram: belongs to the system, expected outside the [[core]] tables, which have core, "
       "array, scratchpad, accumulator, postop, preop, datapath, attention, dma, unroller, tlb, "
       "mapper, backend"},
      {"[[core]]\narray.rows = 3\n", "2:14: array.rows: found 3, expected"},
      {"[[core]]\naray.rows = 8\n", "2:1: aray: unknown key of a core, did you mean array?"},
      {"core = [1]\n", "1:9: core: found 1, expected [[core]] tables"},
      {"core = []\n", "1:8: core: found 0 tables, expected 1 to 64"},
  };
  for (const auto& [text, error] : cases) {
    EXPECT_EQ(error_of(text).substr(0, std::string(error).size()), error) << text;
    EXPECT_EQ(error_of(text).find('\n'), std::string::npos) << text;
  }
}

TEST(CoreSystem, IsNoMachineOfOneCore) {
  const std::string error =
      input_error_of([] { static_cast<void>(parse_machine("[[core]]\n[[core]]\n", "m.toml")); });
  expect_contains(error, "m.toml: core: found a machine of several cores");
}

TEST(CoreSystem, MapsEachCoreForItsShareOfTheMemory) {
  Machine machine;
  machine.bus.width_bytes = 64;  // faster than the DRAM
  const double rate = memory_rate(machine);
  for (const std::size_t cores : {1U, 2U, 3U, 16U, 64U}) {
    const CoreSystem system = equal_cores(machine, cores);
    const Machine mapped = mapped_machine(system, cores - 1);
    EXPECT_NEAR(memory_rate(mapped) * static_cast<double>(cores), rate, 0.03 * rate) << cores;
    EXPECT_LE(memory_rate(mapped) * static_cast<double>(cores), rate) << cores;
    EXPECT_EQ(mapped.bus.width_bytes, machine.bus.width_bytes);
  }
  // A bus that is slower than the memory is what they share.
  machine.bus.width_bytes = 4;
  const double bus = 4.0 * machine.bus.clock_mhz;
  ASSERT_LT(bus, rate);
  const Machine narrow = mapped_machine(equal_cores(machine, 4), 0);
  EXPECT_NEAR(memory_rate(narrow) * 4, bus, 0.03 * bus);
  // Answers of a memory of fixed latency come as much later.
  machine.memory.model = MemoryModel::kFixed;
  EXPECT_EQ(mapped_machine(equal_cores(machine, 4), 0).memory.read_beat_cycles,
            4 * machine.memory.read_beat_cycles);
}

}  // namespace
}  // namespace systole::hw
