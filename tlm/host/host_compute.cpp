#include "tlm/host/host_compute.h"

#include <algorithm>
#include <string>

#include "hw/dma/request_cut.h"
#include "hw/program/command_codec.h"
#include "tlm/host/host.h"

namespace systole::tlm_model {
namespace {

/// A cache that speaks to the bus as a DMA port does, in the host's clock.
hw::Machine with_cache_port(hw::Machine machine) {
  machine.core.clock_mhz = machine.host.clock_mhz;
  machine.dma.request_bytes = hw::kHostLineBytes;
  machine.dma.row_bytes = 0;
  return machine;
}

}  // namespace

HostCompute::HostCompute(const sc_core::sc_module_name& name, const hw::Machine& machine,
                         bool functional)
    : sc_module(name),
      lines("lines", with_cache_port(machine), machine.host.outstanding),
      params_(machine.host),
      clock_(machine.host.clock_mhz),
      functional_(functional),
      account_("cycles", {{"memory", "lines of operands or results are in flight"},
                          {"core", "interrupts and accesses to the core's registers"}}) {}

std::uint64_t HostCompute::cycle() const { return clock_.cycle_from(sc_core::sc_time_stamp()); }

void HostCompute::wait_for_memory(std::uint64_t until) {
  clock_.wait_until(until);
  const std::uint64_t before = account_.now();
  account_stall(kMemory);
  work_.wait += account_.now() - before;
}

hw::cmd::HostCall HostCompute::fetch(std::uint64_t address) {
  std::vector<std::uint8_t> bytes(hw::kCommandBytes);
  wait_for_memory(lines.read(address, bytes.data(), bytes.size()));
  return std::get<hw::cmd::HostCall>(hw::decode_command(bytes.data()).work);
}

std::uint64_t HostCompute::read(Operand& operand, std::uint64_t row, std::uint64_t rows) {
  if (functional_) operand.bytes.resize(rows * operand.row_bytes);
  return lines.read_rows(
      {operand.address + row * operand.pitch, operand.pitch,
       functional_ ? operand.bytes.data() : nullptr, operand.row_bytes, rows, operand.row_bytes},
      {});
}

std::uint64_t HostCompute::write(Operand& operand, std::uint64_t row, std::uint64_t rows) {
  std::uint64_t done = 0;
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint8_t* const data =
        functional_ ? operand.bytes.data() + i * operand.row_bytes : nullptr;
    done = std::max(
        done, lines.write(operand.address + (row + i) * operand.pitch, data, operand.row_bytes));
  }
  return done;
}

void HostCompute::compute(const hw::HostFunction& function, std::uint64_t elements) {
  const hw::HostCycles cycles = hw::host_cycles(function.op, elements, params_);
  work_.operation[static_cast<std::size_t>(function.op)] += cycles.operation;
  work_.conversion += cycles.conversion;
  work_.elements += elements;
  clock_.wait_until(cycle() + cycles.total());
  account_.busy_until(cycle());
}

void HostCompute::execute(const std::vector<hw::HostFunction>& functions, std::uint64_t address,
                          std::uint8_t& state) {
  state = Host::kReadOperands;
  const hw::cmd::HostCall call = fetch(address);
  const hw::HostFunction& function = functions.at(call.function);
  const std::uint64_t cols = call.n;
  const auto operand = [&](const hw::DramTile& tile, hw::DType type) {
    return Operand{tile.address, tile.pitch, cols * hw::bytes_of(type), {}};
  };
  Operand in = operand(call.in, function.in);
  Operand tensor = operand(call.operand, function.tensor);
  Operand out = operand(call.out, function.out);
  const bool two = hw::operands_of(function.op) > 1;
  const std::uint64_t block = hw::host_block_rows(function, cols);
  std::uint64_t written = 0;
  for (std::uint64_t row = 0; row < call.m; row += block) {
    const std::uint64_t rows = std::min(block, call.m - row);
    state = Host::kReadOperands;
    std::uint64_t arrival = read(in, row, rows);
    if (two) arrival = std::max(arrival, read(tensor, row, rows));
    wait_for_memory(arrival);
    state = Host::kCompute;
    if (functional_) {
      out.bytes.resize(rows * out.row_bytes);
      for (std::uint64_t i = 0; i < rows; ++i) {
        hw::apply_host_row(function, &in.bytes[i * in.row_bytes],
                           two ? &tensor.bytes[i * tensor.row_bytes] : nullptr, cols,
                           &out.bytes[i * out.row_bytes],
                           hw::host_kept(call.valid_cols, row + i, cols));
      }
    }
    compute(function, rows * cols);
    written = write(out, row, rows);
  }
  state = Host::kWriteResults;
  wait_for_memory(written);
  ++work_.calls;
}

hw::BlockReport HostCompute::report() const {
  std::vector<hw::Counter> counters;
  for (std::uint8_t op = 0; op < hw::kHostOps; ++op) {
    const std::string name(hw::name_of(static_cast<hw::HostOp>(op)));
    counters.push_back({name + "_cycles", "cycles", "computing " + name, work_.operation.at(op)});
  }
  counters.push_back({"convert_cycles", "cycles",
                      "computing float32 from integers and integers from float32",
                      work_.conversion});
  counters.push_back(
      {"wait_cycles", "cycles", "waiting for lines of operands, results and commands", work_.wait});
  counters.push_back({"calls", "calls", "commands executed for the core", work_.calls});
  counters.push_back({"elements", "elements", "of results computed", work_.elements});
  counters.push_back(
      {"requests", "requests", "lines read or written for commands", lines.stats().requests});
  counters.push_back({"bytes", "bytes", "of these lines", lines.stats().bytes});
  return account_.report("host", std::max(cycle(), account_.now()), std::move(counters));
}

}  // namespace systole::tlm_model
