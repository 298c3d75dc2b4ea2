#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "hw/dma/request_cut.h"
#include "hw/machine/machine.h"
#include "tlm/bus/request_batch.h"
#include "tlm/common/time.h"
#include "tlm/dma/dma_port.h"
#include "tlm/dma/issue_order.h"
#include "tlm/dma/tlb.h"

namespace systole::tlm_model {

/// Turns rows of bytes into bus requests as hw::RequestCut says, issues one a cycle, and keeps at
/// most `outstanding` in flight: the contract of reads is hw::read_schedule(). The effective
/// bandwidth (outstanding x request_bytes / latency, or the width of the bus) follows from that.
///
/// A port runs ahead of simulated time as long as no other process would act in the meantime, then
/// waits until its request issues, and for its turn (IssueOrder): a memory serves requests in the
/// order of the calls, so this has to be the order in which ports issue them. What a port can issue
/// before it has to wait goes out as one RequestBatch. Call it from one SC_THREAD only.
class RequestDma final : public DmaPort {
 public:
  RequestDma(const sc_core::sc_module_name& name, const hw::Machine& machine,
             std::uint32_t outstanding);

  std::uint64_t move(tlm::tlm_command command, const Rows& rows, std::uint64_t not_before,
                     const OnArrival& on_arrival) override;
  Written write_row(std::uint64_t address, const std::uint8_t* data, std::uint64_t bytes,
                    std::uint64_t from, Pace& pace) override;
  /// A run is cut into requests as a row is.
  std::uint64_t read_runs(const std::vector<Run>& runs, const OnArrival& on_arrival) override;
  [[nodiscard]] std::uint64_t next_issue() const noexcept override { return next_issue_; }
  void synchronise() override;
  void translate_by(Tlb& tlb, DmaPort& walker) override {
    tlb_ = &tlb;
    walker_ = &walker;
  }
  /// Issues every request by itself; the cycles are the same.
  void issue_singly() noexcept { singly_ = true; }
  /// Requests that were timed in one step with others, all the way.
  [[nodiscard]] std::uint64_t timed_in_one() const noexcept { return timed_in_one_; }

  void sample() override;
  void trace(sc_core::sc_trace_file* file) const override;

 private:
  /// A call of move() in progress.
  struct Transfer {
    const OnArrival& on_arrival;
    std::uint64_t done;          ///< of the rows that are complete
    std::uint64_t settling = 0;  ///< as for Rows
    Places* places = nullptr;
    std::uint64_t now_ps = 0;  ///< simulated time, or later if no other process acts until then
    /// Requests of cycles before this one issue before any other process acts, unless something is
    /// sent. 0: not known.
    std::uint64_t alone_until = 0;
    std::uint64_t row = 0;       ///< the first that is not
    std::uint64_t row_done = 0;  ///< of its requests that were sent
  };

  Transfer begin(tlm::tlm_command command, std::uint64_t not_before, const OnArrival& on_arrival);
  /// Cuts a run into requests and issues them.
  void issue_run(const Run& run, Transfer& transfer);
  /// Whether rows are whole requests each, and nothing looks at a request.
  [[nodiscard]] bool is_stream(const Rows& rows) const noexcept;
  /// What is left of such rows.
  struct Stream : RequestRows {
    std::uint64_t left = 0;  ///< requests
    /// Requests that follow each other in memory and in the data.
    [[nodiscard]] std::uint64_t in_line() const noexcept {
      return gap == 0 && data_gap == 0 ? left : row_left;
    }
    /// The next `count` requests are over.
    void pass(std::uint64_t count) noexcept {
      RequestRows::pass(count);
      left -= count;
    }
  };
  /// Issues requests of such rows.
  void issue_stream(const Rows& rows, Transfer& transfer);
  /// Issues the next one, which reach() has reached, and those after it that have a slot and need
  /// no wait.
  void issue_in_reach(Stream& stream, Transfer& transfer);
  /// Requests that issue equally long after each other, because earlier ones end so, and before
  /// anything else happens: the first `certain` of a stream, at most a window of them, and all of
  /// `all` if each that has a slot of one of them ends as long after it as the others.
  struct Even {
    std::uint64_t certain = 0, all = 0;
    std::uint64_t step = 0;  ///< cycles
  };
  /// None if something was issued and not sent.
  [[nodiscard]] Even count_even(std::uint64_t count, Transfer& transfer) const;
  /// Issues and sends such requests.
  void issue_even(const Even& even, Stream& stream, Transfer& transfer);
  /// Requests of a stream that were timed in one step are done.
  void end_in_one(const Stream& stream, Transfer& transfer);
  std::uint64_t end(Transfer& transfer);
  /// The present of a transfer is the edge of that cycle, or is later.
  void advance_to(std::uint64_t cycle, Transfer& transfer) const {
    transfer.now_ps = std::max(transfer.now_ps, clock_.edge_ps(cycle));
  }
  /// Others may have acted: the present is simulated time, or later.
  static void resume(Transfer& transfer);
  /// Finds `alone_until` if it is not known.
  void look_ahead(Transfer& transfer) const;
  /// Moves next_issue_ to where the next request issues, whose slot is free at cycle `free`. Waits
  /// until then and for the port's turn, unless no other process would act in the meantime.
  void reach(std::uint64_t free, Transfer& transfer);
  /// The next request has to know when the first of a full window is done.
  void make_room(Transfer& transfer) {
    if (batch_.size() == window_.size()) send(transfer);
  }
  /// The slot that the next request takes.
  [[nodiscard]] std::uint32_t next_slot(Transfer& transfer);
  /// The same, once it is free: reach().
  [[nodiscard]] std::uint32_t reach_slot(Transfer& transfer);
  /// Whether it is known when a slot is free: asks again.
  bool settle(std::uint32_t slot);
  /// Waits until simulated time is where it could be.
  void approach(std::uint32_t slot, Transfer& transfer);
  /// The last request that has arrived keeps a slot until it is where it belongs.
  void keep_slot(std::uint32_t slot, const Transfer& transfer);
  void translate(std::uint64_t address, Transfer& transfer);
  void issue(std::uint64_t address, std::uint8_t* data, std::uint32_t bytes, bool ends_row,
             Transfer& transfer);
  void send(Transfer& transfer);
  /// The same for a batch of requests in rows.
  void send_rows(Transfer& transfer);
  /// Takes the answers to a batch of requests where `rows` says, the first of which has slot
  /// `slot`. Returns the slot after the last.
  std::uint32_t take_answers(std::uint32_t slot, RequestRows rows, Transfer& transfer);
  /// The slot after `slot`, in order.
  [[nodiscard]] std::uint32_t slot_after(std::uint32_t slot) const noexcept {
    return slot + 1 == window_.size() ? 0 : slot + 1;
  }
  /// Sends the batch.
  void transport(Transfer& transfer);
  /// A request of a transfer is done; `ends_row`: the last of its row.
  static void finish(std::uint64_t done, std::uint64_t bytes, bool ends_row, Transfer& transfer) {
    transfer.row_done = std::max(transfer.row_done, done);
    if (transfer.on_arrival) {
      transfer.on_arrival({transfer.row, bytes, done, transfer.row_done, ends_row});
    }
    if (ends_row) end_row(transfer);
  }
  /// The same of requests in such rows, by the cycles.
  static void finish(const std::vector<std::uint64_t>& done, const RequestRows& rows,
                     Transfer& transfer) {
    const Arrivals arrivals({transfer.row, rows.bytes, 0, transfer.row_done, false}, rows.row_left,
                            rows.in_row, done);
    if (transfer.on_arrival) transfer.on_arrival(arrivals);
    arrivals.for_each([&transfer](const Arrival& arrival) {
      transfer.row_done = arrival.row_done;
      if (arrival.ends_row) end_row(transfer);
    });
  }
  static void end_row(Transfer& transfer) {
    transfer.done = std::max(transfer.done, transfer.row_done);
    transfer.row_done = 0;
    ++transfer.row;
  }
  [[nodiscard]] std::uint64_t now() const { return clock_.cycle_from(sc_core::sc_time_stamp()); }

  const hw::RequestCut cut_;
  const Clock clock_;
  const bool slots_in_order_;
  std::vector<std::uint64_t> window_;  ///< by slot: cycle of completion of its request in flight
  std::uint32_t oldest_ = 0;           ///< slots in order: that of the next request
  /// Of a slot that may be free later than `window_` says, null: of another one.
  struct Late {
    Places* places = nullptr;
    std::uint64_t request = 0;
  };
  std::vector<Late> late_;  ///< by slot
  std::uint64_t next_issue_ = 0;
  Tlb* tlb_ = nullptr;  ///< null: addresses are physical
  DmaPort* walker_ = nullptr;
  std::uint64_t page_ = ~std::uint64_t{0};  ///< of the last request
  const std::shared_ptr<IssueOrder> order_ = IssueOrder::of_simulation();
  IssueOrder::Port place_{*order_};
  bool singly_ = false;
  std::uint64_t timed_in_one_ = 0;
  tlm::tlm_generic_payload payload_;
  struct Issued {
    std::uint32_t slot;
    bool ends_row;  ///< the last of its row
  };
  RequestBatch batch_;          ///< issued and not sent yet
  std::vector<Issued> issued_;  ///< the same requests, unless they are in rows
  struct Flight {
    std::uint64_t issued, done, bytes;
  };
  bool sampled_ = false;           ///< tracing is enabled: keep `flights_`
  std::deque<Flight> flights_;     ///< issued, ahead of time perhaps, and not yet seen as done
  std::uint32_t outstanding_ = 0;  ///< traced: requests in flight
  std::uint64_t moved_ = 0;        ///< traced: bytes of the requests that are done
};

}  // namespace systole::tlm_model
