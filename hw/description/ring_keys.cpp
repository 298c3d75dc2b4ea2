#include <utility>

#include "hw/description/key_table.h"

namespace systole::hw::dfx {
namespace {

using key_table::integer;
using key_table::kChosen;
using key_table::number;
using key_table::power_of_two;
using key_table::Text;
using key_table::word;

constexpr Text kDfx = "DFX";
constexpr Text kHbm2 = "chosen: usual for HBM2; DFX gives 460 GB/s alone";

std::vector<MachineKey> make_keys() {
  constexpr auto kCores = &Machine::dfx;
  constexpr auto kMatrix = &Machine::matrix;
  constexpr auto kVector = &Machine::vector;
  constexpr auto kHbm = &Machine::hbm;
  constexpr auto kRing = &Machine::ring;
  constexpr auto kPcie = &Machine::pcie;

  // clang-format off
  return {
      integer<kCores, &Cores::cores>("dfx.cores", "", 0, 64,
          "cores for text generation, each with its HBM, in a ring; 0: none", "DFX: 1, 2 or 4"),
      integer<kCores, &Cores::clusters>("dfx.clusters", "", 1, 16,
          "rings of dfx.cores each; they share the host's PCIe", "DFX: two of four cores"),
      integer<kCores, &Cores::issue_cycles>("dfx.issue_cycles", "cycles", 0, 100000,
          "of scheduler and scoreboard, once operands are valid and the unit is free",
          "0: ideal; preset dfx: calibrated"),
      word<kCores, &Cores::chaining>("dfx.chaining", {"vector", "instruction"},
          "results pass to the next instruction vector by vector, or whole", kChosen),
      word<kCores, &Cores::heads>("dfx.heads", {"interleaved", "serial"},
          "attention step after step for all heads, or head after head", "chosen; DFX: serial"),
      word<kCores, &Cores::projections>("dfx.projections", {"vkq", "qkv"},
          "order of a layer's first three products", kDfx),
      word<kCores, &Cores::prefill>("dfx.prefill", {"serial", "batched"},
          "tokens of a prompt one by one, or one for each partial sum", kDfx),
      word<kCores, &Cores::parallelism>("dfx.parallelism", {"intra-layer", "pipelined"},
          "each core has a part of every layer, or layers of its own", kDfx),
      word<kCores, &Cores::batching>("dfx.batching", {"serial", "shared"},
          "texts of a batch one after the other, or sharing the weights that are read", kDfx),
      word<kCores, &Cores::lm_head>("dfx.lm_head", {"hbm", "ddr"},
          "memory of the output vocabulary's weights", "assumed: DFX does not say"),
      word<kCores, &Cores::prompt_logits>("dfx.prompt_logits", {"off", "on"},
          "the LM head runs for all tokens of a prompt, not the last alone",
          "off: not needed; preset dfx: a prompt's passes take as long as others"),
      word<kCores, &Cores::last_pass>("dfx.last_pass", {"off", "on"},
          "the last token generated runs through the network too",
          "off: not needed; preset dfx: in + out passes were measured"),
      number<kCores, &Cores::board_watts>("dfx.board_watts", "W", 0, 100000,
          "power of a core's board", "3.99x energy at 3.78x throughput of a 47.5 W GPU"),

      power_of_two<kMatrix, &Matrix::depth>("matrix.depth", "inputs", 16, 128,
          "inputs of an adder tree (d); a tile is depth x lanes", kDfx),
      power_of_two<kMatrix, &Matrix::lanes>("matrix.lanes", "", 1, 128,
          "adder trees, each with an output column (l)", kDfx),
      integer<kMatrix, &Matrix::multiply_cycles>("matrix.multiply_cycles", "cycles", 1, 100,
          "latency of an FP16 multiplier", kDfx),
      integer<kMatrix, &Matrix::add_cycles>("matrix.add_cycles", "cycles", 1, 100,
          "latency of an FP16 adder, in the trees and after them", kDfx),
      integer<kMatrix, &Matrix::partial_sums>("matrix.partial_sums", "", 1, 256,
          "sums that a lane has in work; as many as add_cycles hide the adder",
          "16: hides 11 cycles; preset dfx: 8, double-buffered"),
      integer<kMatrix, &Matrix::function_cycles>("matrix.function_cycles", "cycles", 0, 1000,
          "mask, scale, GELU, vectoriser after the sums", kChosen),
      integer<kMatrix, &Matrix::prefetch_tiles>("matrix.prefetch_tiles", "tiles", 1, 65536,
          "tiles of weights that the DMA fetches ahead", kChosen),
      word<kMatrix, &Matrix::format>("matrix.format", {"fp16", "int8"},
          "weights, and the vectors that they are multiplied with", kDfx),
      power_of_two<kMatrix, &Matrix::int8_products>("matrix.int8_products", "", 1, 8,
          "8-bit products in the place of one in FP16", "chosen: two share a DSP slice"),

      integer<kVector, &Vector::exp_cycles>("vector.exp_cycles", "cycles", 1, 1000,
          "latency of the exponential", kDfx),
      integer<kVector, &Vector::recip_cycles>("vector.recip_cycles", "cycles", 1, 1000,
          "latency of the reciprocal", kChosen),
      integer<kVector, &Vector::recip_sqrt_cycles>("vector.recip_sqrt_cycles", "cycles", 1, 1000,
          "latency of the reciprocal square root", kChosen),
      integer<kVector, &Vector::transpose_cycles>("vector.transpose_cycles", "cycles", 1, 10000,
          "of the DMA's transposer for a vector of V: an element per cycle", kChosen),
      integer<kVector, &Vector::registers>("vector.registers", "vectors", 64, 1048576,
          "register file, in vectors of matrix.depth FP16", kChosen),

      integer<kHbm, &Hbm::mib>("hbm.mib", "MiB", 1, 65536, "size, all channels together", kDfx),
      power_of_two<kHbm, &Hbm::channels>("hbm.channels", "", 1, 256,
          "channels, which work in lock-step", kDfx),
      power_of_two<kHbm, &Hbm::port_bytes>("hbm.port_bytes", "bytes/cycle", 1, 1024,
          "what the core takes from a channel in a cycle", kDfx),
      power_of_two<kHbm, &Hbm::bus_bytes>("hbm.bus_bytes", "bytes", 1, 256,
          "data bus of a channel", "HBM2: pseudo channel of 64 bits"),
      integer<kHbm, &Hbm::mega_transfers>("hbm.mega_transfers", "MT/s", 100, 20000,
          "transfers per second on a channel's data bus", "DFX: 460 GB/s"),
      power_of_two<kHbm, &Hbm::banks>("hbm.banks", "", 4, 256, "banks of a channel", "HBM2"),
      power_of_two<kHbm, &Hbm::row_bytes>("hbm.row_bytes", "bytes", 64, 65536,
          "row buffer of a bank in one channel", "HBM2: 1 KB"),
      number<kHbm, &Hbm::t_rcd_ns>("hbm.t_rcd_ns", "ns", 0.1, 1000,
          "tRCD: activate to column command", kHbm2),
      number<kHbm, &Hbm::t_rp_ns>("hbm.t_rp_ns", "ns", 0.1, 1000,
          "tRP: precharge to activate", kHbm2),
      number<kHbm, &Hbm::t_ras_ns>("hbm.t_ras_ns", "ns", 0.1, 1000,
          "tRAS: activate to precharge", kHbm2),
      number<kHbm, &Hbm::t_cl_ns>("hbm.t_cl_ns", "ns", 0.1, 1000,
          "CL: column command to first data", kHbm2),
      number<kHbm, &Hbm::t_rfc_ns>("hbm.t_rfc_ns", "ns", 0.1, 10000,
          "tRFC: time that a refresh takes", kHbm2),
      number<kHbm, &Hbm::t_refi_ns>("hbm.t_refi_ns", "ns", 0, 1000000,
          "tREFI: interval between refreshes, 0 for none", kHbm2),
      number<kHbm, &Hbm::controller_ns>("hbm.controller_ns", "ns", 0, 10000,
          "controller, switch and PHY, once per request", kChosen),

      number<kRing, &Ring::gbit_per_s>("ring.gbit_per_s", "Gb/s", 0.001, 100000,
          "of a link, in each direction", kDfx),
      number<kRing, &Ring::coding>("ring.coding", "", 0.01, 1,
          "share of a link's bits that carries data", "64b/66b"),
      number<kRing, &Ring::hop_ns>("ring.hop_ns", "ns", 0, 1000000,
          "transceivers and wire: a bit sent to the bit received", "chosen; preset dfx: calibrated"),
      integer<kRing, &Ring::directions>("ring.directions", "", 1, 2,
          "in which a vector travels around the ring", kDfx),
      integer<kRing, &Ring::router_cycles>("ring.router_cycles", "cycles", 0, 10000,
          "from link or core to link or core", kChosen),
      word<kRing, &Ring::sync>("ring.sync", {"overlapped", "blocking"},
          "a core goes on with the parts that have arrived, or waits for all",
          "chosen; preset dfx: blocking"),
      word<kRing, &Ring::collective>("ring.collective", {"all-gather", "all-reduce"},
          "cores exchange columns of products, or parts of their sums", kDfx),

      number<kPcie, &Pcie::gbyte_per_s>("pcie.gbyte_per_s", "GB/s", 0.001, 10000,
          "between host and core", kDfx),
      number<kPcie, &Pcie::latency_ns>("pcie.latency_ns", "ns", 0, 1000000,
          "of one transfer", kChosen),
  };
  // clang-format on
}

}  // namespace

void append_keys(std::vector<MachineKey>& keys) {
  for (MachineKey& key : make_keys()) keys.push_back(std::move(key));
}

}  // namespace systole::hw::dfx
