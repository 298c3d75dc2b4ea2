#include "testbench/rtl/dma/read_dma_rtl.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "Vread_dma_16x64x16x8_checked.h"
#include "Vread_dma_4x16x4x4_checked.h"
#include "base/error.h"
#include "hw/axi/axi_checker.h"
#include "hw/axi/axi_subordinate.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

hw::AxiSubordinate::Params port_of(const ReadDmaSize& size) {
  hw::AxiSubordinate::Params params;
  params.bytes = params.bus_bytes = size.beat_bytes;
  params.reads = 2 * size.outstanding;
  return params;
}

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
        memory_(memory),
        bytes_(bytes),
        expected_(expected),
        port_(port_of(size)),
        checker_(size.beat_bytes),
        of_tag_(size.commands, kNone),
        of_id_(size.outstanding, kNone) {}

  ReadDmaRtl::Run run(std::vector<std::uint8_t> local) {
    run_.local = std::move(local);
    run_.schedule.times.resize(commands_.size());
    const std::array<std::int32_t, kReadDmaViewWords> none{};
    dut_.show_operation(none.data(), expected_ == nullptr ? 0 : expected_->times.back().completed);
    while (completed_ < commands_.size() || dut_->write_valid_o) step();
    run_.cycles = dut_.cycles();
    return std::move(run_);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  void step() {
    const std::uint64_t cycle = dut_.cycles();
    offer(cycle);
    port_.drive(pins_, cycle);
    pins_.ar.ready = pins_.ar.ready && memory_.takes(cycle);
    dut_->ar_ready_i = pins_.ar.ready;
    dut_->r_valid_i = pins_.r.valid;
    dut_->r_id_i = static_cast<CData>(pins_.r.id);
    dut_->r_resp_i = static_cast<CData>(pins_.r.response);
    dut_->r_last_i = pins_.r.last;
    for (unsigned lane = 0; lane < size_.beat_bytes; ++lane) {
      set_lane<8>(dut_->r_data_i, lane, pins_.r.data[lane]);
    }
    dut_.settle();
    pins_.ar = {dut_->ar_valid_o != 0,
                pins_.ar.ready,
                dut_->ar_id_o,
                dut_->ar_addr_o,
                dut_->ar_len_o,
                dut_->ar_size_o,
                static_cast<hw::AxiBurst>(dut_->ar_burst_o)};
    pins_.r.ready = dut_->r_ready_o != 0;
    if (!checker_.watch(pins_, cycle)) throw std::runtime_error(checker_.breach());
    const bool moved = take_outputs(cycle);
    port_.edge(pins_, cycle,
               [&](const hw::AxiSubordinate::Request& request) { ask(request, cycle); });
    dut_.show_cycle(cycle);
    dut_.end_cycle(moved || !port_.idle() || next_ < commands_.size());
  }

  /// Puts the next command on the pins.
  void offer(std::uint64_t cycle) {
    const auto tag = std::find(of_tag_.begin(), of_tag_.end(), kNone);
    dut_->start_valid_i =
        next_ < commands_.size() && commands_[next_].arrival <= cycle && tag != of_tag_.end();
    if (!dut_->start_valid_i) return;
    const hw::RowRead& command = commands_[next_];
    dut_->tag_i = static_cast<CData>(tag - of_tag_.begin());
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
    if (dut_->write_valid_o) take_write(cycle);
    written_by_ = kNone;
    if (pins_.r.valid && pins_.r.ready) {
      written_by_ = of_id_.at(pins_.r.id);
      if (pins_.r.last) run_.schedule.requests[written_by_].done = cycle + 1;
    }
    if (dut_->completed_o) {
      std::size_t& command = of_tag_.at(dut_->completed_tag_o);
      times.at(command).completed = cycle + 1;
      command = kNone;
      ++completed_;
    }
    return starts;
  }

  void take_write(std::uint64_t cycle) {
    const std::uint64_t word = std::uint64_t{dut_->write_word_o} * size_.beat_bytes;
    hw::LocalWrite write;
    write.cycle = cycle;
    for (unsigned lane = 0; lane < 2 * size_.beat_bytes; ++lane) {
      const unsigned in_word = lane % size_.beat_bytes;
      const auto& strobes = lane < size_.beat_bytes ? dut_->write_here_o : dut_->write_next_o;
      if ((get_lane<8>(strobes, in_word / 8) >> in_word % 8 & 1U) == 0) continue;
      if (write.bytes == 0) write.to = word + lane;
      ++write.bytes;
      run_.local.at(word + lane) =
          static_cast<std::uint8_t>(get_lane<8>(dut_->write_data_o, in_word));
    }
    run_.writes.push_back(write);
    run_.schedule.requests.at(written_by_).bytes += write.bytes;
  }

  void ask(const hw::AxiSubordinate::Request& asked, std::uint64_t cycle) {
    hw::ReadRequest request;
    request.command = current_;
    request.address = asked.address;
    request.bytes = asked.bytes;  // whole beats
    request.issued = cycle;
    of_id_.at(pins_.ar.id) = run_.schedule.requests.size();
    const std::uint64_t done = memory_.done(request);
    const bool there = asked.address + asked.bytes <= bytes_.size();
    if (there) std::memcpy(asked.data, bytes_.data() + asked.address, asked.bytes);
    port_.answer(asked, done - 1, there ? hw::AxiResponse::kOkay : hw::AxiResponse::kDecErr);
    show(run_.schedule.requests.size());
    request.bytes = 0;  // those that it writes
    run_.schedule.requests.push_back(request);
  }

  /// The model's request of that number.
  void show(std::size_t number) {
    if (expected_ == nullptr || number >= expected_->requests.size()) return;
    const hw::ReadRequest& of = expected_->requests[number];
    const std::array<std::int32_t, kReadDmaViewWords> words = {
        static_cast<std::int32_t>(of.address), static_cast<std::int32_t>(of.issued),
        static_cast<std::int32_t>(of.done)};
    dut_.show_words(words.data(), words.size());
  }

  VerilatedDut<Model>& dut_;
  const ReadDmaSize& size_;
  const std::vector<hw::RowRead>& commands_;
  const hw::ReadMemory& memory_;
  const std::vector<std::uint8_t>& bytes_;
  const hw::ReadSchedule* const expected_;
  hw::AxiSubordinate port_;
  hw::AxiChecker checker_;
  hw::AxiPins pins_;
  std::vector<std::size_t> of_tag_, of_id_;  ///< command, request
  std::size_t next_ = 0, completed_ = 0;     ///< commands
  std::size_t current_ = kNone;              ///< the command that started last
  std::size_t written_by_ = kNone;           ///< request of the beat that is written next
  ReadDmaRtl::Run run_;
};

template <typename Model>
class ReadDma final : public ReadDmaRtl {
 public:
  ReadDma(const ReadDmaSize& size, const RtlOptions& options) : size_(size), dut_(options) {}

  Run run(const std::vector<hw::RowRead>& commands, const hw::ReadParams& params,
          const hw::ReadMemory& memory, const std::vector<std::uint8_t>& bytes,
          std::vector<std::uint8_t> local, const hw::ReadSchedule* expected) override {
    dut_->start_valid_i = dut_->r_valid_i = dut_->ar_ready_i = 0;
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

/// The local memory after the writes in the order of their cycles.
std::vector<std::uint8_t> written(std::vector<hw::LocalWrite>& writes,
                                  const std::vector<std::uint8_t>& bytes,
                                  std::vector<std::uint8_t> local) {
  std::sort(writes.begin(), writes.end(),
            [](const auto& a, const auto& b) { return a.cycle < b.cycle; });
  for (const hw::LocalWrite& write : writes) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(write.from), write.bytes,
                local.begin() + static_cast<std::ptrdiff_t>(write.to));
  }
  return local;
}

}  // namespace

hw::ReadParams read_params(const ReadDmaSize& size, hw::SlotOrder slots, std::uint32_t row_bytes) {
  hw::Machine::Dma dma;
  dma.request_bytes = size.request_bytes;
  dma.row_bytes = row_bytes;
  return {hw::RequestCut(dma), size.outstanding, slots, size.commands};
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

void check_read_dma(ReadDmaRtl& dma, const std::vector<hw::RowRead>& commands,
                    const ReadDmaSize& size, const hw::ReadParams& params,
                    const std::function<hw::ReadMemory()>& make_memory,
                    const std::vector<std::uint8_t>& bytes, std::size_t local_bytes,
                    RtlCounts& counts) {
  RtlCheck check(counts, {});
  const std::vector<std::uint8_t> before(local_bytes, 0xa5);
  const hw::ReadSchedule expected = hw::read_schedule(commands, params, make_memory());
  std::vector<hw::LocalWrite> writes;
  for (const hw::ReadRequest& request : expected.requests) {
    const auto of = hw::local_writes(request, size.beat_bytes);
    writes.insert(writes.end(), of.begin(), of.end());
  }
  const std::vector<std::uint8_t> local = written(writes, bytes, before);
  const ReadDmaRtl::Run found = dma.run(commands, params, make_memory(), bytes, before, &expected);
  counts.cycles += found.cycles;
  check.mismatch(found.schedule.requests.size() != expected.requests.size());
  for (std::size_t i = 0; i < std::min(found.schedule.requests.size(), expected.requests.size());
       ++i) {
    const hw::ReadRequest &is = found.schedule.requests[i], &should = expected.requests[i];
    check.mismatch(is.command != should.command || is.address != should.address);
    check.mismatch(is.bytes != should.bytes);
    check.mismatch(is.issued != should.issued || is.done != should.done);
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const hw::ReadTimes &is = found.schedule.times[i], &should = expected.times[i];
    check.operation();
    check.mismatch(is.started != should.started || is.released != should.released);
    check.mismatch(is.completed != should.completed);
  }
  check.mismatch(found.writes.size() != writes.size());
  for (std::size_t i = 0; i < std::min(found.writes.size(), writes.size()); ++i) {
    const hw::LocalWrite &is = found.writes[i], &should = writes[i];
    check.mismatch(is.cycle != should.cycle || is.to != should.to || is.bytes != should.bytes);
  }
  check.values(found.local.data(), local.data(), local.size());
  check.mismatch(dma.error());
  check.assertions(dma.failed());
}

}  // namespace systole::testbench
