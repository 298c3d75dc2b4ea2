#include "testbench/rtl/core/dispatcher_rtl.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "Vdispatcher_4x4x2_checked.h"
#include "Vdispatcher_8x16x4_checked.h"
#include "base/error.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

using hw::kStations;

constexpr unsigned kDramBytes = 5, kLocalBytes = 3;  // of an address: DramBits, LocalBits
/// What an engine's command has for all of a local memory.
constexpr std::uint64_t kAllOfLocal = (std::uint64_t{1} << (8 * kLocalBytes)) - 1;

/// Writes a number of `Bytes` bytes into a port of such numbers.
template <unsigned Bytes, typename Port>
void set_address(Port& port, std::size_t index, std::uint64_t address) {
  for (unsigned byte = 0; byte < Bytes; ++byte) {
    set_lane<8>(port, index * Bytes + byte, address >> (8 * byte) & 0xff);
  }
}

template <typename Port>
void set_bits(Port& port, std::uint32_t bits) {
  port = static_cast<Port>(bits);
}

unsigned bits_for(std::uint32_t values) {
  unsigned bits = 0;
  while ((std::uint32_t{1} << bits) < values) ++bits;
  return bits;
}

template <typename Model>
class Dispatcher final : public DispatcherRtl {
 public:
  Dispatcher(const std::array<std::uint32_t, kStations>& sizes, const RtlOptions& options)
      : dut_(options),
        sizes_(sizes),
        entries_(sizes[0] + sizes[1] + sizes[2]),
        id_bits_(bits_for(entries_)) {}

  std::vector<hw::DispatchTimes> run(const std::vector<hw::DispatchItem>& items) override {
    dut_.reset();
    std::vector<hw::DispatchTimes> times(items.size());
    std::vector<std::size_t> of_entry(entries_);
    std::array<std::uint64_t, kStations> unit_free{};
    std::map<std::uint64_t, std::uint32_t> releases, completions;  // pulses by cycle
    std::size_t next = 0, shown = items.size();
    std::vector<hw::DispatchTimes> model;
    std::array<std::int32_t, kDispatcherViewWords>
        words{};  // for the waveform: see make_dispatcher()
    if (dut_.is_shown()) {
      model = hw::dispatch_times(items, sizes_);
      dut_.show_operation(words.data(), items.empty() ? 0 : model.back().started);
    }
    for (std::size_t completed = 0; completed < items.size();) {
      const std::uint64_t cycle = dut_.cycles();
      dut_->valid_i = next < items.size() && items[next].arrival <= cycle;
      if (dut_->valid_i && shown != next) show(items[shown = next]);
      unsigned ready = 0;
      for (std::size_t unit = 0; unit < kStations; ++unit) {
        ready |= unit_free[unit] <= cycle ? 1U << unit : 0U;
      }
      dut_->start_ready_i = static_cast<CData>(ready);
      dut_->released_i = dut_->completed_i = 0;
      dut_.settle();

      const unsigned starts = dut_->start_valid_o & ready;
      for (std::size_t unit = 0; unit < kStations; ++unit) {
        if ((starts >> unit & 1U) == 0) continue;
        const std::size_t entry = std::size_t{dut_->start_entry_o} >> (unit * id_bits_) &
                                  ((std::size_t{1} << id_bits_) - 1);
        const std::size_t index = of_entry.at(entry);
        const hw::DispatchItem& item = items[index];
        times[index].started = cycle;
        if (!model.empty()) {
          words[2 * unit] = static_cast<std::int32_t>(model[index].dispatched);
          words[2 * unit + 1] = static_cast<std::int32_t>(model[index].started);
        }
        unit_free[unit] = cycle + item.occupied;
        // Completion releases too: some units report nothing else.
        if (item.released < item.completed) {
          releases[cycle + item.released - 1] |= std::uint32_t{1} << entry;
        }
        completions[cycle + item.completed - 1] |= std::uint32_t{1} << entry;
      }
      const bool taken = dut_->valid_i && dut_->ready_o;
      if (taken) {
        of_entry[bit_of(dut_->entry_o)] = next;
        times[next++].dispatched = cycle + 1;
      }
      // A unit reports in the cycle before the one from which it counts.
      const std::uint32_t released = take(releases, cycle), done = take(completions, cycle);
      set_bits(dut_->released_i, released);
      set_bits(dut_->completed_i, done);
      for (std::uint32_t bits = done; bits != 0; bits &= bits - 1) ++completed;
      dut_.show_cycle(cycle);
      dut_.show_words(words.data(), words.size());
      dut_.settle();
      const bool waits =
          !completions.empty() || (next < items.size() && items[next].arrival > cycle);
      dut_.end_cycle(taken || starts != 0 || done != 0 || waits);
    }
    return times;
  }

  [[nodiscard]] std::uint64_t cycles() const override { return dut_.cycles(); }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  static std::size_t bit_of(std::uint32_t one_bit) {
    std::size_t bit = 0;
    while (bit < 31 && (one_bit >> bit) > 1) ++bit;
    return bit;
  }

  static std::uint32_t take(std::map<std::uint64_t, std::uint32_t>& pulses, std::uint64_t cycle) {
    const auto at = pulses.find(cycle);
    if (at == pulses.end()) return 0;
    const std::uint32_t bits = at->second;
    pulses.erase(at);
    return bits;
  }

  /// Puts a command on the pins.
  void show(const hw::DispatchItem& item) {
    std::array<std::vector<hw::Range>, 4> ranges;  // by memory
    for (const hw::Range& range : item.ranges) {
      ranges.at(static_cast<std::size_t>(range.space)).push_back(range);
    }
    const auto of = [&](hw::Space space, std::size_t registers) {
      std::vector<hw::Range>& found = ranges.at(static_cast<std::size_t>(space));
      if (found.size() > registers) {
        throw std::invalid_argument("a command with " + std::to_string(found.size()) +
                                    " ranges of a memory: the dispatcher has registers for " +
                                    std::to_string(registers));
      }
      found.resize(registers, hw::Range{space, 0, 0, false});
      return found;
    };
    dut_->unit_i = static_cast<CData>(item.unit);
    unsigned writes = 0;
    const auto dram = of(hw::Space::kDram, kDramRanges);
    for (std::size_t i = 0; i < kDramRanges; ++i) {
      writes |= dram[i].write ? 1U << i : 0U;
      set_address<kDramBytes>(dut_->dram_begin_i, i, dram[i].begin);
      set_address<kDramBytes>(dut_->dram_end_i, i, dram[i].end);
    }
    dut_->dram_write_i = static_cast<CData>(writes);
    writes = 0;
    const auto scratchpad = of(hw::Space::kScratchpad, kScratchpadRanges);
    for (std::size_t i = 0; i < kScratchpadRanges; ++i) {
      writes |= scratchpad[i].write ? 1U << i : 0U;
      set_address<kLocalBytes>(dut_->scratchpad_begin_i, i, scratchpad[i].begin);
      set_address<kLocalBytes>(dut_->scratchpad_end_i, i, std::min(scratchpad[i].end, kAllOfLocal));
    }
    dut_->scratchpad_write_i = static_cast<CData>(writes);
    const hw::Range accumulator = of(hw::Space::kAccumulator, 1).front();
    dut_->accumulator_write_i = accumulator.write;
    set_address<kLocalBytes>(dut_->accumulator_begin_i, 0, accumulator.begin);
    set_address<kLocalBytes>(dut_->accumulator_end_i, 0, std::min(accumulator.end, kAllOfLocal));
    const hw::Range statistics = of(hw::Space::kStatistics, 1).front();
    dut_->statistics_write_i = statistics.write;
    set_address<kLocalBytes>(dut_->statistics_begin_i, 0, statistics.begin);
    set_address<kLocalBytes>(dut_->statistics_end_i, 0, statistics.end);
  }

  VerilatedDut<Model> dut_;
  const std::array<std::uint32_t, kStations> sizes_;
  const std::uint32_t entries_;
  const unsigned id_bits_;
};

}  // namespace

std::unique_ptr<DispatcherRtl> make_dispatcher(const std::array<std::uint32_t, kStations>& sizes,
                                               const RtlOptions& options) {
  if (sizes == kDispatcherSizes[0]) {
    return std::make_unique<Dispatcher<Vdispatcher_8x16x4_checked>>(sizes, options);
  }
  if (sizes == kDispatcherSizes[1]) {
    return std::make_unique<Dispatcher<Vdispatcher_4x4x2_checked>>(sizes, options);
  }
  throw hw::InputError("dispatcher: stations of " + std::to_string(sizes[0]) + ", " +
                       std::to_string(sizes[1]) + " and " + std::to_string(sizes[2]) +
                       " commands: expected 8, 16 and 4, or 4, 4 and 2, which have RTL");
}

void check_dispatcher(DispatcherRtl& dispatcher, const std::vector<hw::DispatchItem>& items,
                      const std::array<std::uint32_t, kStations>& sizes, RtlCounts& counts) {
  RtlCheck check(counts, {});
  const std::vector<hw::DispatchTimes> expected = hw::dispatch_times(items, sizes);
  const std::vector<hw::DispatchTimes> found = dispatcher.run(items);
  counts.cycles += dispatcher.cycles();
  for (std::size_t i = 0; i < items.size(); ++i) {
    check.operation();
    check.mismatch(found[i].dispatched != expected[i].dispatched);
    check.mismatch(found[i].started != expected[i].started);
  }
  check.assertions(dispatcher.failed());
}

}  // namespace systole::testbench
