/// The contracts of the parts of a core, as one.
#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "hw/array/sum_ports.h"
#include "hw/core/fold_command.h"
#include "hw/core/staged_load.h"
#include "hw/dma/chain_schedule.h"
#include "hw/dma/fetch_schedule.h"
#include "hw/dma/store_schedule.h"
#include "hw/dma/sum_loads.h"
#include "hw/memory/bank_service.h"
#include "hw/program/program_fetch.h"
#include "hw/program/program_ranges.h"
#include "testbench/rtl/core/core_limits.h"
#include "testbench/rtl/core/core_rtl.h"
#include "testbench/rtl/core/load_path_rtl.h"
#include "testbench/rtl/dma/read_dma_rtl.h"

namespace systole::testbench {
namespace {

hw::StoreCommand store_command(const hw::Command& command, const hw::Program& program,
                               const CoreCommandTimes& times) {
  const auto& result = *command.as<hw::cmd::Result>();
  hw::StoreCommand store;
  store.started = times.started;
  store.dispatched = times.dispatched;
  store.readable = times.readable;
  store.m = result.m;
  store.n = result.n;
  store.c = result.from.address;
  store.c_pitch = result.from.pitch;
  store.parameters = result.chain.parameters;
  store.chain = result.chain.chain;
  store.whole = hw::writes_what_it_reads(hw::ranges_of(command, program));
  std::size_t tensors = 0;
  hw::for_each_operand(result.chain, program, [&](const hw::DramTile& tile, hw::DType /*type*/) {
    store.tensors.at(tensors++) = {tile.address, tile.pitch};
  });
  if (const auto* const move = command.as<hw::cmd::Move>()) {
    store.move = true;
    store.to = move->to.address;
    store.to_pitch = move->to.pitch;
  } else {
    const hw::DramTile& to = command.as<hw::cmd::Store>()->to;
    store.to = to.address;
    store.to_pitch = to.pitch;
  }
  return store;
}

/// What is known of a run after a pass.
struct CorePass {
  CoreRun run;
  std::vector<hw::LocalWrite> load_writes;
  /// What loads with stages use of the scratchpad: banks, and the cycle.
  std::vector<std::pair<hw::BankAccess, std::uint64_t>> stage_uses;
  hw::FoldSchedule folds;
  hw::BankService array{0};  ///< what it reads of the scratchpad
  std::vector<hw::LoadedSums> load_sums;
  hw::StoreSchedule stores;

  /// Whether the next pass would find the same.
  [[nodiscard]] bool settles(const CorePass& next) const {
    const auto same = [](const auto& a, const auto& b, const auto& equal) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
    };
    return same(run.commands, next.run.commands,
                [](const CoreCommandTimes& a, const CoreCommandTimes& b) {
                  return a.dispatched == b.dispatched && a.readable == b.readable &&
                         a.started == b.started && a.completed == b.completed;
                }) &&
           same(load_writes, next.load_writes,
                [](const hw::LocalWrite& a, const hw::LocalWrite& b) {
                  return a.cycle == b.cycle && a.to == b.to;
                }) &&
           same(stage_uses, next.stage_uses,
                [](const auto& a, const auto& b) {
                  return a.second == b.second && a.first.bank == b.first.bank &&
                         a.first.crosses == b.first.crosses;
                }) &&
           same(folds.sums, next.folds.sums,
                [](const hw::SumWrite& a, const hw::SumWrite& b) {
                  return a.cycle == b.cycle && a.at == b.at;
                }) &&
           same(load_sums, next.load_sums, [](const hw::LoadedSums& a, const hw::LoadedSums& b) {
             return a.cycle == b.cycle && a.first == b.first && a.last == b.last;
           });
  }
};

class CorePasses {
 public:
  CorePasses(const CoreSize& size, const CoreCase& test,
             const std::function<CoreMemory()>& make_ports)
      : size_(size),
        port_(read_params({size.lanes, size.request_bytes, size.outstanding, size.stations[0]},
                          test.slots, 0)),
        test_(test),
        make_ports_(make_ports),
        machine_(core_machine(size)) {
    array_.rows = array_.cols = size.lanes;
    array_.overlap = test.overlap;
  }

  CoreRun run() {
    constexpr int kMostPasses = 2'000;
    CorePass last;
    last.array = hw::BankService(size_.banks);
    last.run.commands.resize(test_.program.commands.size() - 1);
    for (int i = 0; i < kMostPasses; ++i) {
      CorePass next = pass(last);
      if (i != 0 && last.settles(next)) return std::move(next.run);
      last = std::move(next);
    }
    throw std::runtime_error("the contracts of a core do not settle");
  }

 private:
  [[nodiscard]] CorePass pass(const CorePass& last) const {
    CorePass next;
    hw::BankService banks(size_.banks);
    for (const hw::LocalWrite& write : last.load_writes) {
      if (!write.sums)
        (void)banks.serve(write.cycle, {access(write.to, write.bytes), std::nullopt});
    }
    for (const auto& [access, cycle] : last.stage_uses) {
      (void)banks.serve(cycle, {access, std::nullopt});
    }
    next.stores = stores(last, banks);
    next.array = hw::BankService(size_.banks);
    next.folds = folds(last, banks, next.array);
    dispatch(last, next);
    return next;
  }

  [[nodiscard]] hw::StoreSchedule stores(const CorePass& last, hw::BankService& banks) const {
    std::vector<hw::StoreCommand> commands;
    for (std::size_t i = 0; i < last.run.commands.size(); ++i) {
      const hw::Command& command = test_.program.commands[i];
      if (hw::unit_of(command.opcode()) != hw::Unit::kStore) continue;
      commands.push_back(store_command(command, test_.program, last.run.commands[i]));
    }
    const hw::SumPorts ports(sum_memories(), last.folds.sums, last.load_sums);
    const CoreMemory memory = make_ports_();
    const hw::StoreParams params{size_.lanes,
                                 {port_.cut, size_.lanes, size_.outstanding, test_.slots,
                                  hw::store_queue_beats(size_.request_bytes, size_.lanes)},
                                 port_};
    const auto serves = [&](std::uint64_t cycle, std::uint64_t address, std::uint64_t bytes) {
      return banks.serves(cycle, access(address, bytes));
    };
    return hw::store_times(test_.program.chains, commands, params,
                           {[&](std::uint64_t cycle, std::uint64_t address, bool ahead) {
                              if (!ahead) return serves(cycle, address, size_.lanes);
                              const hw::BankAccess read = access(address, size_.lanes);
                              return banks.is_free(cycle, read) && last.array.is_free(cycle, read);
                            },
                            serves,
                            [&](std::uint64_t cycle, std::uint64_t at) {
                              return ports.none(cycle, sum_memories().vector(at));
                            },
                            memory.stores, memory.operands});
  }

  [[nodiscard]] hw::FoldSchedule folds(const CorePass& last, hw::BankService& banks,
                                       hw::BankService& array) const {
    std::vector<hw::FoldCommand> commands;
    for (std::size_t i = 0; i < last.run.commands.size(); ++i) {
      const auto* const matmul = test_.program.commands[i].as<hw::cmd::Matmul>();
      if (matmul == nullptr) continue;
      commands.push_back(hw::fold_command(*matmul, last.run.commands[i].started));
    }
    return hw::fold_times(
        array_, commands,
        [&](std::uint64_t cycle, std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
          hw::BankStep step;
          if (a) step.first = access(*a, size_.lanes);
          if (b) step.second = access(*b, size_.lanes);
          const hw::BankService::Served served = banks.serve(cycle, step);
          if (step.first) (void)array.serve(served.first, {step.first, std::nullopt});
          if (step.second) (void)array.serve(served.second, {step.second, std::nullopt});
          return served.end;
        });
  }

  /// The commands in order, with what is known of the units.
  void dispatch(const CorePass& last, CorePass& next) const {
    const CoreMemory memory = make_ports_();
    const auto count = static_cast<std::uint32_t>(test_.program.commands.size());
    hw::FetchSchedule fetch(port_, memory.program, size_.fetch_commands, test_.address, count);
    hw::DispatchSchedule schedule(size_.stations);
    const hw::SumLoads sums(sum_memories(), next.folds.sums, sum_beats(last.run.reads));
    hw::ReadMemory memory_of_loads = memory.loads;
    memory_of_loads.placed = [&](const hw::ReadRequest& request) {
      return sums.placed(beats_of(request).back());
    };
    hw::ReadPort loads(port_, memory_of_loads);
    hw::StoreSetUp stages;               // before the anchor
    std::vector<hw::ReadRequest> plain;  // of loads without them
    hw::ChainSchedule chains(hw::header_of(test_.program), size_.chain_slots, size_.stages + 1);
    std::uint64_t out = 0;  // cycle from which the next command can follow
    fetch.start(0);
    std::size_t matmul = 0, store = 0;
    std::uint64_t end = 0;
    for (std::uint32_t i = 0; i + 1 < count; ++i) {
      const hw::Command& command = test_.program.commands[i];
      const hw::Unit unit = hw::unit_of(command.opcode());
      const std::uint64_t arrival = fetch.arrival(i);
      const hw::ChainUse* const use = chain_use(command);
      const hw::DispatchTimes at = schedule.next(
          unit, hw::ranges_of(command, test_.program),
          chains.ready(fetch, use == nullptr ? std::nullopt : std::optional(use->chain),
                       second_operand(command), arrival, std::max(out, arrival)),
          hw::has_unit_alone(command));
      fetch.is_out(i, out = at.dispatched);
      CoreCommandTimes times{at.dispatched, at.started, at.started, 0, 0, at.readable};
      const std::uint64_t before = last.run.commands[i].started;
      const auto run_unit = [&](const auto& known) {
        const auto after = [before](std::uint64_t cycle) {
          return std::max(cycle, before + 1) - before;
        };
        schedule.run(after(known.free), after(known.released), after(known.completed));
        times.released = at.started + after(known.released);
        times.completed = at.started + after(known.completed);
      };
      if (unit == hw::Unit::kCompute) {
        run_unit(next.folds.times.at(matmul++));
      } else if (unit == hw::Unit::kStore) {
        run_unit(next.stores.times.at(store++));
      } else if (hw::has_unit_alone(command)) {
        times.completed = run_stages(*command.as<hw::cmd::Load>(), i, at.started, loads, stages,
                                     next.run.reads, next.stage_uses);
        const std::uint64_t taken = times.completed - at.started;
        schedule.run(taken, taken, taken);
      } else {
        const std::size_t first = plain.size();
        const hw::ReadTimes read = loads.run(row_read(command), i, at.started, plain);
        next.run.reads.insert(next.run.reads.end(),
                              plain.begin() + static_cast<std::ptrdiff_t>(first), plain.end());
        times.completed = read.completed;
        const std::uint64_t completed = times.completed - at.started;
        schedule.run(read.released - at.started, completed, completed);
      }
      if (use != nullptr) chains.is_used(use->chain, times.completed);
      end = std::max(end, times.completed);
      next.run.commands.push_back(times);
    }
    next.run.counted = std::max(end, fetch.arrival(count - 1));
    next.run.done = next.run.counted + 1;
    next.run.fetches = fetch.requests();
    next.run.writes = next.stores.requests;
    next.run.operands = next.stores.operands;
    next.load_sums =
        hw::SumLoads(sum_memories(), next.folds.sums, sum_beats(next.run.reads)).writes();
    next.load_writes = all_writes(plain, size_.lanes);
  }

  /// The chain that a command names; null: it names none.
  [[nodiscard]] static const hw::ChainUse* chain_use(const hw::Command& command) {
    if (const auto* const result = command.as<hw::cmd::Result>()) return &result->chain;
    const auto* const load = command.as<hw::cmd::Load>();
    return load != nullptr && load->pre ? &*load->pre : nullptr;
  }

  /// A load with stages, command `i`. Returns the cycle with which it is complete.
  [[nodiscard]] std::uint64_t run_stages(
      const hw::cmd::Load& load, std::uint32_t i, std::uint64_t started, hw::ReadPort& port,
      hw::StoreSetUp& set_up, std::vector<hw::ReadRequest>& requests,
      std::vector<std::pair<hw::BankAccess, std::uint64_t>>& uses) const {
    const hw::Chain& chain = hw::chain_of(*load.pre, test_.program);
    hw::StagedLoad staged(load, chain, machine_, false);
    struct Tile {
      hw::DramTile at;
      std::uint64_t element;
    };
    std::vector<Tile> tiles = {{load.from, hw::bytes_of(load.type)}};
    hw::for_each_operand(*load.pre, test_.program, [&](const hw::DramTile& tile, hw::DType type) {
      tiles.push_back({tile, hw::bytes_of(type)});
    });
    for (const Tile& tile : tiles) {
      staged.begin_rows(tile.element, &tile == &tiles.back());
      hw::RowRead read;
      read.address = tile.at.address;
      read.pitch = tile.at.pitch;
      read.rows = load.m;
      read.bytes = load.n * tile.element;
      const std::size_t first = requests.size();
      started = port.run(read, i, started, requests).released;
      for (std::size_t r = first; r < requests.size(); ++r) {
        staged.arrive(requests[r].address, requests[r].bytes, requests[r].done);
      }
    }
    // A bank is used in the cycle after the one for which the model asks.
    staged.go_on(
        hw::StagedLoad::kAllKnown, set_up,
        [&](const hw::BankAccess& banks, std::uint64_t cycle) {
          uses.emplace_back(banks, cycle + 1);
        },
        [&](std::uint64_t at, std::uint64_t bytes, std::uint64_t /*words*/, std::uint64_t cycle) {
          uses.emplace_back(access(at, bytes), cycle);
        });
    return staged.completed();
  }

  /// Where the table of operands has the command's second one.
  [[nodiscard]] std::optional<std::uint32_t> second_operand(const hw::Command& command) const {
    const hw::OperandEntries entries = hw::operand_entries(command, test_.program);
    return entries.count == 0 ? std::nullopt : std::optional(entries.first);
  }

  [[nodiscard]] hw::SumMemories sum_memories() const {
    return {size_.lanes, size_.sum_banks, size_.sum_bank_rows};
  }

  /// Beats of a request for the accumulator.
  [[nodiscard]] std::vector<hw::LoadedSums> beats_of(const hw::ReadRequest& request) const {
    const hw::Command& command = test_.program.commands[request.command];
    const std::uint64_t bytes = hw::bytes_of(command.as<hw::cmd::Load>()->type);
    std::vector<hw::LoadedSums> beats;
    for (const hw::LocalWrite& write : hw::local_writes(request, size_.lanes)) {
      beats.push_back({write.cycle, write.to / bytes, (write.to + write.bytes - 1) / bytes});
    }
    return beats;
  }

  /// Those of all loads, in their order.
  [[nodiscard]] std::vector<hw::LoadedSums> sum_beats(
      const std::vector<hw::ReadRequest>& reads) const {
    std::vector<hw::LoadedSums> beats;
    for (const hw::ReadRequest& request : reads) {
      if (!request.sums) continue;
      const std::vector<hw::LoadedSums> of = beats_of(request);
      beats.insert(beats.end(), of.begin(), of.end());
    }
    std::sort(beats.begin(), beats.end(),
              [](const hw::LoadedSums& a, const hw::LoadedSums& b) { return a.cycle < b.cycle; });
    return beats;
  }

  [[nodiscard]] hw::BankAccess access(std::uint64_t address, std::uint64_t bytes) const {
    address %= size_.scratchpad_bytes();
    bytes = std::min(bytes, size_.scratchpad_bytes() - address);
    return hw::bank_access(address, bytes,
                           BlockSize(std::uint64_t{size_.bank_words} * size_.lanes));
  }

  const CoreSize size_;
  const hw::ReadParams port_;
  const CoreCase& test_;
  const std::function<CoreMemory()>& make_ports_;
  const hw::Machine machine_;
  hw::Machine::Array array_;
};

}  // namespace

CoreRun model_core(const CoreSize& size, const CoreCase& test,
                   const std::function<CoreMemory()>& make_ports) {
  return CorePasses(size, test, make_ports).run();
}

namespace {

/// The same requests, whatever commands they are of: who watches a port that fetches ahead cannot
/// tell.
std::vector<hw::ReadRequest> of_any(std::vector<hw::ReadRequest> requests) {
  for (hw::ReadRequest& request : requests) request.command = 0;
  return requests;
}

}  // namespace

CoreRun check_core(CoreRtl& core, const CoreCase& test,
                   const std::function<CoreMemory()>& make_ports, CoreState& state,
                   RtlCounts& counts) {
  RtlCheck check(counts, {});
  const CoreRun expected = model_core(core.size(), test, make_ports);
  std::vector<std::uint8_t> memory = state.memory;
  const CoreRun found = core.run(test, make_ports(), memory, &expected);
  counts.cycles += core.cycles();
  for (std::size_t i = 0; i < expected.commands.size(); ++i) {
    check.operation();
    const CoreCommandTimes &is = found.commands[i], &should = expected.commands[i];
    check.mismatch(is.dispatched != should.dispatched || is.started != should.started);
    check.mismatch(is.released != should.released || is.completed != should.completed);
  }
  check.mismatch(found.done != expected.done || found.counted != expected.counted);
  check_requests(check, found.fetches, of_any(expected.fetches));
  check_requests(check, found.reads, expected.reads);
  check_requests(check, found.operands, of_any(expected.operands));
  check.mismatch(found.writes.size() != expected.writes.size());
  for (std::size_t i = 0; i < std::min(found.writes.size(), expected.writes.size()); ++i) {
    const hw::WriteRequest &is = found.writes[i], &should = expected.writes[i];
    check.mismatch(is.address != should.address || is.bytes != should.bytes);
    check.mismatch(is.issued != should.issued || is.sent != should.sent || is.done != should.done);
  }
  execute(test.program, state);
  check.values(memory.data(), state.memory.data(), memory.size());
  check.assertions(core.failed());
  return expected;
}

}  // namespace systole::testbench
