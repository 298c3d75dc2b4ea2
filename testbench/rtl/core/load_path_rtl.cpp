#include "testbench/rtl/core/load_path_rtl.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "Vload_path_4x4x2_checked.h"
#include "hw/program/command_codec.h"
#include "hw/program/program_fetch.h"
#include "hw/program/program_image.h"
#include "testbench/rtl/dma/memory_side.h"
#include "testbench/rtl/dma/read_dma_rtl.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

/// Sends the records of a program's chains over the pins of a decoder, a word a cycle, each into
/// the slot of its number. `cycle()` ends a cycle.
template <typename Dut, typename Cycle>
void send_chains(Dut& dut, const hw::Program& program, const Cycle& cycle) {
  constexpr std::size_t kWord = 8;
  const hw::ProgramHeader header = hw::header_of(program);
  const std::vector<std::uint8_t> image = hw::encode_program(program);
  for (std::size_t chain = 0; chain < program.chains.size(); ++chain) {
    const std::uint8_t* const record = image.data() + header.chain(chain);
    dut->chain_slot_i = static_cast<CData>(chain);
    dut->chain_valid_i = 1;
    for (std::size_t at = 0; at < header.chain_bytes; at += kWord) {
      dut->chain_first_i = at == 0;
      for (std::size_t i = 0; i < kWord; ++i) set_lane<8>(dut->chain_word_i, i, record[at + i]);
      dut.settle();
      cycle();
    }
    dut->chain_valid_i = 0;
    dut->chain_store_i = 1;
    dut.settle();
    cycle();
    dut->chain_store_i = 0;
  }
}

using Dut = VerilatedDut<Vload_path_4x4x2_checked>;
using Path = LoadPathRtl;

constexpr std::size_t kLoadEntries = Path::kStationSizes[0];
constexpr std::size_t kPathEntries =
    Path::kStationSizes[0] + Path::kStationSizes[1] + Path::kStationSizes[2];
constexpr unsigned kEntryBits = 4;
constexpr std::size_t kNoCommand = ~std::size_t{0};

/// One run, cycle by cycle.
class LoadPathSession {
 public:
  LoadPathSession(Dut& dut, const LoadPathCase& test, const hw::ReadMemory& memory,
                  const LoadPathRun* expected)
      : dut_(dut),
        test_(test),
        expected_(expected),
        image_(hw::encode_commands(test.program.commands)),
        side_(Path::kBeatBytes, Path::kOutstanding, memory, test.bytes) {
    of_entry_.fill(kNoCommand);
    run_.dispatch.resize(test.items.size());
    run_.loads.resize(test.items.size());
    run_.sums.resize(Path::kSumsBytes);
  }

  LoadPathRun run() {
    dut_.show_operation(words_.data(), 0);
    send_chains(dut_, test_.program, [&] { cycle(true); });
    fill_scratchpad();
    begin_ = dut_.cycles();
    while (completed_ < test_.items.size()) step();
    step();  // the last write
    read_scratchpad();
    run_.requests = std::move(side_.requests());
    return std::move(run_);
  }

 private:
  struct Pulses {
    std::uint32_t released = 0, completed = 0;
  };

  void cycle(bool moved) {
    dut_.show_cycle(dut_.cycles());
    dut_.show_words(words_.data(), words_.size());
    dut_.end_cycle(moved);
  }

  /// Zeros, by the port of the post-op unit.
  void fill_scratchpad() {
    dut_->write_valid_i = 1;
    dut_->write_data_i = 0;
    dut_->write_here_i = (1U << Path::kBeatBytes) - 1;
    dut_->write_next_i = 0;
    for (std::size_t word = 0; word < Path::kScratchpadBytes / Path::kBeatBytes; ++word) {
      dut_->write_word_i = static_cast<SData>(word);
      dut_.settle();
      cycle(true);
    }
    dut_->write_valid_i = 0;
  }

  void read_scratchpad() {
    dut_->parameters_valid_i = 1;
    for (std::size_t at = 0; at < Path::kScratchpadBytes; at += Path::kBeatBytes) {
      dut_->parameters_address_i = static_cast<SData>(at);
      dut_.settle();
      cycle(true);
      dut_.settle();
      for (unsigned lane = 0; lane < Path::kBeatBytes; ++lane) {
        run_.scratchpad.push_back(
            static_cast<std::uint8_t>(get_lane<8>(dut_->parameters_data_o, lane)));
      }
    }
    dut_->parameters_valid_i = 0;
  }

  void step() {
    const std::uint64_t now = dut_.cycles() - begin_;
    offer(now);
    unsigned ready = 0;
    for (std::size_t unit = 1; unit < hw::kStations; ++unit) {
      ready |= unit_free_[unit] <= now ? 1U << (unit - 1) : 0U;
    }
    dut_->start_ready_i = static_cast<CData>(ready);
    dut_->released_i = dut_->completed_i = 0;
    side_.drive(dut_, now);
    dut_.settle();
    if (dut_->illegal_o) {
      throw std::invalid_argument("command " + std::to_string(next_) + " is none for the RTL");
    }
    const bool holds = current_load_ != kNoCommand && run_.loads[current_load_].released == 0;
    if (holds && dut_->load_ready_o) run_.loads[current_load_].released = now;
    bool moved = take_starts(now);
    moved = take_command(now) || moved;
    take_sums(now);
    report(now);
    side_.take(dut_, now, current_load_);
    const bool waits = !pulses_.empty() || !side_.idle() ||
                       (next_ < test_.items.size() && test_.items[next_].arrival > now);
    cycle(moved || waits);
  }

  /// Puts the next command on the pins.
  void offer(std::uint64_t now) {
    dut_->valid_i = next_ < test_.items.size() && test_.items[next_].arrival <= now;
    if (!dut_->valid_i || shown_ == next_) return;
    shown_ = next_;
    const hw::Command& command = test_.program.commands[next_];
    const std::uint8_t* const bytes = image_.data() + next_ * hw::kCommandBytes;
    for (std::size_t i = 0; i < hw::kCommandBytes; ++i) set_lane<8>(dut_->command_i, i, bytes[i]);
    const hw::ChainUse* const use = hw::chain_use(command);
    dut_->command_slot_i = static_cast<CData>(use == nullptr ? 0 : use->chain);
    const hw::OperandEntries entries = hw::operand_entries(command, test_.program);
    for (std::uint32_t i = 0; i < entries.count; ++i) {
      const hw::DramTile& tile = test_.program.operand_tiles.at(entries.first + i);
      set_lane<64>(dut_->operand_address_i, i, tile.address);
      set_lane<32>(dut_->operand_pitch_i, i, tile.pitch);
    }
  }

  bool take_starts(std::uint64_t now) {
    for (std::size_t unit = 0; unit < hw::kStations; ++unit) {
      if ((dut_->start_o >> unit & 1U) == 0) continue;
      const std::size_t entry =
          std::size_t{dut_->start_entry_o} >> (unit * kEntryBits) & ((1U << kEntryBits) - 1);
      const std::size_t index = of_entry_.at(entry);
      run_.dispatch.at(index).started = now;
      show(unit, index);
      if (unit == 0) {
        current_load_ = index;
        run_.loads[index].started = now;
        continue;
      }
      const LoadPathItem& item = test_.items[index];
      unit_free_[unit] = now + item.occupied;
      if (item.released < item.completed) {
        pulses_[now + item.released - 1].released |= 1U << entry;
      }
      pulses_[now + item.completed - 1].completed |= 1U << entry;
    }
    return dut_->start_o != 0;
  }

  bool take_command(std::uint64_t now) {
    if (!dut_->valid_i || !dut_->ready_o) return false;
    std::size_t entry = 0;
    while ((dut_->entry_o >> entry & 1U) == 0) ++entry;
    of_entry_.at(entry) = next_;
    run_.dispatch[next_++].dispatched = now + 1;
    return true;
  }

  /// What units report in this cycle, the load unit included.
  void report(std::uint64_t now) {
    for (std::size_t entry = 0; entry < kLoadEntries; ++entry) {
      if ((dut_->load_completed_o >> entry & 1U) == 0) continue;
      run_.loads[of_entry_.at(entry)].completed = now + 1;
      ++completed_;
    }
    const auto at = pulses_.find(now);
    if (at == pulses_.end()) return;
    dut_->released_i = static_cast<CData>(at->second.released >> kLoadEntries);
    dut_->completed_i = static_cast<CData>(at->second.completed >> kLoadEntries);
    for (std::uint32_t bits = at->second.completed; bits != 0; bits &= bits - 1) ++completed_;
    pulses_.erase(at);
  }

  /// Bytes that go to the accumulator. What is in the scratchpad is read at the end.
  void take_sums(std::uint64_t now) {
    const bool placed = dut_->sums_valid_o != 0;  // a cycle later than in the scratchpad
    const auto one_of = [](bool there, unsigned place) {
      return static_cast<CData>(there ? 1U << place : 0U);
    };
    dut_->sums_placed_i = one_of(placed && dut_->sums_last_o, dut_->sums_slot_o);
    dut_->sums_completed_i = one_of(placed && dut_->sums_end_o, dut_->sums_tag_o);
    dut_.settle();
    if (!placed) return;
    const WritePins write(Path::kBeatBytes, dut_->sums_word_o, dut_->sums_data_o, dut_->sums_here_o,
                          dut_->sums_next_o, run_.sums);
    run_.sums_written.push_back({now, write.to, write.bytes, 0, true});
  }

  void show(std::size_t unit, std::size_t index) {
    if (expected_ == nullptr) return;
    words_[2 * unit] = static_cast<std::int32_t>(expected_->dispatch[index].dispatched);
    words_[2 * unit + 1] = static_cast<std::int32_t>(expected_->dispatch[index].started);
  }

  Dut& dut_;
  const LoadPathCase& test_;
  const LoadPathRun* const expected_;
  const std::vector<std::uint8_t> image_;
  ReadSide side_;
  LoadPathRun run_;
  std::array<std::size_t, kPathEntries> of_entry_{};  ///< command
  std::array<std::uint64_t, hw::kStations> unit_free_{};
  std::map<std::uint64_t, Pulses> pulses_;  ///< by cycle
  std::array<std::int32_t, kLoadPathViewWords> words_{};
  std::uint64_t begin_ = 0;
  std::size_t next_ = 0, completed_ = 0, shown_ = kNoCommand, current_load_ = kNoCommand;
};

class LoadPath final : public LoadPathRtl {
 public:
  explicit LoadPath(const RtlOptions& options) : dut_(options) { quiet(); }

  LoadPathRun run(const LoadPathCase& test, const hw::ReadMemory& memory,
                  const LoadPathRun* expected) override {
    quiet();
    dut_->in_order_i = test.slots == hw::SlotOrder::kIssue;
    dut_->row_bytes_i = test.row_bytes;
    dut_.reset();
    return LoadPathSession(dut_, test, memory, expected).run();
  }

  [[nodiscard]] std::uint64_t cycles() const override { return dut_.cycles(); }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  void quiet() {
    dut_->chain_valid_i = dut_->chain_first_i = dut_->chain_store_i = dut_->valid_i = 0;
    dut_->start_ready_i = dut_->released_i = dut_->completed_i = 0;
    dut_->sums_placed_i = dut_->sums_completed_i = 0;
    dut_->ar_ready_i = dut_->r_valid_i = 0;
    dut_->write_valid_i = dut_->parameters_valid_i = dut_->array_valid_i = 0;
    dut_->parameters_late_i = 0;
  }

  Dut dut_;
};

hw::ReadParams path_params(const LoadPathCase& test) {
  return read_params(
      {Path::kBeatBytes, Path::kRequestBytes, Path::kOutstanding, Path::kStationSizes[0]},
      test.slots, test.row_bytes);
}

}  // namespace

std::unique_ptr<LoadPathRtl> make_load_path(const RtlOptions& options) {
  return std::make_unique<LoadPath>(options);
}

hw::RowRead row_read(const hw::Command& command) {
  const auto* const load = command.as<hw::cmd::Load>();
  hw::RowRead read;
  read.rows = 0;
  if (load == nullptr) return read;
  read.sums = command.opcode() == hw::Opcode::kLoadAccumulator;
  const std::uint64_t scale = read.sums ? hw::bytes_of(load->type) : 1;
  read.address = load->from.address;
  read.pitch = load->from.pitch;
  read.rows = load->m;
  read.bytes = load->n * hw::bytes_of(load->type);
  read.to = load->to.address * scale;
  read.to_pitch = load->to.pitch * scale;
  return read;
}

LoadPathRun model_load_path(const LoadPathCase& test, const hw::ReadMemory& memory) {
  LoadPathRun run;
  hw::DispatchSchedule dispatch(Path::kStationSizes);
  hw::ReadMemory placing = memory;
  placing.placed = [](const hw::ReadRequest& request) { return request.done + 1; };
  hw::ReadPort port(path_params(test), placing);
  for (std::size_t i = 0; i < test.items.size(); ++i) {
    const hw::Command& command = test.program.commands[i];
    const LoadPathItem& item = test.items[i];
    run.dispatch.push_back(dispatch.next(hw::unit_of(command.opcode()),
                                         hw::ranges_of(command, test.program), item.arrival));
    run.loads.emplace_back();
    const hw::RowRead read = row_read(command);
    if (read.rows == 0) {
      dispatch.run(item.occupied, item.released, item.completed);
      continue;
    }
    const std::uint64_t started = run.dispatch.back().started;
    const hw::ReadTimes times = port.run(read, i, started, run.requests);
    run.loads.back() = times;
    dispatch.run(times.released - started, times.completed - started, times.completed - started);
  }
  std::vector<hw::LocalWrite> writes = all_writes(run.requests, Path::kBeatBytes);
  const auto first_sum = std::stable_partition(
      writes.begin(), writes.end(), [](const hw::LocalWrite& write) { return !write.sums; });
  run.sums_written.assign(first_sum, writes.end());
  writes.erase(first_sum, writes.end());
  run.scratchpad = written(writes, test.bytes, std::vector<std::uint8_t>(Path::kScratchpadBytes));
  run.sums = written(run.sums_written, test.bytes, std::vector<std::uint8_t>(Path::kSumsBytes));
  return run;
}

void check_load_path(LoadPathRtl& path, const LoadPathCase& test,
                     const std::function<hw::ReadMemory()>& make_memory, RtlCounts& counts) {
  RtlCheck check(counts, {});
  const LoadPathRun expected = model_load_path(test, make_memory());
  const LoadPathRun found = path.run(test, make_memory(), &expected);
  counts.cycles += path.cycles();
  for (std::size_t i = 0; i < test.items.size(); ++i) {
    check.operation();
    check.mismatch(found.dispatch[i].dispatched != expected.dispatch[i].dispatched);
    check.mismatch(found.dispatch[i].started != expected.dispatch[i].started);
    check.mismatch(found.loads[i].started != expected.loads[i].started);
    check.mismatch(found.loads[i].released != expected.loads[i].released);
    check.mismatch(found.loads[i].completed != expected.loads[i].completed);
  }
  check_requests(check, found.requests, expected.requests);
  check_writes(check, found.sums_written, expected.sums_written);
  check.values(found.scratchpad.data(), expected.scratchpad.data(), expected.scratchpad.size());
  check.values(found.sums.data(), expected.sums.data(), expected.sums.size());
  check.assertions(path.failed());
}

}  // namespace systole::testbench
