#include "hw/stream/stream_core.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "hw/description/machine_file.h"

namespace systole::hw::stream {
namespace {

Machine::Stream ita() { return find_machine("ita").stream; }

/// All cycles of a layer with streams that always move.
std::uint64_t run(StreamCore& core, const std::vector<Work>& works) {
  const std::uint64_t begin = core.cycle();
  core.begin(works, nullptr);
  while (core.step({})) continue;
  return core.cycle() - begin;
}

TEST(StreamCore, TakesALayersTilesOneAfterTheOther) {
  // The measured law: 256 cycles a tile, 64 for the first weights, 11 for the last results.
  const Machine::Stream machine = ita();
  for (const std::size_t s : {64U, 128U, 192U, 512U}) {
    for (const std::size_t e : {64U, 128U, 512U}) {
      for (const std::size_t p : {64U, 192U, 512U}) {
        for (const std::size_t f : {64U, 256U}) {
          const LayerShape shape{s, e, p, f};
          StreamCore core(machine);
          const std::uint64_t ts = s / 64, te = e / 64, tp = p / 64, tf = f / 64;
          EXPECT_EQ(run(core, attention_work(shape, machine.length)),
                    256 * ts * tp * (4 * te + 2 * ts) + 75);
          core.step({});  // the start of the next layer
          EXPECT_EQ(run(core, feed_forward_work(shape, machine.length)),
                    256 * 2 * ts * te * tf + 11);
        }
      }
    }
  }
}

TEST(StreamCore, RunsAProductAlone) {
  for (const std::size_t m : {64U, 320U, 512U}) {
    for (const std::size_t k : {64U, 448U}) {
      for (const std::size_t n : {64U, 256U}) {
        StreamCore core(ita());
        EXPECT_EQ(run(core, product_work(m, n, k, 64)), m * n * k / 1024 + 75);
      }
    }
  }
}

/// A layer on streams that move at random, each with that probability.
std::uint64_t stalled(const std::vector<Work>& works, double input, double weights, double bias,
                      double output, StreamCore& core) {
  std::mt19937_64 random(3);
  const auto moves = [&](double probability) {
    return static_cast<double>(random() >> 11) < probability * 0x1p53;
  };
  const std::uint64_t begin = core.cycle();
  core.begin(works, nullptr);
  while (core.step({moves(input), moves(weights), moves(bias), moves(output)})) continue;
  return core.cycle() - begin;
}

TEST(StreamCore, IsSlowedByStallsAsTheRtlWas) {
  // Measured: every shape takes 2.10 to 2.18 times as long if each stream stalls in half of the
  // cycles at random. Bias and input go together there.
  for (const LayerShape& shape :
       {LayerShape{64, 64, 64, 64}, LayerShape{128, 192, 64, 64}, LayerShape{256, 256, 256, 64}}) {
    StreamCore plain(ita()), slow(ita());
    const std::vector<Work> works = attention_work(shape, 64);
    const auto ratio = static_cast<double>(stalled(works, 0.5, 0.5, 1, 0.5, slow)) /
                       static_cast<double>(run(plain, works));
    EXPECT_GT(ratio, 2.08);
    EXPECT_LT(ratio, 2.20);
  }
}

TEST(StreamCore, AccountsForEveryCycleAndNeverBeatsItsArray) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 200; ++i) {
    Machine::Stream machine = ita();
    machine.units = 1U << (2 + random() % 4);
    machine.length = 32U << (random() % 2);
    machine.weight_bytes = 1U << (2 + random() % 4);
    machine.depth = 10 + static_cast<std::uint32_t>(random() % 20);
    machine.output_queue = 1 + static_cast<std::uint32_t>(random() % 40);
    machine.softmax_queue = 1 + static_cast<std::uint32_t>(random() % 40);
    machine.dividers = 1 + static_cast<std::uint32_t>(random() % 12);
    const auto side = [&] { return machine.length * (1 + random() % 3); };
    const LayerShape shape{side(), side(), side(), 0};
    const std::vector<Work> works = attention_work(shape, machine.length);
    StreamCore core(machine);
    const std::uint64_t cycles = run(core, works);
    const TimeAccount& time = core.account().time();
    EXPECT_EQ(time.busy + time.stalled_total() + time.idle, cycles);
    const std::uint64_t macs =
        shape.sequence * shape.projection * (4 * shape.embedding + 2 * shape.sequence);
    EXPECT_EQ(time.busy, macs / (machine.units * machine.length));
    EXPECT_GE(cycles, time.busy + machine.depth);
    // More of anything is never slower.
    const auto cycles_with = [&](auto member, std::uint32_t value) {
      Machine::Stream other = machine;
      other.*member = value;
      StreamCore larger(other);
      return run(larger, works);
    };
    using S = Machine::Stream;
    EXPECT_LE(cycles_with(&S::output_queue, machine.output_queue * 2), cycles);
    EXPECT_LE(cycles_with(&S::softmax_queue, machine.softmax_queue * 2), cycles);
    EXPECT_LE(cycles_with(&S::dividers, machine.dividers * 2), cycles);
    EXPECT_LE(cycles_with(&S::weight_bytes, machine.weight_bytes * 2), cycles);
    EXPECT_GE(cycles_with(&S::depth, machine.depth + 5), cycles);
  }
}

TEST(StreamCore, WaitsForWhatIsShort) {
  const LayerShape shape{128, 64, 64, 0};
  const auto stalls = [&](auto member, std::uint32_t value) {
    Machine::Stream machine = ita();
    machine.*member = value;
    StreamCore core(machine);
    run(core, attention_work(shape, machine.length));
    std::vector<std::uint64_t> times;
    for (const TimeAccount::Stall& stall : core.account().time().stalled) {
      times.push_back(stall.time);
    }
    return times;
  };
  using S = Machine::Stream;
  EXPECT_EQ(stalls(&S::depth, 11), (std::vector<std::uint64_t>{64, 0, 0, 0, 11}));
  EXPECT_GT(stalls(&S::output_queue, 6)[StreamCore::kOutput], 0U);
  EXPECT_GT(stalls(&S::softmax_queue, 5)[StreamCore::kDivider], 0U);
  EXPECT_GT(stalls(&S::dividers, 4)[StreamCore::kDivider], 0U);
  EXPECT_GT(stalls(&S::weight_bytes, 8)[StreamCore::kWeights], 64U);
}

TEST(StreamCore, DividesLargeSumsFaster) {
  Machine::Stream machine = ita();
  machine.dividers = 1;
  const std::vector<Work> works = attention_work({64, 64, 64, 0}, 64);
  const auto cycles_of = [&](std::uint32_t sum) {
    const std::vector<SoftmaxRow> rows(64, SoftmaxRow{0, sum});
    StreamCore core(machine);
    core.begin(works, &rows);
    while (core.step({})) continue;
    return core.cycle();
  };
  // One quotient bit a cycle: a row of 64 each takes a cycle less.
  EXPECT_GT(cycles_of(256), cycles_of(512));
  EXPECT_EQ(cycles_of(256) - cycles_of(512), cycles_of(512) - cycles_of(1024));
  StreamCore core(machine);
  EXPECT_EQ(run(core, works), cycles_of(256));
}

TEST(StreamCore, HoldsAsManyResultsAsItsOutputQueueTakes) {
  for (const std::uint32_t queue : {1U, 7U, 17U, 40U}) {
    Machine::Stream machine = ita();
    machine.output_queue = queue;
    StreamCore core(machine);
    core.begin(product_work(64, 64, 64, machine.length), nullptr);  // each beat is a result
    for (int cycle = 0; cycle < 500; ++cycle) core.step({true, true, true, false});
    EXPECT_EQ(core.account().time().busy, queue);
  }
}

TEST(StreamCore, WaitsForEachRowsDivisionInEveryBlock) {
  // One divider: a sum reaches it 10 cycles after its beat, a quotient of 8 bits takes 9 cycles,
  // the next sum follows one cycle later, and a row of attention times values is accepted one
  // cycle after its quotient. The last of 64 rows is accepted 20 + 63 * 10 cycles after the first
  // beat of the last scores, instead of 64 + 63.
  Machine::Stream machine = ita();
  machine.dividers = 1;
  constexpr std::uint64_t kDelay = 20 + 63 * 10 - (64 + 63);
  for (const std::uint64_t blocks : {1U, 2U, 3U}) {
    StreamCore plain(ita()), core(machine);
    const std::vector<Work> works = attention_work({64 * blocks, 64, 64, 0}, 64);
    EXPECT_EQ(run(core, works), run(plain, works) + kDelay * blocks) << blocks << " blocks";
    EXPECT_EQ(core.account().time().stalled[StreamCore::kDivider].time, kDelay * blocks);
  }
}

TEST(StreamCore, TakesNoWeightsWhileBothBuffersAreFull) {
  // Without input two buffers of 64 beats fill and nothing more is taken: two passes then run
  // without a beat of weights, the third waits for its 64 beats.
  StreamCore core(ita());
  core.begin(product_work(64, 64, 64, 64), nullptr);
  for (int cycle = 0; cycle < 1000; ++cycle) core.step({false, true, true, true});
  for (int cycle = 0; cycle < 300; ++cycle) core.step({true, false, true, true});
  EXPECT_EQ(core.account().time().busy, 128U);
}

}  // namespace
}  // namespace systole::hw::stream
