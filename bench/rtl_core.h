#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <systemc>
#include <vector>

#include "bench/rtl_rates.h"
#include "hw/description/machine_file.h"
#include "testbench/common/child_process.h"
#include "testbench/network/run_subject.h"
#include "testbench/network/tensors.h"
#include "testbench/rtl/core/core_rtl.h"
#include "testbench/run/core_on_bus.h"

/// The whole core in RTL: alone, and on the bus and the DRAM of its machine.
namespace systole::bench {

/// A layer of BERT's kind of 8 tokens, width 8, one head, in the core of preset "tiny".
class CoreLayer {
 public:
  CoreLayer() : machine_(hw::find_machine("tiny")), subject_(request(), machine_) {}

  /// Two lines: the core with a memory that answers after kLatency cycles at each of its ports, and
  /// behind AXI4 bridges in a SystemC simulation, with the ratio of their rates.
  [[nodiscard]] nlohmann::ordered_json measure() const {
    const double bare = rate_alone();
    const double on_bus = testbench::in_child([&] { return rate_on_bus(); });
    const auto line = [&](const char* core, double cycles) {
      return nlohmann::ordered_json{
          {"core", core}, {"kcycle_per_s", cycles * 1e-3}, {"ratio", bare / cycles}};
    };
    return {line("alone", bare), line("on bus", on_bus)};
  }

 private:
  static constexpr std::uint64_t kLatency = 50;
  static constexpr std::size_t kInferences = 200;  ///< on the bus, some 0.8 million cycles

  static testbench::RunRequest request() {
    testbench::RunRequest request;
    request.model = "bert-base";
    request.size.length = 8;
    request.size.layers = request.size.heads = 1;
    request.size.width = 8;
    request.size.hidden = 16;
    return request;
  }

  /// Answers of a channel, each `beats` cycles after the one before at the earliest.
  template <typename Request>
  static std::function<std::uint64_t(const Request&)> answers(std::uint64_t Request::*from) {
    return [from, last = std::uint64_t{0}](const Request& request) mutable {
      constexpr std::uint64_t kBeats =
          testbench::kTinyCore.request_bytes / testbench::kTinyCore.lanes;
      return last = std::max(last + kBeats, request.*from + kLatency);
    };
  }
  static hw::ReadMemory reads() {
    return {[](std::uint64_t) { return true; }, answers(&hw::ReadRequest::issued)};
  }

  [[nodiscard]] double rate_alone() const {
    const mapper::Mapping& mapping = subject_.mapping();
    std::vector<std::uint8_t> memory(std::size_t{machine_.dram.mib} << 20);
    for (const hw::MemoryPiece& piece : mapping.image) {
      std::copy(piece.bytes.begin(), piece.bytes.end(),
                memory.begin() + static_cast<std::ptrdiff_t>(piece.address));
    }
    const std::unique_ptr<testbench::CoreRtl> core = testbench::make_core();
    return rate([&] {
      hw::WriteMemory writes;
      writes.takes = writes.takes_data = [](std::uint64_t) { return true; };
      writes.done = answers(&hw::WriteRequest::sent);
      return core
          ->run({mapping.program, mapping.program_address}, {reads(), reads(), reads(), writes},
                memory, nullptr)
          .done;
    });
  }

  [[nodiscard]] double rate_on_bus() const {
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    const mapper::Mapping& mapping = subject_.mapping();
    const std::unique_ptr<testbench::CorePorts> core = testbench::make_core_ports();
    const model::Graph& graph = subject_.graph();
    const testbench::GatesProgram program{
        mapping.program, mapping.program_address, mapping.image,
        mapper::place_of(graph, mapping, testbench::input_tensor(graph)),
        mapper::place_of(graph, mapping, testbench::output_tensor(graph))};
    testbench::CoreOnBus gates(machine_, *core, program);
    const testbench::GatesRun run =
        gates.run(std::vector<std::vector<std::uint8_t>>(kInferences, subject_.inputs().at(0)));
    return static_cast<double>(run.cycles) / run.wall_seconds;
  }

  const hw::Machine machine_;
  const testbench::RunSubject subject_;
};

}  // namespace systole::bench
