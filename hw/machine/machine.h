#pragma once

#include <cstdint>
#include <string>

#include "hw/machine/parameters.h"
#include "hw/number/dyadic.h"
#include "hw/number/softmax_mode.h"

/// What a user may choose about a machine. Plain data with the defaults in one place: the key table
/// in hw/description/machine_keys.cpp adds unit, range and meaning to every field, and everything
/// that reads, checks, prints or documents a machine goes through that table.
namespace systole::hw {

// The key table names the values of each enumeration in the order of their declaration.

enum class Dataflow { kWeightStationary, kOutputStationary };

/// How much of a fold's weight preload and pipeline drain overlaps with its neighbours
/// (hw/array/array.h). The choice alone moves published cycle counts of one GEMM by up to 3.8x, so
/// it is explicit.
enum class ArrayOverlap { kNone, kPreload, kFull };

/// Into what the multiplier of a PE splits (hw/array/array.h): nothing; two of int8 by int4, which
/// multiply a pair of int4 weights in a cycle; or four of int4 by int4 as well.
enum class ArraySplit { kNone, kWeights, kBoth };

/// How the lines of the sparser attention engine share its K columns in the SDDMM: each line holds
/// its own column, the longest placed first; or all hold the same and share its kept queries.
enum class SparserMapping { kColumnPerLine, kBroadcast };

/// Whether the attention engines do the SDDMM of as many heads as there is room for before the SpMM
/// of the first, or head after head (hw/attention/timing/attention_batches.h).
enum class AttentionOrder { kPhase, kHead };

/// Which operators the mapper lets run with another in one pass (mapper/fuse/fusion.h).
enum class FusionLevel {
  kAll,      ///< whatever the chain can do
  kLibrary,  ///< as Gemmini's library: all but LayerNorm and residual additions
  kNone,     ///< biases and requantisations alone
  kPost,     ///< whatever the chain after an anchor can do, none before it
  kOff,      ///< every operator is a pass; what rounds its result to its type belongs to it
};

/// Which request's end frees the slot of a DMA port that the next request takes: the oldest one's,
/// or whichever comes first.
enum class SlotOrder { kIssue, kCompletion };

/// What a memory on chip stores with its words against flipped bits (hw/memory/word_code.h).
enum class Protection { kNone, kParity, kSecded };

/// Main memory: DDR4 devices with banks and rows, or one of stated latency.
enum class MemoryModel { kDram, kFixed };

/// Which line of a full set of a cache makes room.
enum class Replacement { kLru, kRandom };

/// What an attention accelerator is that finds its mask while it runs (hw/dynamic).
enum class DynamicKind { kNone, kSanger, kSpatten };

/// What a top-k machine prunes: each query's values, or tokens from layer to layer.
enum class DynamicPruning { kValues, kTokens };

/// Whether the attention engines' lines mix the heads of Q and K (hw/attention/head_mix.h), or the
/// array does by products: layer by layer what is expected to be faster, or one of them always.
enum class HeadMixUse { kAuto, kOn, kOff };

/// How the mapper chooses tiles (mapper/tile/tiling_strategies.h): by its cost model, as the
/// library of Gemmini does, or by a search.
enum class MappingStrategy { kCost, kGemmini, kSearch };

/// What a search minimises: cycles, joules, or their product.
enum class MappingObjective { kCycles, kEnergy, kEdp };

/// What the host computes for the core: nothing, or in float32 what a machine for matmuls alone
/// leaves to software (hw/host/host_function.h): softmax, GELU, LayerNorm, sums of two tensors.
enum class HostOperators { kNone, kFloat, kRouting };

/// Where a block's values and cycles come from: its C++ model or its Verilated twin in rtl/.
enum class Backend { kModel, kRtl };

struct Machine {
  std::string name = "custom";

  struct Core {
    std::uint32_t clock_mhz = 1000;
    std::uint32_t load_queue = 8;  ///< reservation-station entries per class: Gemmini's 8, 16, 4
    std::uint32_t compute_queue = 16;
    std::uint32_t store_queue = 4;
    std::uint32_t fetch_commands = 16;  ///< commands that one instruction fetch brings
    std::uint32_t chain_slots = 16;     ///< chains whose micro-code the core holds
    std::uint32_t call_cycles = 0;      ///< of the host, before the first command of a library call
    std::uint32_t loop_cycles = 0;      ///< of the host, before the first command of a loop
  } core;

  struct Array {
    std::uint32_t rows = 16;
    std::uint32_t cols = 16;
    Dataflow dataflow = Dataflow::kWeightStationary;
    ArrayOverlap overlap = ArrayOverlap::kFull;
    ArraySplit split = ArraySplit::kNone;
  } array;

  struct Sram {
    std::uint32_t kib;
    std::uint32_t banks;
    std::uint32_t ports;
    Protection protection = Protection::kNone;

    [[nodiscard]] constexpr std::uint64_t bank_bytes() const {
      return std::uint64_t{kib} * 1024 / banks;
    }
  };
  Sram scratchpad{256, 4, 1};

  struct Accumulator {
    std::uint32_t kib = 64;
    std::uint32_t banks = 2;
    std::uint32_t ports = 2;  ///< of each memory, at least one to read and one to write
    Protection protection = Protection::kNone;
    /// Of a bank: rows near each other are in different ones (hw/array/sum_ports.h).
    std::uint32_t memories = 1;

    [[nodiscard]] constexpr Sram sram() const { return {kib, banks, ports, protection}; }
    [[nodiscard]] constexpr std::uint64_t bank_bytes() const { return sram().bank_bytes(); }
  } accumulator;

  struct Postop {
    std::uint32_t lanes = 16;
    std::uint32_t max_stages = 8;
    std::uint32_t row_statistics = 1024;  ///< words of row sums, maxima, sums of squares
    std::uint32_t tensor_operands = 2;    ///< of one chain: operand ports
    std::uint32_t operand_kib = 64;       ///< room for rows of a chain's tensor operands
    /// Units that the lanes have: 0 or 1.
    std::uint32_t gelu = 1, exponential = 1, norm = 1, rope = 1, transposer = 1, divider = 0;
  } postop;

  /// The same stages between memory and scratchpad or accumulator, before an anchor.
  struct Preop {
    std::uint32_t lanes = 0;  ///< 0: loads have no stages
  } preop;

  struct Datapath {
    std::uint32_t multiplier_bits = 16;
    Rounding rounding = Rounding::kHalfUp;
    std::uint32_t residual_bits = 16;
    SoftmaxMode softmax = SoftmaxMode::kDeferred;
    std::uint32_t softmax_bits = 8;
  } datapath;

  /// Attention engines for fixed sparse masks (ViTCoD, HPCA 2023). They are the MACs of the array
  /// at another task, and their buffers are in the scratchpad and the accumulator: queries, keys,
  /// values and indices in the one, scores and outputs in the other.
  struct Attention {
    std::uint32_t lines = 0;          ///< MAC lines of both engines together; 0: no engines
    std::uint32_t macs_per_line = 8;  ///< lines x macs_per_line is the array's number of MACs
    SparserMapping mapping = SparserMapping::kColumnPerLine;
    AttentionOrder order = AttentionOrder::kPhase;
    std::uint32_t line_rows = 4;       ///< operand rows that a line holds ahead of its MACs
    std::uint32_t softmax_lanes = 8;   ///< exponentials per cycle: as many as 64 lines give scores
    std::uint32_t dividers = 16;       ///< serial, of the outputs' rows
    std::uint32_t decoder_lines = 16;  ///< of macs_per_line MACs; 0: the array decodes
    std::uint32_t query_kib = 53, key_kib = 53, value_kib = 53, index_kib = 20;
    std::uint32_t banks = 64;          ///< of each buffer
    std::uint32_t ports = 1;           ///< of each bank, macs_per_line bytes wide
    std::uint32_t encoder_lines = 16;  ///< of macs_per_line MACs after the post-op chain; 0: none

    /// Whether results can be encoded as they leave (hw/attention/head_mix.h).
    [[nodiscard]] bool encodes() const { return lines != 0 && encoder_lines != 0; }
  } attention;

  struct Dma {
    std::uint32_t request_bytes = 64;
    std::uint32_t outstanding_reads = 16;
    std::uint32_t outstanding_writes = 16;
    SlotOrder slots = SlotOrder::kIssue;
    std::uint32_t row_bytes = 0;  ///< a longer row of a tile moves in such pieces; 0: as a whole
    /// Of the load unit's expander of weights in groups (hw/number/weight_groups.h); 0: none,
    /// and weights reside as eight bits.
    std::uint32_t expander_lanes = 0;
  } dma;

  /// A loop unroller before the reservation station, and controllers after it, as Gemmini has them
  /// (hw/loop/loop_core.h). The station has core.load_queue, compute_queue and store_queue entries.
  struct Unroller {
    std::uint32_t loops = 0;           ///< in flight: 2; 0: the core has none
    std::uint32_t command_cycles = 4;  ///< of the host, from one command to the next
    std::uint32_t load_queue = 8;      ///< commands that wait at a controller
    std::uint32_t compute_queue = 8;
    std::uint32_t store_queue = 2;
    std::uint32_t read_stages = 4;   ///< of a bank of the scratchpad, after the cycle of the read
    std::uint32_t scale_stages = 8;  ///< of the pipeline between accumulator and memory
  } unroller;

  /// A streaming attention core, as ITA is (hw/stream/stream_core.h), in the place of the tile
  /// machine's core.
  struct Stream {
    std::uint32_t units = 0;    ///< dot products a cycle; 0: a tile machine
    std::uint32_t length = 64;  ///< elements of a dot product
    std::uint32_t depth = 11;   ///< cycles from an input beat to its result
    std::uint32_t weight_bytes = 16;
    std::uint32_t output_queue = 12;
    std::uint32_t softmax_queue = 12;
    std::uint32_t dividers = 10;
    std::uint32_t longest = 512;  ///< rows and columns of an operand
  } stream;

  /// An attention accelerator that finds its mask while it runs, in the place of the tile machine's
  /// core: Sanger's array (hw/dynamic/sanger_core.h) or SpAtten's (hw/dynamic/spatten_core.h), at
  /// core.clock_mhz.
  struct Dynamic {
    DynamicKind kind = DynamicKind::kNone;
    std::uint32_t rows = 64;  ///< of Sanger's array
    std::uint32_t row_pes = 16;
    std::uint32_t tile_keys = 64;
    bool own_predictor = true;
    bool common_phases = false;
    std::uint32_t key_macs = 512;  ///< of SpAtten
    std::uint32_t value_macs = 512;
    std::uint32_t top_k_lanes = 16;
    DynamicPruning prunes = DynamicPruning::kValues;
    double element_bytes = 1.0;  ///< of Q, K, V and outputs
    double gbyte_per_s = 128.0;  ///< of the memory, always at its peak
  } dynamic;

  /// Address translation of the load and store units: a register for the last page in each port,
  /// after them a table that they share. A miss in both walks the page table in memory.
  struct Tlb {
    std::uint32_t entries = 0;  ///< of the shared table; 0: addresses are physical
    std::uint32_t page_bytes = 4096;
    std::uint32_t second_entries = 0;  ///< of a direct-mapped second-level table; 0: none
    std::uint32_t hit_cycles = 1;   ///< core cycles that an answer of the shared table takes more
    std::uint32_t miss_cycles = 0;  ///< until the second table has answered, or a walk begins
    std::uint32_t walk_reads = 1;   ///< reads of memory, one after the other, that a walk takes
  } tlb;

  struct Bus {
    std::uint32_t clock_mhz = 1000;
    std::uint32_t width_bytes = 16;
    std::uint32_t request_latency = 4;   ///< bus cycles from initiator to target
    std::uint32_t response_latency = 4;  ///< and back
  } bus;

  /// A mesh of routers in the place of the bus's channels (hw/noc/mesh.h), at the bus's clock. The
  /// keys of the bus are then those of what is at a node: its wires to the router and its
  /// latencies.
  struct Noc {
    std::uint32_t columns = 0;  ///< 0: none, the bus
    std::uint32_t rows = 1;
    std::uint32_t hop_cycles = 2;    ///< of a head: through a router and over a link
    std::uint32_t link_bytes = 16;   ///< what a link between routers moves in a cycle
    std::uint32_t header_bytes = 8;  ///< of a packet, before its data
    std::uint32_t node = 0;          ///< of the core; of several, the others are at those after it
  } noc;

  /// The cache between bus and DRAM; its clock is the bus's.
  struct L2 {
    std::uint32_t kib = 0;  ///< 0: none
    std::uint32_t ways = 8;
    std::uint32_t line_bytes = 64;
    std::uint32_t banks = 4;
    std::uint32_t bank_bytes = 16;  ///< what a bank moves in a cycle
    std::uint32_t hit_latency = 10;
    std::uint32_t mshrs = 16;  ///< misses in flight
    Replacement replacement = Replacement::kLru;
  } l2;

  /// One rank of eight 8 Gb x8 devices per channel, DDR4-2400 speed bin T (CL-nRCD-nRP 17-17-17),
  /// values of JESD79-4 for a 1 KB page: 1200 MHz clock, tCK 0.833 ns, so 17 tCK = 14.16 ns,
  /// CWL 12 tCK = 10 ns. `mib` is the part of the rank that is in use. tCCD_S is the data bus time
  /// of a burst, burst_length / 2 clocks, and follows from burst_length and mega_transfers.
  struct Dram {
    std::uint32_t mib = 1024;  ///< of all channels together
    std::uint32_t channels = 1;
    std::uint32_t banks = 16;  ///< of a channel, in all bank groups together
    std::uint32_t bank_groups = 4;
    std::uint32_t row_bytes = 8192;  ///< row buffer of a bank, all devices of the rank together
    std::uint32_t mega_transfers = 2400;
    std::uint32_t bus_bytes = 8;
    std::uint32_t burst_length = 8;
    double t_cl_ns = 14.16;
    double t_cwl_ns = 10.0;
    double t_rcd_ns = 14.16;
    double t_rp_ns = 14.16;
    double t_ras_ns = 32.0;
    double t_rtp_ns = 7.5;
    double t_wr_ns = 15.0;
    double t_wtr_ns = 7.5;    ///< tWTR_L, used for every bank
    double t_ccd_l_ns = 5.0;  ///< bursts within one bank group
    double t_rrd_s_ns = 3.33;
    double t_rrd_l_ns = 4.9;
    double t_faw_ns = 21.0;
    double t_rfc_ns = 350.0;
    double t_refi_ns = 7800.0;
    double controller_ns = 20.0;  ///< front-end and PHY, once per request
    // Of each channel:
    std::uint32_t write_queue = 64;         ///< bursts of writes that wait; 0: none does
    std::uint32_t write_high_percent = 85;  ///< of them, from which on writes have to move
    std::uint32_t write_low_percent = 50;   ///< ... and until when
  } dram;

  struct Memory {
    MemoryModel model = MemoryModel::kDram;
    std::uint32_t latency = 40;
    std::uint32_t read_beat_cycles = 1;
    std::uint32_t queue = 64;
  } memory;

  struct Mapper {
    FusionLevel fusion = FusionLevel::kAll;
    MappingStrategy strategy = MappingStrategy::kCost;
    MappingObjective objective = MappingObjective::kCycles;
    std::uint32_t on_chip = 1;  ///< 1: results may stay in the scratchpad
    HeadMixUse head_mix = HeadMixUse::kAuto;
  } mapper;

  struct Host {
    std::uint32_t mmio_ns = 100;
    std::uint32_t interrupt_ns = 500;
    HostOperators operators = HostOperators::kNone;
    std::uint32_t clock_mhz = 1000;
    std::uint32_t outstanding = 1;  ///< cache lines in flight: an in-order core, a blocking cache
    /// Cycles per element (hw/host/host_cycles.h), not measured but fitted: they give a BERT-Base
    /// layer of 512 tokens the 787 Mcycle that the survey's 39.6x implies, in the shares of its
    /// Fig. 14.
    double softmax_cycles = 47.5;
    double gelu_cycles = 50.0;
    double layernorm_cycles = 40.0;
    double add_cycles = 110.0;
    double convert_cycles = 28.8;  ///< an integer to float32, or back
    double route_cycles = 100.0;   ///< not fitted: there is no figure
  } host;

  /// Energy per event at 45 nm. Arithmetic and DRAM follow from the survey's Fig. 15 (after
  /// Horowitz, ISSCC 2014): 8-bit multiply 0.2 pJ, 32-bit multiply 3.1, 32-bit add 0.1, 32 bits
  /// read from DRAM 640. A byte costs a quarter of 32 bits, a write as much as a read. A memory on
  /// chip costs what its size says (hw/silicon/sram.h) unless a figure is given.
  struct Energy {
    double mac_pj = 0.3;               ///< 8-bit multiply + 32-bit add: 0.2 + 0.1
    double mac_int4_pj = 0.0;          ///< int8 by int4; 0: half of mac_pj
    double mac_int4_int4_pj = 0.0;     ///< int4 by int4; 0: a quarter of mac_pj
    double postop_pj = 3.3;            ///< 32-bit multiply + two 32-bit adds: 3.1 + 2 x 0.1
    double scratchpad_byte_pj = 0.0;   ///< 0: by size
    double accumulator_byte_pj = 0.0;  ///< 0: by size
    double l2_byte_pj = 0.0;           ///< 0: by size
    double bus_byte_pj = 1.0;          ///< assumed; Fig. 15 has no wire
    double noc_byte_hop_pj = 0.0;      ///< no figure at 45 nm
    double dram_byte_pj = 160.0;       ///< 640 / 4
    double host_cycle_pj = 70.0;  ///< not in Fig. 15: an instruction of an in-order core (Horowitz)
    double leakage_mw = 0.0;      ///< 0: by area
    double logic_leakage_mw_mm2 = 21.8;  ///< 17.39 nW / 0.798 um2 of NAND2_X1
    double sram_leakage_mw_mm2 = 47.6;   ///< 0.823 mW / 0.0173 mm2 of fakeram45_512x64
  } energy;

  /// Area at 45 nm, by what a block has most of (hw/silicon/area.h). Logic is this project's RTL
  /// in the cells of the Nangate 45 nm library (`make -f Makefile.verilator synth`).
  struct Area {
    double pe_um2 = 1487.0;
    double split_pe_um2 = 1704.0;
    double int4_pe_um2 = 2204.0;  ///< pe_um2 times 34232 / 23101 of a synthesis of both arrays
    double sum_um2 = 1499.0;
    double stage_um2 = 13182.0;
    double gelu_um2 = 27571.0;
    double softmax_um2 = 35400.0;
    double norm_um2 = 27573.0;
    double divider_um2 = 28480.0;  ///< 16 stages, each a serial divider of two bits a cycle
    double mix_um2 = 18758.0;
    double mac_um2 = 419.0;        ///< survey Fig. 15: 8-bit multiplier 282 + 32-bit adder 137
    double latch_um2 = 2.66;       ///< a bit; DLH_X1
    double scratchpad_mm2 = 0.0;   ///< 0: by size
    double accumulator_mm2 = 0.0;  ///< 0: by size
    double l2_mm2 = 0.0;           ///< 0: by size
    double rest_mm2 = 0.0;         ///< what has no model: control, DMA, bus
  } area;

  /// Cores for text generation, each with its own HBM and `dram` beside it.
  dfx::Cores dfx;
  dfx::Matrix matrix;
  dfx::Vector vector;
  dfx::Hbm hbm;
  dfx::Ring ring;
  dfx::Pcie pcie;

  /// Lanes of the post-op unit that get sums in a cycle; others stand idle. Beside stationary
  /// weights half of the ports of each memory of a bank are for reads, of a row each.
  [[nodiscard]] constexpr std::uint32_t result_lanes() const {
    if (array.dataflow != Dataflow::kWeightStationary) return postop.lanes;
    const std::uint32_t sums = array.cols * accumulator.memories * (accumulator.ports / 2);
    return postop.lanes < sums ? postop.lanes : sums;
  }

  /// The blocks that have a twin in rtl/.
  struct Backends {
    Backend systolic_array = Backend::kModel;
    Backend accumulator_sram = Backend::kModel;
    Backend requantizer = Backend::kModel;
    Backend divider = Backend::kModel;
    Backend i_exp = Backend::kModel;
    Backend i_gelu = Backend::kModel;
    Backend softmax_unit = Backend::kModel;
    Backend i_sqrt = Backend::kModel;
    Backend layernorm_unit = Backend::kModel;
    Backend postop_pipeline = Backend::kModel;
    Backend sparser_line = Backend::kModel;
    Backend denser_line = Backend::kModel;
    Backend attention_softmax = Backend::kModel;
    Backend head_mix_line = Backend::kModel;
    Backend fp16_mul = Backend::kModel;
    Backend fp16_add = Backend::kModel;
    Backend mpu_tree = Backend::kModel;
    Backend ring_router = Backend::kModel;
  } backend;
};

}  // namespace systole::hw
