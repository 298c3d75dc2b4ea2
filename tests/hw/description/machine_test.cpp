#include "hw/machine/machine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_presets.h"
#include "hw/description/machine_rules.h"
#include "hw/description/machine_text.h"
#include "support/input_error.h"
#include "support/paths.h"
#include "support/temp_directory.h"

namespace systole::hw {
namespace {

using Kind = MachineKey::Kind;

std::map<std::string, std::string> values_of(const Machine& machine) {
  std::map<std::string, std::string> values;
  for (const MachineKey& key : machine_keys()) {
    values[std::string(key.path)] = value_text(key, machine);
  }
  return values;
}

/// Identical in every key: the numbers too, bit by bit.
void expect_same(const Machine& a, const Machine& b) {
  for (const MachineKey& key : machine_keys()) EXPECT_EQ(key.get(a), key.get(b)) << key.path;
}

/// A value the key accepts that is not its default.
KeyValue other_value(const MachineKey& key) {
  const KeyValue now = key.get(Machine{});
  switch (key.kind) {
    case Kind::kInteger:
    case Kind::kPowerOfTwo: {
      const auto least = static_cast<std::int64_t>(key.min);
      return now == KeyValue(least) ? static_cast<std::int64_t>(key.max) : least;
    }
    case Kind::kNumber:
      return (std::get<double>(now) + key.max) / 3.0;  // many binary digits
    case Kind::kName:
      return std::string("other-machine_1.0");
    case Kind::kWord:
      break;
  }
  return now == KeyValue(std::int64_t{1}) ? std::int64_t{0} : std::int64_t{1};
}

std::string set_error(const std::string& assignment) {
  Machine machine;
  return input_error_of([&] { set_key(machine, assignment); });
}

TEST(MachineKeys, DefaultsAreValid) { EXPECT_TRUE(machine_problems(Machine{}).empty()); }

TEST(MachineKeys, HaveUniquePathsAndGroupedSections) {
  std::set<std::string_view> paths, left;
  std::string_view section;
  for (const MachineKey& key : machine_keys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_FALSE(key.meaning.empty()) << key.path;
    EXPECT_FALSE(key.source.empty()) << key.path;
    EXPECT_EQ(find_machine_key(key.path), &key);
    if (section_of(key.path) != section) {
      left.insert(section);
      section = section_of(key.path);
      EXPECT_EQ(left.count(section), 0U) << key.path << " stands apart from its section";
    }
  }
}

/// Stands for a field of any type where an aggregate is initialised.
struct AnyField {
  template <typename Field>
  operator Field() const;  // never called
};

template <typename Section, typename Fields, typename = void>
struct Takes : std::false_type {};
template <typename Section, typename... Field>
struct Takes<Section, std::tuple<Field...>, std::void_t<decltype(Section{Field{}...})>>
    : std::true_type {};

/// The number of fields of an aggregate: the most initialisers that it takes.
template <typename Section, typename... Field>
constexpr std::size_t field_count() {
  if constexpr (Takes<Section, std::tuple<Field..., AnyField>>::value) {
    return field_count<Section, Field..., AnyField>();
  }
  return sizeof...(Field);
}

/// The number of fields by section.
template <typename... Section>
std::map<std::string, std::size_t> field_counts(
    const std::pair<const char*, Section Machine::*>&... sections) {
  static_assert(field_count<Machine>() == sizeof...(Section) + 1, "a section beside the name");
  return {{"", 1}, {sections.first, field_count<Section>()}...};
}

TEST(MachineKeys, CoverEveryField) {
  std::map<std::string, std::size_t> keys;
  for (const MachineKey& key : machine_keys()) ++keys[std::string(section_of(key.path))];
  using M = Machine;
  const auto section = [](const char* name, auto member) { return std::pair(name, member); };
  EXPECT_EQ(
      keys,
      field_counts(
          section("core", &M::core), section("array", &M::array),
          section("scratchpad", &M::scratchpad), section("accumulator", &M::accumulator),
          section("postop", &M::postop), section("preop", &M::preop),
          section("datapath", &M::datapath), section("attention", &M::attention),
          section("dma", &M::dma), section("unroller", &M::unroller), section("stream", &M::stream),
          section("dynamic", &M::dynamic), section("memory", &M::memory), section("tlb", &M::tlb),
          section("bus", &M::bus), section("noc", &M::noc), section("l2", &M::l2),
          section("dram", &M::dram), section("mapper", &M::mapper), section("host", &M::host),
          section("energy", &M::energy), section("area", &M::area), section("dfx", &M::dfx),
          section("matrix", &M::matrix), section("vector", &M::vector), section("hbm", &M::hbm),
          section("ring", &M::ring), section("pcie", &M::pcie), section("backend", &M::backend)));
}

TEST(MachineKeys, EachChangesItsOwnFieldOnly) {
  const auto defaults = values_of(Machine{});
  for (const MachineKey& key : machine_keys()) {
    Machine machine;
    ASSERT_TRUE(accepts(key, other_value(key))) << key.path;
    key.set(machine, other_value(key));
    auto changed = values_of(machine);
    EXPECT_NE(changed[std::string(key.path)], defaults.at(std::string(key.path))) << key.path;
    changed[std::string(key.path)] = defaults.at(std::string(key.path));
    EXPECT_EQ(changed, defaults) << key.path;
  }
}

TEST(MachineKeys, WordsFollowTheEnumerations) {
  Machine m;
  for (const char* setting :
       {"array.dataflow=output-stationary", "array.overlap=preload", "backend.systolic_array=rtl",
        "backend.i_sqrt=rtl", "datapath.rounding=half-even", "datapath.softmax=ibert-floor",
        "mapper.strategy=gemmini", "dma.slots=completion", "l2.replacement=random",
        "mapper.head_mix=off", "dynamic.kind=spatten", "dynamic.prunes=tokens"}) {
    set_key(m, setting);
  }
  EXPECT_EQ(m.array.dataflow, Dataflow::kOutputStationary);
  EXPECT_EQ(m.array.overlap, ArrayOverlap::kPreload);
  EXPECT_EQ(m.mapper.strategy, MappingStrategy::kGemmini);
  EXPECT_EQ(m.mapper.head_mix, HeadMixUse::kOff);
  EXPECT_EQ(m.dynamic.kind, DynamicKind::kSpatten);
  EXPECT_EQ(m.dynamic.prunes, DynamicPruning::kTokens);
  EXPECT_EQ(m.dma.slots, SlotOrder::kCompletion);
  EXPECT_EQ(m.l2.replacement, Replacement::kRandom);
  EXPECT_EQ(m.backend.systolic_array, Backend::kRtl);
  EXPECT_EQ(m.backend.i_sqrt, Backend::kRtl);
  EXPECT_EQ(m.backend.softmax_unit, Backend::kModel);
  EXPECT_EQ(m.datapath.rounding, Rounding::kHalfEven);
  EXPECT_EQ(m.datapath.softmax, SoftmaxMode::kNormalisedFloor);
  for (const char* setting : {"array.dataflow=weight-stationary", "array.overlap=full",
                              "datapath.rounding=floor", "datapath.softmax=ibert-round"}) {
    set_key(m, setting);
  }
  EXPECT_EQ(m.array.dataflow, Dataflow::kWeightStationary);
  EXPECT_EQ(m.array.overlap, ArrayOverlap::kFull);
  EXPECT_EQ(m.datapath.rounding, Rounding::kFloor);
  EXPECT_EQ(m.datapath.softmax, SoftmaxMode::kNormalisedRound);
}

TEST(MachineKeys, TakeBothEndsOfTheirRangeAndNothingBeyond) {
  for (const MachineKey& key : machine_keys()) {
    const std::string path(key.path);
    const auto text = [](double x) { return number_text(x); };
    const auto rejects = [&](const std::string& value) {
      EXPECT_EQ(set_error(path + "=" + value),
                "--set " + path + ": found \"" + value + "\", expected " + expected(key));
    };
    const auto takes = [&](const std::string& value) {
      EXPECT_EQ(set_error(path + "=" + value), "no error") << path << "=" << value;
    };
    rejects("");
    rejects(" 1");
    switch (key.kind) {
      case Kind::kInteger:
        rejects(text(key.min - 1)), takes(text(key.min));
        takes(text(key.max)), rejects(text(key.max + 1));
        rejects("2.5"), rejects("1e3"), rejects("99999999999999999999"), rejects("one");
        break;
      case Kind::kPowerOfTwo:
        rejects(text(key.min / 2)), takes(text(key.min));
        takes(text(key.max)), rejects(text(key.max * 2));
        rejects(text(key.max - 1)), rejects("0"), rejects("-8");
        break;
      case Kind::kNumber:
        rejects(text(std::nextafter(key.min, -1.0))), takes(text(key.min));
        takes(text(key.max)), rejects(text(std::nextafter(key.max, 1e300)));
        rejects("nan"), rejects("inf"), rejects("-inf"), rejects("1e999"), rejects("1,5");
        break;
      case Kind::kWord:
        for (const std::string_view word : key.words) takes(std::string(word));
        rejects("0"), rejects(std::string(key.words.front()) + "s");
        break;
      case Kind::kName:
        takes("a"), takes(std::string(64, 'a')), rejects("a b"), rejects("a/b"),
            rejects("\xC3\xA4");
        EXPECT_NE(set_error(path + "=" + std::string(65, 'a')), "no error");
        break;
    }
  }
}

TEST(MachineKeys, NamedOnTheCommandLineWrongly) {
  EXPECT_EQ(set_error("scratchpad.kb=4"),
            "--set scratchpad.kb: unknown key, did you mean scratchpad.kib?");
  EXPECT_EQ(set_error("clock_mhz=4"), "--set clock_mhz: unknown key, did you mean core.clock_mhz?");
  EXPECT_EQ(set_error("flux_capacitor=4"),
            "--set flux_capacitor: unknown key, expected section.key of a machine description");
  EXPECT_EQ(set_error("array.rows"), "--set \"array.rows\": expected section.key=value");
  EXPECT_EQ(set_error("=4"), "--set : unknown key, expected section.key of a machine description");
  EXPECT_EQ(set_error("a\n=4"),
            "--set a\\x0a: unknown key, expected section.key of a machine description");
}

TEST(MachineRules, EachRefusesOneMachineThatOnlyItRefuses) {
  // In the order of the rules, each under the key that it is reported for.
  const std::vector<std::pair<std::string, std::vector<std::string>>> breaking = {
      {"scratchpad.kib", {"scratchpad.kib=1", "array.rows=32", "array.cols=16"}},
      {"scratchpad.banks", {"scratchpad.kib=257", "scratchpad.banks=64", "array.cols=128"}},
      {"accumulator.kib", {"accumulator.kib=1"}},
      {"accumulator.banks", {"accumulator.kib=33", "accumulator.banks=64"}},
      {"attention.lines", {"attention.lines=4"}},
      {"attention.lines", {"attention.lines=1", "attention.macs_per_line=256"}},
      {"scratchpad.kib", {"attention.lines=32", "attention.query_kib=131"}},
      {"scratchpad.protection", {"accumulator.protection=secded", "unroller.loops=2"}},
      {"array.split", {"array.split=weights", "unroller.loops=2"}},
      {"dma.request_bytes", {"dma.request_bytes=4096", "dram.row_bytes=2048"}},
      {"noc.node", {"noc.columns=2", "noc.rows=2", "noc.node=4"}},
      {"noc.columns", {"noc.columns=1", "memory.model=fixed"}},
      {"noc.columns", {"noc.columns=1", "stream.units=16"}},
      {"memory.model", {"memory.model=fixed", "dfx.cores=1"}},
      {"ring.collective", {"ring.collective=all-reduce", "dfx.parallelism=pipelined"}},
      {"stream.units", {"stream.units=24"}},
      {"stream.weight_bytes", {"stream.units=16", "stream.weight_bytes=2048"}},
      {"stream.units", {"stream.units=16", "dfx.cores=1"}},
      {"dynamic.kind", {"dynamic.kind=sanger", "attention.lines=32"}},
      {"unroller.loops", {"unroller.loops=1"}},
      {"unroller.loops", {"unroller.loops=2", "array.cols=8"}},
      {"unroller.loops", {"unroller.loops=2", "array.dataflow=output-stationary"}},
      {"unroller.loops", {"unroller.loops=2", "dma.request_bytes=16", "bus.width_bytes=32"}},
      {"unroller.loops", {"unroller.loops=2", "core.compute_queue=33"}},
      {"unroller.loops", {"unroller.loops=2", "dma.outstanding_writes=65"}},
      {"unroller.loops", {"unroller.loops=2", "accumulator.banks=16"}},
      {"l2.kib", {"l2.kib=100", "l2.ways=3"}},
      {"l2.line_bytes", {"l2.kib=64", "l2.line_bytes=256", "dram.row_bytes=128"}},
      {"dram.bank_groups", {"dram.bank_groups=32"}},
      {"dram.row_bytes", {"dram.row_bytes=64", "dram.burst_length=16"}},
      {"dram.mib", {"dram.mib=1", "dram.channels=32"}},
      {"dram.t_ras_ns", {"dram.t_ras_ns=14.15"}},
      {"dram.t_rrd_l_ns", {"dram.t_rrd_l_ns=3.32"}},
      {"dram.t_refi_ns", {"dram.t_refi_ns=400"}},
      {"dram.write_low_percent", {"dram.write_low_percent=85"}},
      {"hbm.row_bytes", {"hbm.row_bytes=64", "hbm.bus_bytes=32"}},
      {"hbm.mib", {"hbm.mib=1", "hbm.banks=256"}},
      {"hbm.t_refi_ns", {"hbm.t_refi_ns=400"}},
  };
  ASSERT_EQ(breaking.size(), machine_rules().size());
  for (std::size_t i = 0; i < breaking.size(); ++i) {
    const MachineRule& rule = machine_rules()[i];
    const auto& [path, settings] = breaking[i];
    EXPECT_EQ(rule.paths.front(), path);
    Machine machine;
    for (const std::string& setting : settings) set_key(machine, setting);
    const std::string error = input_error_of([&] { validate(machine); });
    EXPECT_EQ(error.substr(0, path.size() + 8), path + ": found ") << error;
    EXPECT_NE(error.find(rule.expected), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(MachineRules, LimitsThemselvesAreAllowed) {
  for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{
           {"scratchpad.kib=1", "scratchpad.banks=1"},
           {"accumulator.kib=2", "accumulator.banks=32"},
           {"attention.lines=2", "attention.macs_per_line=128"},
           {"attention.lines=32", "attention.query_kib=130"},
           {"dma.request_bytes=4096", "dram.row_bytes=4096"},
           {"l2.kib=1", "l2.ways=16"},
           {"l2.line_bytes=4096", "l2.ways=33", "dram.row_bytes=128"},
           {"dram.bank_groups=16"},
           {"dram.row_bytes=64"},
           {"dram.mib=1", "dram.channels=8"},
           {"dram.t_ras_ns=14.16"},
           {"dram.t_rrd_l_ns=3.33"},
           {"dram.t_refi_ns=0"},
           {"array.rows=1", "array.cols=1", "scratchpad.kib=1", "accumulator.kib=1"},
           {"array.rows=256", "array.cols=256", "accumulator.kib=512"}}) {
    Machine machine;
    for (const std::string& setting : settings) set_key(machine, setting);
    EXPECT_EQ(input_error_of([&] { validate(machine); }), "no error") << settings.front();
  }
}

TEST(MachineRules, AreNotJudgedOnValuesOutOfRange) {
  Machine machine;
  machine.array.rows = 0;
  machine.scratchpad.banks = 0;
  machine.dram.t_ras_ns = std::numeric_limits<double>::quiet_NaN();
  machine.array.overlap = static_cast<ArrayOverlap>(7);
  machine.name = "a\nb";
  EXPECT_EQ(input_error_of([&] { validate(machine); }),
            "name: found \"a\\x0ab\", expected a name of letters, digits, '.', '_' and '-' "
            "(characters, 1 to 64)\n"
            "array.rows: found 0, expected a power of two (PEs, 1 to 256)\n"
            "array.overlap: found 7, expected \"none\", \"preload\" or \"full\"\n"
            "scratchpad.banks: found 0, expected a power of two (1 to 64)\n"
            "dram.t_ras_ns: found nan, expected a number (ns, 0.1 to 1000)");
}

TEST(MachineText, RoundTripsEveryKey) {
  for (const MemoryModel model : {MemoryModel::kDram, MemoryModel::kFixed}) {
    Machine machine;
    machine.memory.model = model;
    for (const MachineKey& key : machine_keys()) {
      if (key.path == "memory.model") continue;
      Machine changed = machine;
      key.set(changed, other_value(key));
      if (machine_problems(changed).empty()) machine = changed;
    }
    EXPECT_EQ(machine.dram.t_rfc_ns != Machine{}.dram.t_rfc_ns, model == MemoryModel::kDram);
    EXPECT_EQ(machine.memory.queue != Machine{}.memory.queue, model == MemoryModel::kFixed);
    EXPECT_NE(machine.name, Machine{}.name);
    expect_same(parse_machine(to_toml(machine), "text"), machine);
    EXPECT_EQ(to_toml(parse_machine(to_toml(machine), "text")), to_toml(machine));
  }
}

TEST(MachineText, ExplainsEveryLine) {
  const std::string text = to_toml(Machine{});
  EXPECT_NE(
      text.find("\n[scratchpad]\nkib = 256  # size of the operand memory: an integer (KiB, 1 to "
                "65536)\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\nt_cwl_ns = 10.0  # CWL"), std::string::npos) << text;
}

/// The presets of the source tree, whatever the environment says.
class MachinePresets : public testing::Test {
 protected:
  MachinePresets() { ::unsetenv("SYSTOLE_DATA"); }
};

TEST_F(MachinePresets, AllLoadRoundTripAndBearTheirName) {
  EXPECT_EQ(machine_presets(),
            (std::vector<std::string>{"dfx", "dfx-ideal", "gemmini", "gemmini-bare",
                                      "gemmini-firesim", "ita", "sanger", "spatten", "survey",
                                      "tiny", "transformer", "vitcod"}));
  for (const std::string& name : machine_presets()) {
    const Machine machine = find_machine(name);
    EXPECT_EQ(machine.name, name);
    EXPECT_TRUE(machine_problems(machine).empty()) << name;
    expect_same(parse_machine(to_toml(machine), name), machine);
  }
}

TEST_F(MachinePresets, SplitTheirSramAsPublished) {
  const Machine gemmini = find_machine("gemmini");
  const Machine transformer = find_machine("transformer");
  EXPECT_EQ(gemmini.scratchpad.kib, 256U);
  EXPECT_EQ(gemmini.accumulator.kib, 64U);
  EXPECT_EQ(transformer.scratchpad.kib, 64U);
  EXPECT_EQ(transformer.accumulator.kib, 256U);
  EXPECT_EQ(gemmini.array.rows * gemmini.array.cols, 256U);
  EXPECT_EQ(gemmini.dma.request_bytes * gemmini.dma.outstanding_reads, 1024U);
}

TEST(MachineDefaults, DramTimesAreWholeClocksOfTheSpeedBin) {
  const Machine::Dram dram;
  const double clock_ns = 2000.0 / dram.mega_transfers;
  EXPECT_EQ(std::lround(dram.t_cl_ns / clock_ns), 17);
  EXPECT_EQ(std::lround(dram.t_rcd_ns / clock_ns), 17);
  EXPECT_EQ(std::lround(dram.t_rp_ns / clock_ns), 17);
  EXPECT_EQ(std::lround(dram.t_cwl_ns / clock_ns), 12);
  EXPECT_EQ(std::lround(dram.t_ccd_l_ns / clock_ns), 6);
  EXPECT_EQ(std::lround(dram.t_rrd_s_ns / clock_ns), 4);
  EXPECT_EQ(std::lround(std::ceil(dram.t_ras_ns / clock_ns)), 39);
}

TEST(MachineDefaults, EnergiesFollowFromTheSurvey) {
  constexpr double kMul8 = 0.2, kMul32 = 3.1, kAdd32 = 0.1, kDram32 = 640.0;
  const Machine::Energy energy;
  EXPECT_DOUBLE_EQ(energy.mac_pj, kMul8 + kAdd32);
  EXPECT_DOUBLE_EQ(energy.postop_pj, kMul32 + 2 * kAdd32);
  EXPECT_DOUBLE_EQ(energy.dram_byte_pj, kDram32 / 4);
  EXPECT_NEAR(energy.logic_leakage_mw_mm2, 17.39336 / 0.798, 0.05);  // nW and um2 of NAND2_X1
  EXPECT_NEAR(energy.sram_leakage_mw_mm2, 823.237 / 17.301438, 0.05);
}

TEST(MachineDocumentation, HoldsTheGeneratedTable) {
  const std::string begin = "<!-- generated: machine keys -->\n", end = "<!-- end -->";
  const std::string page = read_file(source_path("docs/machine.md"));
  const auto from = page.find(begin);
  const auto to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const auto start = from + begin.size();
  EXPECT_EQ(page.substr(start, to - start), describe_machine_keys())
      << "put the generated text between the markers of docs/machine.md";
}

TEST(MachineText, AdvisesASizeOfMemoryThatTheRulesAccept) {
  EXPECT_EQ(memory_advice("dram.mib", 900), "; --set dram.mib=1024");
  EXPECT_EQ(memory_advice("hbm.mib", 8193), "; --set hbm.mib=16384");
  EXPECT_EQ(memory_advice("dram.mib", 1024), "; --set dram.mib=1024");
  EXPECT_EQ(memory_advice("dram.mib", 65536), "; --set dram.mib=65536");
  EXPECT_EQ(memory_advice("dram.mib", 65537), "; dram.mib is 65536 at most");
}

}  // namespace
}  // namespace systole::hw
