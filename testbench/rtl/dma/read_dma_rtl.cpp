#include "testbench/rtl/dma/read_dma_rtl.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "Vread_dma_16x64x16x8_checked.h"
#include "Vread_dma_4x16x4x4_checked.h"
#include "base/error.h"
#include "testbench/rtl/dma/memory_side.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

/// One run of the commands, cycle by cycle.
template <typename Model>
class ReadDmaSession {
 public:
  ReadDmaSession(VerilatedDut<Model>& dut, const ReadDmaSize& size,
                 const std::vector<hw::RowRead>& commands, const hw::ReadMemory& memory,
                 const std::vector<std::uint8_t>& bytes, const hw::ReadSchedule* expected)
      : dut_(dut),
        size_(size),
        commands_(commands),
        expected_(expected),
        memory_(memory),
        side_(size.beat_bytes, size.outstanding, memory, bytes),
        of_tag_(size.commands, kNone),
        of_slot_(size.outstanding, kNone),
        placed_(commands.size()) {}

  ReadDmaRtl::Run run(std::vector<std::uint8_t> local) {
    run_.local = std::move(local);
    run_.schedule.times.resize(commands_.size());
    const std::array<std::int32_t, kReadDmaViewWords> none{};
    dut_.show_operation(none.data(), expected_ == nullptr ? 0 : expected_->times.back().completed);
    while (completed_ < commands_.size() || dut_->write_valid_o) step();
    run_.schedule.requests = std::move(side_.requests());
    run_.cycles = dut_.cycles();
    return std::move(run_);
  }

 private:
  static constexpr std::size_t kNone = ReadSide::kNone;

  void step() {
    const std::uint64_t cycle = dut_.cycles();
    offer(cycle);
    side_.drive(dut_, cycle);
    const auto places = places_.find(cycle);
    dut_->placed_i = static_cast<std::decay_t<decltype(dut_->placed_i)>>(
        places == places_.end() ? 0 : places->second);
    dut_.settle();
    place(cycle);
    const bool moved = take_outputs(cycle);
    if (dut_->ar_valid_o && dut_->ar_ready_i) of_slot_.at(dut_->ar_id_o) = current_;
    side_.take(dut_, cycle, current_);
    end_late(cycle);
    show();
    dut_.show_cycle(cycle);
    dut_.end_cycle(moved || !side_.idle() || !late_.empty() || next_ < commands_.size());
  }

  [[nodiscard]] bool is_late(std::size_t command) const {
    return size_.late_sums && memory_.placed != nullptr && commands_[command].sums;
  }

  /// The last beat of a request for the accumulator: says when its bytes are in their places.
  void place(std::uint64_t cycle) {
    if (!dut_->r_valid_i || !dut_->r_ready_o || !dut_->r_last_i) return;
    const std::size_t command = of_slot_.at(dut_->r_id_i);
    if (!is_late(command)) return;
    hw::ReadRequest request;
    request.done = cycle + 1;
    const std::uint64_t placed = memory_.placed(request);
    places_[placed - 1] |= std::uint64_t{1} << dut_->r_id_i;
    placed_[command] = std::max(placed_[command], placed);
  }

  /// Commands whose bytes have been read and are in their places with the next cycle.
  void end_late(std::uint64_t cycle) {
    for (auto at = late_.begin(); at != late_.end();) {
      std::size_t& command = of_tag_.at(*at);
      if (placed_.at(command) > cycle + 1) {
        ++at;
        continue;
      }
      end(command, cycle);
      at = late_.erase(at);
    }
  }

  void end(std::size_t& command, std::uint64_t cycle) {
    run_.schedule.times.at(command).completed = cycle + 1;
    command = kNone;
    ++completed_;
  }

  /// Puts the next command on the pins.
  void offer(std::uint64_t cycle) {
    const auto tag = std::find(of_tag_.begin(), of_tag_.end(), kNone);
    dut_->start_valid_i =
        next_ < commands_.size() && commands_[next_].arrival <= cycle && tag != of_tag_.end();
    if (!dut_->start_valid_i) return;
    const hw::RowRead& command = commands_[next_];
    dut_->tag_i = static_cast<CData>(tag - of_tag_.begin());
    dut_->sums_i = command.sums;
    dut_->address_i = command.address;
    dut_->pitch_i = static_cast<IData>(command.pitch);
    dut_->rows_i = static_cast<IData>(command.rows);
    dut_->bytes_i = static_cast<IData>(command.bytes);
    dut_->to_i = static_cast<IData>(command.to);
    dut_->to_pitch_i = static_cast<IData>(command.to_pitch);
  }

  bool take_outputs(std::uint64_t cycle) {
    auto& times = run_.schedule.times;
    if (current_ != kNone && times[current_].released == 0 && dut_->start_ready_o) {
      times[current_].released = cycle;
    }
    const bool starts = dut_->start_valid_i && dut_->start_ready_o;
    if (starts) {
      current_ = next_++;
      times[current_].started = cycle;
      of_tag_[dut_->tag_i] = current_;
    }
    if (dut_->write_valid_o) {
      const WritePins write(size_.beat_bytes, dut_->write_word_o, dut_->write_data_o,
                            dut_->write_here_o, dut_->write_next_o, run_.local);
      run_.writes.push_back({cycle, write.to, write.bytes, 0, dut_->write_sums_o != 0});
      side_.count_written(write.bytes);
    }
    if (dut_->completed_o) {
      std::size_t& command = of_tag_.at(dut_->completed_tag_o);
      if (is_late(command)) {
        late_.push_back(dut_->completed_tag_o);
      } else {
        end(command, cycle);
      }
    }
    return starts;
  }

  /// The model's request that issued last.
  void show() {
    const std::size_t issued = side_.requests().size();
    if (expected_ == nullptr || issued == 0 || issued > expected_->requests.size()) return;
    const hw::ReadRequest& of = expected_->requests[issued - 1];
    const std::array<std::int32_t, kReadDmaViewWords> words = {
        static_cast<std::int32_t>(of.address), static_cast<std::int32_t>(of.issued),
        static_cast<std::int32_t>(of.done)};
    dut_.show_words(words.data(), words.size());
  }

  VerilatedDut<Model>& dut_;
  const ReadDmaSize& size_;
  const std::vector<hw::RowRead>& commands_;
  const hw::ReadSchedule* const expected_;
  const hw::ReadMemory& memory_;
  ReadSide side_;
  std::vector<std::size_t> of_tag_;                ///< command
  std::vector<std::size_t> of_slot_;               ///< command of its request
  std::vector<std::uint64_t> placed_;              ///< by command, so far
  std::map<std::uint64_t, std::uint64_t> places_;  ///< slots by cycle
  std::vector<std::size_t> late_;                  ///< tags of commands that have been read
  std::size_t next_ = 0, completed_ = 0;           ///< commands
  std::size_t current_ = kNone;                    ///< the command that started last
  ReadDmaRtl::Run run_;
};

template <typename Model>
class ReadDma final : public ReadDmaRtl {
 public:
  ReadDma(const ReadDmaSize& size, const RtlOptions& options) : size_(size), dut_(options) {}

  Run run(const std::vector<hw::RowRead>& commands, const hw::ReadParams& params,
          const hw::ReadMemory& memory, const std::vector<std::uint8_t>& bytes,
          std::vector<std::uint8_t> local, const hw::ReadSchedule* expected) override {
    dut_->start_valid_i = dut_->r_valid_i = dut_->ar_ready_i = dut_->placed_i = 0;
    dut_->in_order_i = params.slots == hw::SlotOrder::kIssue;
    dut_->row_bytes_i = static_cast<IData>(params.cut.row_bytes);
    dut_.reset();
    return ReadDmaSession<Model>(dut_, size_, commands, memory, bytes, expected)
        .run(std::move(local));
  }

  [[nodiscard]] bool error() const override { return dut_->error_o != 0; }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  const ReadDmaSize size_;
  mutable VerilatedDut<Model> dut_;
};

bool operator==(const ReadDmaSize& a, const ReadDmaSize& b) {
  return a.beat_bytes == b.beat_bytes && a.request_bytes == b.request_bytes &&
         a.outstanding == b.outstanding && a.commands == b.commands;
}

}  // namespace

hw::ReadParams read_params(const ReadDmaSize& size, hw::SlotOrder slots, std::uint32_t row_bytes) {
  hw::Machine::Dma dma;
  dma.request_bytes = size.request_bytes;
  dma.row_bytes = row_bytes;
  return {hw::RequestCut(dma), size.outstanding, slots, size.commands};
}

std::vector<hw::LocalWrite> all_writes(const std::vector<hw::ReadRequest>& requests,
                                       std::uint64_t beat_bytes) {
  std::vector<hw::LocalWrite> writes;
  for (const hw::ReadRequest& request : requests) {
    const auto of = hw::local_writes(request, beat_bytes);
    writes.insert(writes.end(), of.begin(), of.end());
  }
  std::sort(writes.begin(), writes.end(),
            [](const auto& a, const auto& b) { return a.cycle < b.cycle; });
  return writes;
}

std::vector<std::uint8_t> written(const std::vector<hw::LocalWrite>& writes,
                                  const std::vector<std::uint8_t>& bytes,
                                  std::vector<std::uint8_t> local) {
  for (const hw::LocalWrite& write : writes) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(write.from), write.bytes,
                local.begin() + static_cast<std::ptrdiff_t>(write.to));
  }
  return local;
}

std::unique_ptr<ReadDmaRtl> make_read_dma(const ReadDmaSize& size, const RtlOptions& options) {
  if (size == kReadDmaSizes[0]) {
    return std::make_unique<ReadDma<Vread_dma_16x64x16x8_checked>>(size, options);
  }
  if (size == kReadDmaSizes[1]) {
    return std::make_unique<ReadDma<Vread_dma_4x16x4x4_checked>>(size, options);
  }
  throw hw::InputError("read_dma RTL: beats of " + std::to_string(size.beat_bytes) +
                       " bytes, expected a size that is built");
}

void check_requests(RtlCheck& check, const std::vector<hw::ReadRequest>& found,
                    const std::vector<hw::ReadRequest>& expected) {
  check.mismatch(found.size() != expected.size());
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const hw::ReadRequest &is = found[i], &should = expected[i];
    check.mismatch(is.command != should.command || is.address != should.address);
    check.mismatch(is.issued != should.issued || is.done != should.done);
  }
}

void check_writes(RtlCheck& check, const std::vector<hw::LocalWrite>& found,
                  const std::vector<hw::LocalWrite>& expected) {
  check.mismatch(found.size() != expected.size());
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const hw::LocalWrite &is = found[i], &should = expected[i];
    check.mismatch(is.cycle != should.cycle || is.to != should.to || is.bytes != should.bytes);
    check.mismatch(is.sums != should.sums);
  }
}

void check_read_dma(ReadDmaRtl& dma, const std::vector<hw::RowRead>& commands,
                    const ReadDmaSize& size, const hw::ReadParams& params,
                    const std::function<hw::ReadMemory()>& make_memory,
                    const std::vector<std::uint8_t>& bytes, std::size_t local_bytes,
                    RtlCounts& counts) {
  RtlCheck check(counts, {});
  const std::vector<std::uint8_t> before(local_bytes, 0xa5);
  const hw::ReadSchedule expected = hw::read_schedule(commands, params, make_memory());
  const std::vector<hw::LocalWrite> writes = all_writes(expected.requests, size.beat_bytes);
  const std::vector<std::uint8_t> local = written(writes, bytes, before);
  const ReadDmaRtl::Run found = dma.run(commands, params, make_memory(), bytes, before, &expected);
  counts.cycles += found.cycles;
  const std::vector<hw::ReadRequest>& requests = found.schedule.requests;
  check_requests(check, requests, expected.requests);
  for (std::size_t i = 0; i < std::min(requests.size(), expected.requests.size()); ++i) {
    check.mismatch(requests[i].bytes != expected.requests[i].bytes);
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const hw::ReadTimes &is = found.schedule.times[i], &should = expected.times[i];
    check.operation();
    check.mismatch(is.started != should.started || is.released != should.released);
    check.mismatch(is.completed != should.completed);
  }
  check_writes(check, found.writes, writes);
  check.values(found.local.data(), local.data(), local.size());
  check.mismatch(dma.error());
  check.assertions(dma.failed());
}

}  // namespace systole::testbench
