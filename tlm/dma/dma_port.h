#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <systemc>
#include <tlm>
#include <type_traits>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "tlm/common/observer.h"

namespace systole::tlm_model {

class Tlb;

/// One direction of a DMA engine, as the units of a core use it: moves rows of bytes over the bus
/// and says in which cycle of the core's clock each has arrived. RequestDma is Systole's own; any
/// other can take its place, see DmaFactory.
///
/// Loosely timed: calls may return before the bytes have moved in simulated time, with the cycles
/// in which they will have. Call a port from one SC_THREAD only.
class DmaPort : public sc_core::sc_module, public Sampled {
 public:
  tlm_utils::simple_initiator_socket<DmaPort> socket{"socket"};

  struct Stats {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
    std::uint64_t window_wait_cycles = 0;  ///< a request could not issue: all slots in flight
    std::uint64_t tlb_misses = 0;
    std::uint64_t tlb_wait_cycles = 0;  ///< a request waited for its translation
  };

  /// Says when what has been read is where it belongs, of requests that keep their slots until
  /// then.
  class Places {
   public:
    Places() = default;
    Places(const Places&) = delete;
    Places& operator=(const Places&) = delete;
    virtual ~Places() = default;
    /// The last request that has arrived: its number.
    [[nodiscard]] virtual std::uint64_t last() const = 0;
    struct Placed {
      std::uint64_t cycle = 0;  ///< from which the slot of a request is free,
      bool is_final = false;    ///< or, if that is not known yet, before which it is not
    };
    virtual Placed placed(std::uint64_t request) = 0;
  };

  /// Runs of bytes at a pitch, in memory and in the core.
  struct Rows {
    std::uint64_t address;
    std::uint64_t pitch;
    std::uint8_t* data;  ///< null: timing only
    std::uint64_t data_pitch;
    std::uint64_t count;
    std::uint64_t bytes;  ///< of one row
    /// Cycles for which a request keeps its slot after it is done, at least.
    std::uint64_t settling = 0;
    Places* places = nullptr;  ///< says for how many; null: for no more
  };
  /// Bytes of a row that arrive together: those of a request, or all of the row.
  struct Arrival {
    std::uint64_t row = 0;
    std::uint64_t bytes = 0;     ///< those after the bytes of the row that were reported before
    std::uint64_t cycle = 0;     ///< at which the last of them will have arrived
    std::uint64_t row_done = 0;  ///< the latest such cycle of the row so far
    bool ends_row = false;
  };
  /// Several of these, one after the other.
  class Arrivals {
   public:
    explicit Arrivals(const Arrival& one)
        : first_(one), row_left_(one.ends_row ? 1 : 2), in_row_(2), cycles_(&one.cycle) {}
    /// As many bytes each, in rows of `in_row`, of which the first has `row_left`: `first` says
    /// which row that is, and what is known of it. `cycles`: by arrival.
    Arrivals(const Arrival& first, std::uint64_t row_left, std::uint64_t in_row,
             const std::vector<std::uint64_t>& cycles)
        : first_(first),
          row_left_(row_left),
          in_row_(in_row),
          cycles_(cycles.data()),
          count_(cycles.size()) {}

    template <typename Visit>
    void for_each(Visit visit) const {
      Arrival arrival = first_;
      std::uint64_t left = row_left_;
      for (std::size_t i = 0; i < count_; ++i) {
        arrival.cycle = cycles_[i];
        arrival.row_done = std::max(arrival.row_done, arrival.cycle);
        arrival.ends_row = --left == 0;
        visit(std::as_const(arrival));
        if (!arrival.ends_row) continue;
        ++arrival.row;
        arrival.row_done = 0;
        left = in_row_;
      }
    }

   private:
    Arrival first_;
    std::uint64_t row_left_, in_row_;
    const std::uint64_t* cycles_;
    std::size_t count_ = 1;
  };
  /// Called for the bytes of a transfer, in order, as soon as the cycle is known: with each
  /// Arrival, or with several of them, which costs the host less.
  class OnArrival {
   public:
    OnArrival() = default;
    template <typename Call, std::enable_if_t<std::is_invocable_v<Call&, const Arrival&>, int> = 0>
    OnArrival(Call call)  // NOLINT(google-explicit-constructor): as a function
        : call_([call](const Arrivals& arrivals) mutable {
            arrivals.for_each([&call](const Arrival& arrival) { call(arrival); });
          }) {}
    template <typename Call, std::enable_if_t<std::is_invocable_v<Call&, const Arrivals&>, int> = 0>
    OnArrival(Call call)  // NOLINT(google-explicit-constructor)
        : call_(std::move(call)) {}

    explicit operator bool() const noexcept { return static_cast<bool>(call_); }
    void operator()(const Arrivals& arrivals) const { call_(arrivals); }
    void operator()(const Arrival& arrival) const { call_(Arrivals(arrival)); }

   private:
    std::function<void(const Arrivals& arrivals)> call_;
  };
  /// Bytes that follow each other in memory; several make a row.
  struct Run {
    std::uint64_t address;
    std::uint8_t* data;  ///< null: timing only
    std::uint64_t bytes;
    bool ends_row;
  };

  /// Moves `bytes` from or to `address`, no request before cycle `not_before`. `data` may be null:
  /// timing only. The result is the cycle at which the last byte has arrived (read) or is
  /// acknowledged (write).
  std::uint64_t read(std::uint64_t address, std::uint8_t* data, std::uint64_t bytes,
                     std::uint64_t not_before = 0) {
    return move(tlm::TLM_READ_COMMAND, {address, 0, data, 0, 1, bytes}, not_before, {});
  }
  std::uint64_t write(std::uint64_t address, const std::uint8_t* data, std::uint64_t bytes,
                      std::uint64_t not_before = 0) {
    return move(tlm::TLM_WRITE_COMMAND, {address, 0, const_cast<std::uint8_t*>(data), 0, 1, bytes},
                not_before, {});
  }
  /// The same for several rows.
  std::uint64_t read_rows(const Rows& rows, const OnArrival& on_arrival) {
    return move(tlm::TLM_READ_COMMAND, rows, 0, on_arrival);
  }

  /// Says when the requests of a row of results can issue, and learns when they have: one after the
  /// other.
  class Pace {
   public:
    Pace() = default;
    Pace(const Pace&) = delete;
    Pace& operator=(const Pace&) = delete;
    virtual ~Pace() = default;
    /// The cycle from which the next request can issue, if that is known: `bytes` bytes for
    /// `address`. Does not wait.
    virtual std::optional<std::uint64_t> next(std::uint64_t address, std::uint64_t bytes) = 0;
    /// It issues in that cycle.
    virtual void issued(std::uint64_t cycle, std::uint64_t address, std::uint64_t bytes) = 0;
  };
  struct Written {
    std::uint64_t bytes;     ///< of the row, so far
    std::uint64_t done = 0;  ///< cycle of the acknowledgement of all that this call has written
  };
  /// Writes a row of `bytes` bytes for `address` from byte `from` on, as it comes, and as far as
  /// `pace` says when. `data` may be null: timing only. A port that does not override this takes
  /// the row when all of it is there.
  virtual Written write_row(std::uint64_t address, const std::uint8_t* data, std::uint64_t bytes,
                            std::uint64_t from, Pace& pace) {
    const std::optional<std::uint64_t> ready = pace.next(address, bytes);
    if (!ready) return {from};
    const std::uint64_t done = write(address, data, bytes, *ready);
    pace.issued(next_issue() - 1, address, bytes);
    return {bytes, done};
  }

  /// What read(), write() and read_rows() do. `on_arrival` may be empty.
  virtual std::uint64_t move(tlm::tlm_command command, const Rows& rows, std::uint64_t not_before,
                             const OnArrival& on_arrival) = 0;
  /// The same for reads of rows of several runs each.
  virtual std::uint64_t read_runs(const std::vector<Run>& runs, const OnArrival& on_arrival) = 0;
  /// First cycle after the last issued request.
  [[nodiscard]] virtual std::uint64_t next_issue() const noexcept = 0;
  /// Waits until simulated time has caught up with the port.
  virtual void synchronise() = 0;
  /// From now on addresses are virtual. `walker` reads the page table; both outlive the port's use.
  /// A port that does not override this reports an error: its machine must have no table.
  virtual void translate_by(Tlb& tlb, DmaPort& walker);

  [[nodiscard]] const Stats& stats() const noexcept { return stats_; }
  void sample() override {}
  void trace(sc_core::sc_trace_file* /*file*/) const override {}

 protected:
  explicit DmaPort(const sc_core::sc_module_name& name) : sc_module(name) {}

  Stats stats_;
};

/// What a port of a core is for.
enum class DmaUse : std::uint8_t {
  kFetch,            ///< of the program
  kLoad,             ///< load unit
  kStore,            ///< results of the store unit
  kOperands,         ///< tensor operands of the store unit
  kQuery,            ///< attention engines: rows of Q
  kKey,              ///< ... of K
  kValue,            ///< ... of V
  kMask,             ///< ... masks
  kAttentionOutput,  ///< ... outputs
  kLoadWalker,       ///< reads of the page table for the load unit
  kStoreWalker       ///< ... for the store unit
};

/// Makes the ports of a core. `name` is that of the module below the unit.
using DmaFactory = std::function<std::unique_ptr<DmaPort>(const char* name,
                                                          const hw::Machine& machine, DmaUse use)>;

/// Requests that a port of this use has in flight at most, by the keys of the machine.
[[nodiscard]] std::uint32_t outstanding_requests(const hw::Machine& machine, DmaUse use);

/// Systole's own ports: a RequestDma with outstanding_requests().
[[nodiscard]] std::unique_ptr<DmaPort> make_request_dma(const char* name,
                                                        const hw::Machine& machine, DmaUse use);

}  // namespace systole::tlm_model
