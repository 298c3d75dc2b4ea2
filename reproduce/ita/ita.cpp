#include "reproduce/ita/ita.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "hw/energy.h"
#include "hw/silicon/area.h"
#include "reproduce/published.h"

namespace systole::testbench {
namespace {

namespace stream = hw::stream;

/// Assumed: what was published of the inferences does not say it. See the section "tokens".
constexpr std::size_t kMobileBertTokens = 128;
constexpr std::uint64_t kSeeds = 8;
/// From 45 nm and 0.9 V to 22 nm and 0.8 V: area by the square of the length, energy by capacitance
/// and the square of the voltage.
constexpr double kScale = 22.0 / 45.0, kVolts = 0.8 / 0.9;
constexpr double kScaledArea = kScale * kScale, kScaledEnergy = kScale * kVolts * kVolts;

const PublishedPaper& ita_paper() { return PublishedPaper::load("ita"); }

/// Of "64/128/64/256": sequence, embedding, projection, feed-forward.
stream::LayerShape parse_layer_shape(const std::string& name, const std::string& place) {
  stream::LayerShape shape;
  const char *at = name.data(), *const end = at + name.size();
  for (std::size_t* const side :
       {&shape.sequence, &shape.embedding, &shape.projection, &shape.hidden}) {
    if (side != &shape.sequence && (at == end || *at++ != '/')) at = end;
    const auto [next, error] = std::from_chars(at, end, *side);
    constexpr std::size_t kMost = 512;
    if (error != std::errc() || *side == 0 || *side > kMost) {
      throw hw::InputError(
          fmt::format("{}: found a row '{}', expected sizes of a layer", place, name));
    }
    at = next;
  }
  return shape;
}

struct LayerCycles {
  std::uint64_t attention = 0, feed_forward = 0, both = 0;
};

LayerCycles run_layer(const stream::LayerShape& shape, const hw::Machine& machine,
                      std::optional<std::uint64_t> seed) {
  ProgramRunner runner(machine, seed);
  LayerCycles cycles;
  cycles.attention = runner.run(stream::attention_work(shape, machine.stream.length));
  cycles.feed_forward = runner.run(stream::feed_forward_work(shape, machine.stream.length));
  cycles.both = runner.cycles();
  return cycles;
}

ReproductionSection rtl_cycles_section(const hw::Machine& machine) {
  ReproductionSection section = ita_paper().section("cycles");
  const PublishedTable& table = ita_paper().table("cycles");
  for (const PublishedTable::Row& row : table.rows) {
    const LayerCycles ours =
        run_layer(parse_layer_shape(row.name, table.place), machine, std::nullopt);
    section.add(table.compare_row(
        row.name, {static_cast<double>(ours.attention), static_cast<double>(ours.feed_forward)}));
  }
  return section;
}

ReproductionSection stalls_section(const hw::Machine& machine) {
  constexpr double kPerMille = 1000;
  const PublishedTable& table = ita_paper().table("cycles");
  FigureTable figures{{"cycles", "stalled", "times, o/oo", "lowest", "highest"}, {}};
  double shortest = HUGE_VAL, longest = 0;
  for (const PublishedTable::Row& row : table.rows) {
    const stream::LayerShape shape = parse_layer_shape(row.name, table.place);
    const std::uint64_t plain = run_layer(shape, machine, std::nullopt).both;
    std::vector<std::uint64_t> stalled;
    std::uint64_t sum = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      stalled.push_back(run_layer(shape, machine, seed).both);
      sum += stalled.back();
    }
    const auto ratio = [&](double cycles) { return cycles / static_cast<double>(plain); };
    const auto per_mille = [&](double cycles) {
      return static_cast<std::uint64_t>(std::llround(kPerMille * ratio(cycles)));
    };
    const auto [least, most] = std::minmax_element(stalled.begin(), stalled.end());
    const double mean = static_cast<double>(sum) / static_cast<double>(kSeeds);
    figures.lines.push_back(
        {row.name,
         {plain, static_cast<std::uint64_t>(std::llround(mean)), per_mille(mean),
          per_mille(static_cast<double>(*least)), per_mille(static_cast<double>(*most))}});
    shortest = std::min(shortest, ratio(mean));
    longest = std::max(longest, ratio(mean));
  }
  ReproductionSection section =
      ita_paper().section("stalls", {{"shortest", shortest}, {"longest", longest}},
                          {{"seeds", std::to_string(kSeeds)}});
  section.figures = std::move(figures);
  return section;
}

/// Of an inference, in figures with units that are read easily.
struct Rates {
  double macs, cycles;         ///< as counted
  double operations;           ///< 10^9, two of a multiply-accumulate
  double megahertz_published;  ///< to run the published inferences a second

  explicit Rates(const MobileBertRun& run)
      : macs(static_cast<double>(run.macs)),
        cycles(static_cast<double>(run.cycles)),
        operations(2 * macs / 1e9),
        megahertz_published(cycles * ita_paper().figure("inferences").value / 1e6) {}
};

ReproductionSection mobilebert_section(const hw::Machine& machine) {
  const MobileBertRun run = run_mobilebert(kMobileBertTokens, machine);
  const Rates rates(run);
  const double least = rates.macs / (double{1} * machine.stream.units * machine.stream.length);
  const double hertz = 1e6 * machine.core.clock_mhz;
  ReproductionSection section =
      ita_paper().section("mobilebert",
                          {{"macs", rates.macs},
                           {"cycles", rates.cycles},
                           {"least cycles", least},
                           {"used", 100 * least / rates.cycles},
                           {"operations", rates.operations},
                           {"clock", rates.megahertz_published},
                           {"inferences", hertz / rates.cycles}},
                          {{"tokens", std::to_string(kMobileBertTokens)},
                           {"clock", std::to_string(machine.core.clock_mhz)}});
  section.figures.columns = {"programs", "MAC", "cycles", "used, o/oo"};
  for (const MobileBertRun::Line& line : run.lines) {
    const std::uint64_t possible = line.cycles * machine.stream.units * machine.stream.length;
    section.figures.lines.push_back(
        {line.name, {line.programs, line.macs, line.cycles, 1000 * line.macs / possible}});
  }
  return section;
}

ReproductionSection tokens_section(const hw::Machine& machine) {
  ReproductionSection section = ita_paper().section("tokens");
  section.figures.columns = {"MAC", "cycles", "MHz"};
  for (const std::size_t tokens : {64U, 128U, 192U, 256U, 384U, 512U}) {
    const MobileBertRun run = run_mobilebert(tokens, machine);
    const Rates rates(run);
    const std::string name = fmt::format("{} tokens", tokens);
    section.figures.lines.push_back(
        {name,
         {run.macs, run.cycles,
          static_cast<std::uint64_t>(std::llround(rates.megahertz_published))}});
    section.rows.push_back(
        compare(name + ": operations", rates.operations, ita_paper().figure("operations")));
  }
  return section;
}

/// Area and power of the core by the house models, from 45 to 22 nm.
ReproductionSection silicon_section(const hw::Machine& machine) {
  const hw::Machine::Stream& stream = machine.stream;
  const hw::Machine::Energy table = hw::energy_table(machine);
  const double macs = double{1} * stream.units * stream.length;
  const double hertz = 1e6 * machine.core.clock_mhz;
  // A cycle reads and writes a partial sum of every unit.
  const hw::SramSize sums = hw::partial_sums_size(machine);
  const double cycle_pj = macs * table.mac_pj + 2 * sums.word_bytes * hw::sram_byte_pj(sums);
  const double milliwatts =
      kScaledEnergy * cycle_pj * 1e-9 * hertz + kScaledArea * table.leakage_mw;
  const double mm2 = kScaledArea * hw::area_of(machine).total();
  const double tera = 2 * macs * hertz / 1e12;
  return ita_paper().section("silicon",
                             {{"area", mm2},
                              {"density", tera / mm2},
                              {"power", milliwatts},
                              {"efficiency", tera / milliwatts * 1e3}},
                             {{"area", fmt::format("{:.3f}", kScaledArea)},
                              {"energy", fmt::format("{:.3f}", kScaledEnergy)}});
}

}  // namespace

Reproduction reproduce_ita() {
  const hw::Machine machine = hw::find_machine("ita");
  Reproduction reproduction = ita_paper().reproduction();
  reproduction.add(rtl_cycles_section(machine));
  reproduction.add(stalls_section(machine));
  reproduction.add(mobilebert_section(machine));
  reproduction.add(tokens_section(machine));
  reproduction.add(silicon_section(machine));
  reproduction.add(ita_paper().section("quoted"));
  return reproduction;
}

}  // namespace systole::testbench
