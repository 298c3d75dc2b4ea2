#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "fuzz/target.h"
#include "hw/attention/mask_codec.h"
#include "hw/description/machine_file.h"
#include "hw/program/command_codec.h"
#include "hw/program/program.h"
#include "hw/program/program_image.h"
#include "support/tlm/fresh_kernel.h"
#include "testbench/trace/bus_trace.h"
#include "tlm/system.h"

/// What is in the memory of a machine, and traces of its bus.
namespace systole::fuzz {
namespace {

std::vector<std::uint8_t> vector_of(std::string_view bytes) { return {bytes.begin(), bytes.end()}; }

/// The first `count` bytes, zeros where there are fewer, and the rest.
std::string take(std::string_view& bytes, std::size_t count) {
  std::string taken(bytes.substr(0, count));
  bytes.remove_prefix(taken.size());
  taken.resize(count);
  return taken;
}

constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 20;

// Of a simulation: where the program and data are, and how much work it may be.
constexpr std::uint64_t kProgramAddress = 0x40000, kDataBytes = 0x10000;
constexpr std::uint64_t kMostWork = 200'000, kMostCommands = 64;

/// Machines that differ in their units: with attention engines, with a host, with stages as rows
/// are loaded.
const std::vector<hw::Machine>& machines() {
  static const std::vector<hw::Machine> all = [] {
    const Unmeasured unmeasured;
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    std::vector<hw::Machine> made;
    for (const char* const name : {"tiny", "transformer", "vitcod", "gemmini"}) {
      made.push_back(hw::find_machine(name));
      made.back().dram.mib = 1;
    }
    made.front().preop.lanes = 4;
    return made;
  }();
  return all;
}

std::uint8_t data_at(std::uint64_t address) {
  return static_cast<std::uint8_t>(address * 37 + (address >> 8U));
}

/// Masks are in memory, as the data and the program leave it.
void take_masks(hw::Program& program, const std::vector<std::uint8_t>& image) {
  for (hw::LayerMask& mask : program.masks) {
    for (std::size_t i = 0; i < mask.bytes.size(); ++i) {
      const std::uint64_t at = mask.address + i;
      const std::uint64_t in_program = at - kProgramAddress;
      mask.bytes[i] = at < kDataBytes             ? data_at(at)
                      : in_program < image.size() ? image[in_program]
                                                  : std::uint8_t{0};
    }
  }
}

/// What a host may be called for: its functions are in no memory of the machine. Two of each
/// operator, of which LayerNorms have 8 columns.
std::vector<hw::HostFunction> host_functions() {
  std::vector<hw::HostFunction> functions(2 * std::size_t{hw::kHostOps});
  for (std::size_t i = 0; i < functions.size(); ++i) {
    hw::HostFunction& function = functions[i];
    function.op = static_cast<hw::HostOp>(i % hw::kHostOps);
    if (i >= hw::kHostOps) function.in = function.out = hw::DType::kS8;
    if (function.op == hw::HostOp::kLayerNorm) {
      function.gamma.assign(8, 1.5F);
      function.beta.assign(8, -1.0F);
    }
    if (function.op == hw::HostOp::kRoute) function.active = 2;
    hw::check_host_function(function);
  }
  return functions;
}

/// Multiply-accumulates and elements, roughly.
std::uint64_t work_of(const hw::Program& program) {
  std::uint64_t work = 0;
  for (const hw::Command& command : program.commands) {
    const hw::CommandShape shape = hw::shape_of(command);
    std::uint64_t own = std::max<std::uint64_t>(shape.m, 1);
    for (const std::uint64_t size : {shape.n, shape.k}) {
      own = std::min(own, kMostWork) * std::min(std::max<std::uint64_t>(size, 1), kMostWork);
    }
    work = std::min(work + own, kMostWork * kMostWork);
  }
  return work;
}

}  // namespace

void decode_command(std::string_view bytes) {
  const std::string record = take(bytes, hw::kCommandBytes);
  const hw::Command command =
      hw::decode_command(reinterpret_cast<const std::uint8_t*>(record.data()));
  const std::vector<std::uint8_t> again = hw::encode_commands({command});
  require(std::string(again.begin(), again.end()) == record, "a command has one encoding");
}

void decode_program(std::string_view bytes) {
  const std::vector<std::uint8_t> image = vector_of(bytes);
  const hw::Program program = hw::decode_program(image, "program", kMemoryBytes);
  require(hw::encode_program(program) == image, "a program has one encoding");
}

/// A byte each: heads, queries, keys. Then the mask.
void decode_mask(std::string_view bytes) {
  const std::string sizes = take(bytes, 3);
  const auto size = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<std::uint8_t>(sizes[i])) + 1;
  };
  const std::vector<std::uint8_t> mask = vector_of(bytes);
  const std::vector<hw::SparseHead> heads = hw::decode_mask(mask, size(0), size(1), size(2));
  for (const hw::SparseHead& head : heads) hw::check_sparse_head(head);
  require(hw::encode_mask(heads) == mask, "a mask has one encoding");
}

/// A byte: which format. Then the file.
void read_trace(std::string_view bytes) {
  static const std::array<const char*, 4> kNames = {"t.csv", "t.stl", "t.trace", "t.csv.gz"};
  static const hw::Machine machine = machines().front();
  const auto format = static_cast<std::uint8_t>(take(bytes, 1)[0]);
  const testbench::BusTrace trace =
      testbench::read_bus_trace(file_with(kNames[format % kNames.size()], bytes), machine);
  require(!trace.transactions.empty(), "a trace has transactions");
  std::vector<std::uint64_t> last(trace.initiators.size(), 0);
  for (const tlm_model::BusTransaction& transaction : trace.transactions) {
    const auto within = [&](std::uint64_t begin, std::uint64_t size) {
      return transaction.address >= begin && transaction.address - begin < size &&
             transaction.bytes <= size - (transaction.address - begin);
    };
    require(transaction.bytes > 0 && (within(hw::kDramBase, kMemoryBytes) ||
                                      within(hw::kRegistersBase, hw::kAllRegisterBytes)),
            "a transaction is in memory or in registers");
    require(transaction.asked >= last.at(transaction.initiator),
            "the requests of an initiator are in order");
    last[transaction.initiator] = transaction.asked;
  }
}

/// A byte: which machine. Then the program, which runs on it if the checker takes it, and must come
/// to its end.
void simulate_program(std::string_view bytes) {
  const hw::Machine& machine =
      machines()[static_cast<std::uint8_t>(take(bytes, 1)[0]) % machines().size()];
  const std::vector<std::uint8_t> image = vector_of(bytes);
  hw::Program program = hw::decode_program(image, "program", kMemoryBytes);
  take_masks(program, image);
  program.host_functions = host_functions();
  for (std::size_t i = 0; i < kMostCommands; ++i) {
    program.operators.emplace_back().name = std::to_string(i);
  }
  hw::check_program(program, machine, kMemoryBytes);
  if (program.commands.size() > kMostCommands || work_of(program) > kMostWork) return;

  // A machine takes more than ten times its program.
  const Unmeasured unmeasured;
  std::vector<std::uint8_t> data(kDataBytes);
  for (std::size_t i = 0; i < kDataBytes; ++i) data[i] = data_at(i);
  const hw::MemoryImage memory = {{0, std::move(data)}, {kProgramAddress, image, true}};
  {
    tlm_model::System system("system", machine, tlm_model::make_models(machine), kProgramAddress,
                             memory, program.host_functions, true);
    bool begun = false, delivered = false;
    system.host.set_work([&](tlm_model::Host::Job&) { return !std::exchange(begun, true); },
                         [&](const tlm_model::Host::Job&) { delivered = true; });
    sc_core::sc_start(sc_core::sc_time(10, sc_core::SC_MS));
    require(delivered, "a program that was accepted comes to its end");
  }
  test::fresh_kernel();
}

}  // namespace systole::fuzz
