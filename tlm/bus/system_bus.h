#pragma once

#include <tlm_utils/multi_passthrough_initiator_socket.h>
#include <tlm_utils/multi_passthrough_target_socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <systemc>
#include <tlm>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "tlm/bus/address_map.h"
#include "tlm/bus/bus_core.h"
#include "tlm/bus/bus_transaction.h"
#include "tlm/bus/request_batch.h"
#include "tlm/common/observer.h"
#include "tlm/common/signals.h"

namespace systole::tlm_model {

/// The system bus: any number of TLM-2.0 initiators and targets, an address map, four channels.
///
/// b_transport adds the time of the request to `delay` and never waits. It reserves the channels
/// (see BusCore) in the order of the calls, so initiators should be synchronised: call at the
/// true time of the request, with a small delay. There is no nb_transport: SystemC reports an
/// initiator that calls it as an error.
///
/// An address that no target answers, or a request that leaves a target's range, gets
/// TLM_ADDRESS_ERROR_RESPONSE after the round trip of an empty bus. Addresses are rewritten to
/// offsets in the range and restored before the initiator sees the response. Data are not touched.
class SystemBus : public sc_core::sc_module, public Sampled, public Watched {
 public:
  /// Bind initiators here ...
  tlm_utils::multi_passthrough_target_socket<SystemBus> initiators{"initiators"};
  /// ... and this to targets. Numbers follow the order of binding: bind all of them by hand, or all
  /// with connect_initiator() and connect_target().
  tlm_utils::multi_passthrough_initiator_socket<SystemBus> targets{"targets"};

  /// With a mesh in the place of the channels, unless it is null: place initiators and targets on
  /// it. Throws std::invalid_argument on bad parameters.
  SystemBus(const sc_core::sc_module_name& name, const hw::Machine::Bus& params,
            std::unique_ptr<BusMesh> mesh = nullptr);

  /// Binds an initiator's socket and names its counters after it. Returns its number.
  template <typename Socket>
  unsigned connect_initiator(Socket& socket) {
    socket.bind(initiators);
    const unsigned id = initiators_bound_++;
    core_.initiator(id).name = socket.name();
    return id;
  }

  /// The counters of an initiator are those of what is behind a link.
  void name_initiator(unsigned id, const std::string& name) { core_.initiator(id).name = name; }

  /// Binds a target's socket to [base, base + size). Returns its number. See map().
  template <typename Socket>
  unsigned connect_target(Socket& socket, std::uint64_t base, std::uint64_t size) {
    targets.bind(socket);
    map(targets_bound_, base, size);
    return targets_bound_++;
  }

  /// Of a mesh: who is not placed is at the hosts' node. Null: there is none.
  [[nodiscard]] BusMesh* mesh() noexcept { return core_.mesh(); }
  void place_initiator(unsigned id, BusMesh::Endpoint endpoint) {
    core_.initiator(id).endpoint = endpoint;
  }

  /// Lets target number `target` answer [base, base + size) too. Throws hw::InputError if the range
  /// is empty, wraps around, or overlaps another.
  void map(unsigned target, std::uint64_t base, std::uint64_t size) {
    map_.add({base, size, target});
  }

  /// Calls `observer` too for each transaction to come. Without one nothing is kept of them.
  void observe(BusObserver observer) { observers_.push_back(std::move(observer)); }

  /// From `now` on, time counts in the accounts or it does not.
  void set_counting(bool on, const sc_core::sc_time& now) {
    core_.set_counting(on, core_.clock().cycle_from(now));
  }
  /// Ends the accounts at `total`, the end of the run.
  void finish(const sc_core::sc_time& total) { core_.finish(core_.clock().cycle_from(total)); }

  [[nodiscard]] const BusCore& core() const noexcept { return core_; }

  void sample() override;
  void trace(sc_core::sc_trace_file* file) const override;
  void watch(SignalRecorder& recorder) override;

  [[nodiscard]] hw::BlockReport report() const { return core_.report(basename()); }

 private:
  void end_of_elaboration() override;
  void b_transport(int id, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  void tell(const BusTransaction& transaction, const std::string& initiator) const {
    for (const BusObserver& observer : observers_) observer(transaction, initiator);
  }
  /// Sets when the data of a transaction moved: a write's before it was delivered, a read's before
  /// it was answered.
  void set_data(BusTransaction& transaction, std::uint64_t delivered, bool ok) const;
  /// Serves the batch; false, and nothing is done, if its requests are not all for one target.
  bool transport(int id, RequestBatch& batch, BusCore::Initiator& initiator,
                 tlm::tlm_generic_payload& payload);
  /// What of a batch is the same for all its requests.
  struct BatchCall {
    std::uint32_t id;
    const AddressMap::Range& range;
    bool write;
    BusCore::Initiator& initiator;
    std::vector<BusTransaction> observed;  ///< a target may wait, and others call meanwhile
  };
  /// Sends all requests of a batch that stands for more, without a look at each; nothing, and
  /// nothing is done, if they would not stay equally long after each other.
  std::optional<BusCore::SentReads> send_in_one(RequestBatch& batch, const BatchCall& call);
  /// Moves the times between which the first request of a batch is answered to the target.
  void limit_answer(RequestBatch& batch) const;
  /// The same of the answers.
  bool respond_in_one(RequestBatch& batch, const BatchCall& call);
  void send(RequestBatch& batch, BatchCall& call);
  /// Whether it has channels and no observer of single requests.
  [[nodiscard]] bool is_plain() const noexcept {
    return observers_.empty() && core_.mesh() == nullptr;
  }
  void respond(RequestBatch& batch, BatchCall& call);
  void watch_links(SignalRecorder& recorder);
  unsigned transport_dbg(int id, tlm::tlm_generic_payload& payload);
  bool get_direct_mem_ptr(int id, tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi);
  void invalidate_direct_mem_ptr(int id, sc_dt::uint64 start, sc_dt::uint64 end);

  class LinkSignals;

  BusCore core_;
  std::unique_ptr<hw::MeshWatch> link_signals_;
  AddressMap map_;
  std::vector<BusObserver> observers_;
  std::vector<bool> times_streams_;  ///< by target: it has timed a batch that stands for more
  unsigned initiators_bound_ = 0;
  unsigned targets_bound_ = 0;
  std::uint64_t read_bytes_ = 0, written_bytes_ = 0;  ///< traced, of all initiators
};

}  // namespace systole::tlm_model
