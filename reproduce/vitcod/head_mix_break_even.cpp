#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <vector>

#include "reproduce/vitcod/vitcod.h"
#include "testbench/attention/attention_simulation.h"
#include "testbench/attention/attention_workload.h"
#include "testbench/common/child_process.h"

namespace systole::testbench {
namespace {

/// DeiT's.
constexpr std::size_t kTokens = 197;
/// Twice DeiT's: a port asks for one row of a head a cycle, and two ports have to fill the bus.
constexpr std::size_t kDim = 128;
constexpr std::uint32_t kBusBytes = 64;

/// Buffers for a layer, a memory that keeps up with any bus, requests enough to hide its latency.
hw::Machine link_machine(hw::Machine machine) {
  constexpr std::uint32_t kKib = 1024;
  machine.scratchpad.kib = machine.accumulator.kib = 8 * kKib;
  hw::Machine::Attention& attention = machine.attention;
  attention.query_kib = attention.key_kib = attention.value_kib = attention.index_kib = kKib;
  machine.dma.outstanding_reads = kKib;
  machine.dma.request_bytes = kDim;
  machine.bus.width_bytes = kBusBytes;
  hw::Machine::Dram& dram = machine.dram;
  dram.channels = 64;
  dram.mega_transfers = 20000;
  dram.t_refi_ns = 0;
  return machine;
}

/// Every query attends to its own key: all rows are needed.
hw::SparseHead diagonal() {
  hw::SparseHead head;
  head.queries = head.keys = kTokens;
  for (std::uint16_t token = 0; token < kTokens; ++token) {
    head.sparse_columns.push_back(token);
    head.column_pointers.push_back(token);
    head.row_indices.push_back(token);
  }
  head.column_pointers.push_back(kTokens);
  return head;
}

double link_cycles(const hw::Machine& machine, std::size_t heads, std::size_t latent_heads) {
  const AttentionWorkload workload =
      make_attention_workload({heads, kTokens, kTokens, kDim, latent_heads},
                              {std::vector<hw::SparseHead>(heads, diagonal())}, machine, false);
  return in_child([&] {
    std::uint64_t link = 0;
    for (const auto& head : simulate_attention(workload, machine, false).heads) {
      link = std::max(link, head.link);
    }
    return static_cast<double>(link);
  });
}

/// Where `value`, which ascends, passes 0 not far from `guess`: between two neighbouring numbers,
/// by a straight line.
double crossing(double guess, const std::function<double(std::uint32_t)>& value) {
  auto low = static_cast<std::uint32_t>(std::max(1.0, guess / 2));
  auto high = static_cast<std::uint32_t>(std::ceil(guess * 2));
  double below = value(low), above = value(high);
  if (below > 0 || above <= 0) throw std::invalid_argument("auto-encoder: no break-even");
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    const double found = value(middle);
    (found > 0 ? high : low) = middle;
    (found > 0 ? above : below) = found;
  }
  return low - below / (above - below);
}

void check(AutoEncoder auto_encoder) {
  if (auto_encoder.latent_heads == 0 || auto_encoder.latent_heads >= auto_encoder.heads) {
    throw std::invalid_argument("auto-encoder: expected fewer latent heads than heads");
  }
}

}  // namespace

BreakEven decoder_break_even(const hw::Machine& machine, AutoEncoder auto_encoder,
                             double bytes_per_cycle) {
  check(auto_encoder);
  const std::size_t heads = auto_encoder.heads, latent_heads = auto_encoder.latent_heads;
  hw::Machine link = link_machine(machine);
  link.bus.clock_mhz =
      static_cast<std::uint32_t>(std::lround(bytes_per_cycle * machine.core.clock_mhz / kBusBytes));
  const double plain = link_cycles(link, heads, 0);
  const double predicted = static_cast<double>(latent_heads) * bytes_per_cycle;
  const std::uint32_t macs = machine.attention.macs_per_line;
  const double lines = crossing(predicted / macs, [&](std::uint32_t decoder_lines) {
    link.attention.decoder_lines = decoder_lines;
    return plain - link_cycles(link, heads, latent_heads);
  });
  return {auto_encoder, bytes_per_cycle, lines * macs, predicted};
}

BreakEven array_break_even(const hw::Machine& machine, AutoEncoder auto_encoder) {
  check(auto_encoder);
  const std::size_t heads = auto_encoder.heads, latent_heads = auto_encoder.latent_heads;
  hw::Machine link = link_machine(machine);
  link.attention.decoder_lines = 0;
  const double macs = machine.attention.lines * machine.attention.macs_per_line;
  const double predicted =
      macs * static_cast<double>(heads - latent_heads) / static_cast<double>(heads * latent_heads);
  const double mhz_of_byte = static_cast<double>(machine.core.clock_mhz) / kBusBytes;
  const double mhz = crossing(predicted * mhz_of_byte, [&](std::uint32_t bus_mhz) {
    link.bus.clock_mhz = bus_mhz;
    return link_cycles(link, heads, latent_heads) - link_cycles(link, heads, 0);
  });
  return {auto_encoder, mhz / mhz_of_byte, macs, predicted};
}

}  // namespace systole::testbench
