#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "hw/description/machine_file.h"
#include "hw/description/machine_rules.h"
#include "hw/description/machine_text.h"
#include "support/network/linked_encoder.h"
#include "support/random/draws.h"
#include "support/tlm/systemc_test.h"

/// Encoders and decoders of Q and K on random machines: what the mapper chooses layer by layer
/// beside both ways forced, in simulation.
namespace systole::testbench {
namespace {

using hw::HeadMixUse;
using test::between;
using test::power_of_two;
using test::Random;
using test::Workload;

/// ViTCoD's machine with memory, lines and buffers of other sizes.
hw::Machine linked_engines(Random& random) {
  for (;;) {
    hw::Machine machine = hw::find_machine("vitcod");
    hw::Machine::Attention& attention = machine.attention;
    attention.encoder_lines = random() % 4 == 0 ? 0 : power_of_two(random, 0, 6);
    attention.decoder_lines = random() % 4 == 0 ? 0 : power_of_two(random, 0, 6);
    attention.query_kib = between(random, 1, 53);
    attention.key_kib = between(random, 1, 53);
    attention.softmax_lanes = power_of_two(random, 0, 5);
    machine.accumulator.kib = 8 * between(random, 2, 14);
    machine.bus.width_bytes = power_of_two(random, 2, 6);
    machine.bus.clock_mhz = 400 * between(random, 1, 4);
    machine.dram.channels = power_of_two(random, 0, 2);
    machine.dma.outstanding_reads = power_of_two(random, 2, 6);
    if (hw::machine_problems(machine).empty()) return machine;
  }
}

class HeadMixChoice : public test::SystemCTest {
 protected:
  /// Of one inference; nothing if the machine is too small.
  static std::optional<std::uint64_t> cycles(const Workload& workload, hw::Machine machine,
                                             HeadMixUse use) {
    machine.mapper.head_mix = use;
    try {
      return workload.cycles(mapper::map_graph(workload.graph, machine), machine);
    } catch (const hw::InputError&) {
      return std::nullopt;
    }
  }
};

TEST_F(HeadMixChoice, IsNeverSlowerThanTheBetterWayByMoreThanAHundredth) {
  Random random(21);
  int on_pays = 0, off_pays = 0;
  double worst = 0;
  // Of the later draws of this seed those that need the mean of encoded and plain sections.
  constexpr int kClose = 53, kCloseToo = 63;
  const int draws = test::draws(12);
  for (int i = 0; i <= kCloseToo; ++i) {
    const Workload workload = test::random_linked_encoder(random);
    const hw::Machine machine = linked_engines(random);
    if (i >= draws && i != kClose && i != kCloseToo) continue;
    const auto on = cycles(workload, machine, HeadMixUse::kOn);
    const auto off = cycles(workload, machine, HeadMixUse::kOff);
    const auto chosen = cycles(workload, machine, HeadMixUse::kAuto);
    ASSERT_EQ(chosen.has_value(), on.has_value() || off.has_value()) << "draw " << i;
    if (!on || !off) continue;
    const double best = static_cast<double>(std::min(*on, *off));
    const double ratio = static_cast<double>(*chosen) / best;
    worst = std::max(worst, ratio);
    on_pays += *on < *off ? 1 : 0;
    off_pays += *off < *on ? 1 : 0;
    EXPECT_LE(ratio, 1.01) << "draw " << i << ": on " << *on << ", off " << *off << ", chosen "
                           << *chosen;
  }
  EXPECT_GE(on_pays, draws / 6);
  EXPECT_GE(off_pays, draws / 12);
  RecordProperty("worst", std::to_string(worst));
}

TEST_F(HeadMixChoice, IsMadeLayerByLayer) {
  hw::Machine machine = hw::find_machine("vitcod");
  Random random(5);
  const Workload workload = test::random_linked_encoder(random);
  machine.attention.decoder_lines = 64;
  const auto decoders = [&](HeadMixUse use) {
    machine.mapper.head_mix = use;
    std::size_t count = 0;
    for (const mapper::Group& group : mapper::map_graph(workload.graph, machine).groups) {
      if (group.attention() != nullptr) count += group.attention()->decoders.size();
    }
    return count;
  };
  const std::size_t all = decoders(HeadMixUse::kOn);
  EXPECT_GT(all, 0U);
  EXPECT_EQ(decoders(HeadMixUse::kOff), 0U);
  EXPECT_EQ(decoders(HeadMixUse::kAuto), all) << "64 lines decode sooner than the array multiplies";
}

}  // namespace
}  // namespace systole::testbench
