#include "hw/description/machine_keys.h"

#include <algorithm>

#include "hw/description/key_table.h"

namespace systole::hw {
namespace {

using key_table::append_cost_keys;
using key_table::append_dynamic_keys;
using key_table::append_memory_keys;
using key_table::integer;
using key_table::kChosen;
using key_table::key;
using key_table::Kind;
using key_table::number;
using key_table::power_of_two;
using key_table::Text;
using key_table::word;

constexpr Text kGemmini = "Gemmini";
constexpr Text kIta = "ITA";
constexpr Text kFitted = "fitted to the survey's Fig. 14 and 39.6x";

using Core = Machine::Core;
using Array = Machine::Array;
using Attention = Machine::Attention;
using Accumulator = Machine::Accumulator;
using Sram = Machine::Sram;
using Postop = Machine::Postop;
using Datapath = Machine::Datapath;
using Dma = Machine::Dma;
using Stream = Machine::Stream;
using Unroller = Machine::Unroller;
using Tlb = Machine::Tlb;
using Mapper = Machine::Mapper;
using Host = Machine::Host;
using Backends = Machine::Backends;

template <auto kMember>
MachineKey backend(Text path) {
  return word<&Machine::backend, kMember>(
      path, {"model", "rtl"}, "source of the block's values and cycles: C++ or Verilated RTL",
      kChosen);
}

template <auto kMember>
MachineKey unit(Text path, Text meaning) {
  return integer<&Machine::postop, kMember>(path, "", 0, 1, meaning, kChosen);
}

// The upper bounds are sane maxima: every size in bytes or elements fits 32 bits (DRAM: 64), every
// time in picoseconds 64 bits, with room for the sums and products that the models form of them.
std::vector<MachineKey> make_core_keys() {
  constexpr auto kCore = &Machine::core;
  constexpr auto kArray = &Machine::array;
  constexpr auto kScratchpad = &Machine::scratchpad;
  constexpr auto kAccumulator = &Machine::accumulator;
  constexpr auto kPostop = &Machine::postop;
  constexpr auto kDatapath = &Machine::datapath;
  constexpr auto kAttention = &Machine::attention;
  constexpr auto kDma = &Machine::dma;
  constexpr auto kUnroller = &Machine::unroller;
  constexpr auto kStream = &Machine::stream;
  constexpr auto kTlb = &Machine::tlb;

  // clang-format off
  return {
      key<&Machine::name>(Kind::kName, "name", "characters", 1, 64,
          "name of the machine in reports", kChosen),

      integer<kCore, &Core::clock_mhz>("core.clock_mhz", "MHz", 1, 10000,
          "clock of everything inside a core", "survey Sec. 3.3"),
      integer<kCore, &Core::load_queue>("core.load_queue", "commands", 1, 256,
          "load commands waiting or running", kGemmini),
      integer<kCore, &Core::compute_queue>("core.compute_queue", "commands", 1, 256,
          "matmul commands waiting or running", kGemmini),
      integer<kCore, &Core::store_queue>("core.store_queue", "commands", 1, 256,
          "store and move commands waiting or running", kGemmini),
      integer<kCore, &Core::fetch_commands>("core.fetch_commands", "commands", 1, 1024,
          "commands that one instruction fetch brings", kChosen),
      power_of_two<kCore, &Core::chain_slots>("core.chain_slots", "chains", 8, 4096,
          "chains that the core holds, chain i in slot i modulo this", kChosen),
      integer<kCore, &Core::call_cycles>("core.call_cycles", "cycles", 0, 1000000,
          "of the host, between the end of a library call and the next one",
          "0: a program has none"),
      integer<kCore, &Core::loop_cycles>("core.loop_cycles", "cycles", 0, 1000000,
          "of the host, before the first command of each loop that it configures",
          "0: a program has none"),

      power_of_two<kArray, &Array::rows>("array.rows", "PEs", 1, 256,
          "height of the systolic array", kGemmini),
      power_of_two<kArray, &Array::cols>("array.cols", "PEs", 1, 256,
          "width of the systolic array", kGemmini),
      word<kArray, &Array::dataflow>("array.dataflow", {"weight-stationary", "output-stationary"},
          "operand that stays in the array", kGemmini),
      word<kArray, &Array::overlap>("array.overlap", {"none", "preload", "full"},
          "how much of preload and drain overlaps with the neighbouring fold", kGemmini),
      word<kArray, &Array::split>("array.split", {"none", "weights", "both"},
          "a PE's multiplier: whole, in parts for int4 weights, or for int4 by int4", kChosen),

      integer<kScratchpad, &Sram::kib>("scratchpad.kib", "KiB", 1, 65536,
          "size of the operand memory", kGemmini),
      power_of_two<kScratchpad, &Sram::banks>("scratchpad.banks", "", 1, 64,
          "banks that are accessed independently", kGemmini),
      integer<kScratchpad, &Sram::ports>("scratchpad.ports", "", 1, 4,
          "accesses per bank and cycle", kGemmini),
      word<kScratchpad, &Sram::protection>("scratchpad.protection", {"none", "parity", "secded"},
          "code against flipped bits: of each byte, or of each 8 bytes", kGemmini),

      integer<kAccumulator, &Accumulator::kib>("accumulator.kib", "KiB", 1, 65536,
          "size of the int32 result memory", kGemmini),
      power_of_two<kAccumulator, &Accumulator::banks>("accumulator.banks", "", 1, 64,
          "banks that are accessed independently", kGemmini),
      integer<kAccumulator, &Accumulator::ports>("accumulator.ports", "", 2, 4,
          "accesses per memory and cycle", kGemmini),
      power_of_two<kAccumulator, &Accumulator::memories>("accumulator.memories", "", 1, 4,
          "memories of a bank, over which its rows are spread", kChosen),
      word<kAccumulator, &Accumulator::protection>("accumulator.protection",
          {"none", "parity", "secded"},
          "code against flipped bits, of each sum", kGemmini),

      power_of_two<kPostop, &Postop::lanes>("postop.lanes", "elements/cycle", 1, 256,
          "width of the post-op chain", kGemmini),
      integer<kPostop, &Postop::max_stages>("postop.max_stages", "stages", 1, 32,
          "longest chain", kChosen),
      integer<kPostop, &Postop::row_statistics>("postop.row_statistics", "words", 1, 65536,
          "row sums and maxima that chains leave for others: 1 word a row, 4 for a norm", kChosen),
      integer<kPostop, &Postop::tensor_operands>("postop.tensor_operands", "operands", 1, 8,
          "tensors that stream into one chain", kChosen),
      integer<kPostop, &Postop::operand_kib>("postop.operand_kib", "KiB", 1, 65536,
          "room for 16 rows of a chain's tensor operands; another before the anchor",
          kChosen),
      unit<&Postop::gelu>("postop.gelu", "1: the lanes have a GELU unit"),
      unit<&Postop::exponential>("postop.exponential",
          "1: the lanes have an exponential and a divider (softmax, exp, SiLU, tanh)"),
      unit<&Postop::norm>("postop.norm", "1: there are the units of LayerNorm and RMSNorm"),
      unit<&Postop::rope>("postop.rope", "1: neighbouring lanes can rotate (RoPE)"),
      unit<&Postop::transposer>("postop.transposer", "1: results can be written transposed"),
      unit<&Postop::divider>("postop.divider",
          "1: the lanes have a divider of 32 bits (divide)"),

      integer<&Machine::preop, &Machine::Preop::lanes>("preop.lanes", "elements/cycle", 0, 256,
          "width of the stages between memory and the anchor; 0: none", kChosen),

      integer<kDatapath, &Datapath::multiplier_bits>("datapath.multiplier_bits", "bits", 8, 31,
          "multiplier of the dyadic requantisation", "measured accuracy; I-BERT has 31"),
      word<kDatapath, &Datapath::rounding>("datapath.rounding", {"half-up", "half-even", "floor"},
          "rounding of the requantisation", "cheapest in gates; I-BERT rounds half to even"),
      integer<kDatapath, &Datapath::residual_bits>("datapath.residual_bits", "bits", 8, 24,
          "residual stream and LayerNorm input", "measured accuracy; I-BERT has 22"),
      word<kDatapath, &Datapath::softmax>("datapath.softmax",
          {"deferred", "ibert-floor", "ibert-round"},
          "division after P.V, or I-BERT's softmax, floored or rounded", "measured accuracy"),
      integer<kDatapath, &Datapath::softmax_bits>("datapath.softmax_bits", "bits", 4, 8,
          "unsigned softmax operand of P.V", "I-BERT"),

      integer<kAttention, &Attention::lines>("attention.lines", "lines", 0, 1024,
          "MAC lines of the sparse attention engines; 0: none", "ViTCoD: 64"),
      integer<kAttention, &Attention::macs_per_line>("attention.macs_per_line", "MACs", 1, 256,
          "lines x MACs are those of the array", "ViTCoD"),
      word<kAttention, &Attention::mapping>("attention.mapping", {"column-per-line", "broadcast"},
          "how the sparser engine's lines share K columns", "ViTCoD leaves it open"),
      word<kAttention, &Attention::order>("attention.order", {"phase", "head"},
          "SDDMM of many heads before their SpMM, or head after head",
          "ViTCoD: by phase"),
      integer<kAttention, &Attention::line_rows>("attention.line_rows", "rows", 1, 64,
          "operand rows that a line holds ahead of its MACs", kChosen),
      integer<kAttention, &Attention::softmax_lanes>("attention.softmax_lanes", "elements/cycle",
          1, 256, "width of the engines' softmax", "scores per cycle of 64 lines"),
      integer<kAttention, &Attention::dividers>("attention.dividers", "", 1, 256,
          "serial dividers of the engines' output path, a row each",
          "chosen: DeiT-Tiny's outputs leave as fast as its SpMM forms them"),
      integer<kAttention, &Attention::decoder_lines>("attention.decoder_lines", "lines", 0, 1024,
          "MAC lines that decode Q and K as they are loaded; 0: those of the engines",
          "chosen: the paper does not say"),
      integer<kAttention, &Attention::query_kib>("attention.query_kib", "KiB", 1, 65536,
          "part of the scratchpad that buffers Q", "ViTCoD"),
      integer<kAttention, &Attention::key_kib>("attention.key_kib", "KiB", 1, 65536,
          "part of the scratchpad that buffers K", "ViTCoD"),
      integer<kAttention, &Attention::value_kib>("attention.value_kib", "KiB", 1, 65536,
          "part of the scratchpad that buffers V", "ViTCoD"),
      integer<kAttention, &Attention::index_kib>("attention.index_kib", "KiB", 1, 65536,
          "part of the scratchpad that buffers the mask", "ViTCoD"),
      power_of_two<kAttention, &Attention::banks>("attention.banks", "", 1, 256,
          "banks of each of these buffers", kChosen),
      integer<kAttention, &Attention::ports>("attention.ports", "", 1, 4,
          "accesses of macs_per_line bytes per bank and cycle", kChosen),
      integer<kAttention, &Attention::encoder_lines>("attention.encoder_lines", "lines", 0, 1024,
          "MAC lines that encode Q and K as they are stored; 0: none", "chosen: the paper does not say"),

      power_of_two<kDma, &Dma::request_bytes>("dma.request_bytes", "bytes", 16, 4096,
          "largest bus request; requests are aligned to it", kGemmini),
      integer<kDma, &Dma::outstanding_reads>("dma.outstanding_reads", "requests", 1, 1024,
          "reads in flight", kGemmini),
      integer<kDma, &Dma::outstanding_writes>("dma.outstanding_writes", "requests", 1, 1024,
          "writes in flight", kGemmini),
      word<kDma, &Dma::slots>("dma.slots", {"issue", "completion"},
          "requests give back their slots in order of issue, or as they end",
          "chosen; Gemmini: completion"),
      integer<kDma, &Dma::row_bytes>("dma.row_bytes", "bytes", 0, 65536,
          "a longer row of a tile moves in pieces of this size; 0: as a whole",
          "chosen; Gemmini: 64"),
      integer<kDma, &Dma::expander_lanes>("dma.expander_lanes", "weights/cycle", 0, 256,
          "width of the expander of weights in groups; 0: they reside as int8", kChosen),

      integer<kUnroller, &Unroller::loops>("unroller.loops", "loops", 0, 2,
          "in flight in the loop unroller; 0: none, the core fetches its program",
          "chosen; Gemmini: 2"),
      integer<kUnroller, &Unroller::command_cycles>("unroller.command_cycles", "cycles", 1, 100000,
          "of the host, from one command that it sends to the next", kChosen),
      integer<kUnroller, &Unroller::load_queue>("unroller.load_queue", "commands", 1, 32,
          "that wait at the load controller", kGemmini),
      integer<kUnroller, &Unroller::compute_queue>("unroller.compute_queue", "commands", 3, 32,
          "that wait at the execute controller", kGemmini),
      integer<kUnroller, &Unroller::store_queue>("unroller.store_queue", "commands", 1, 32,
          "that wait at the store controller", kGemmini),
      integer<kUnroller, &Unroller::read_stages>("unroller.read_stages", "cycles", 1, 7,
          "that a row takes from its scratchpad bank to the array, after the read", kGemmini),
      integer<kUnroller, &Unroller::scale_stages>("unroller.scale_stages", "cycles", 1, 64,
          "of the scaling pipeline between accumulator and memory", kGemmini),

      integer<kStream, &Stream::units>("stream.units", "dot products", 0, 1024,
          "a cycle, of a streaming attention core; 0: a tile machine", "chosen; ITA: 16"),
      power_of_two<kStream, &Stream::length>("stream.length", "elements", 16, 1024,
          "of a dot product, and rows and columns of a tile", kIta),
      integer<kStream, &Stream::depth>("stream.depth", "cycles", 10, 1024,
          "from an input beat to its results: the adder tree and what follows it", kIta),
      power_of_two<kStream, &Stream::weight_bytes>("stream.weight_bytes", "bytes", 1, 4096,
          "of weights that arrive in a cycle", kIta),
      integer<kStream, &Stream::output_queue>("stream.output_queue", "beats", 1, 4096,
          "of results under way", kIta),
      integer<kStream, &Stream::softmax_queue>("stream.softmax_queue", "rows", 1, 4096,
          "whose sums wait for a divider, or are on their way there", kIta),
      integer<kStream, &Stream::dividers>("stream.dividers", "", 1, 64,
          "one quotient bit a cycle each", kIta),
      integer<kStream, &Stream::longest>("stream.longest", "elements", 16, 2032,
          "rows and columns of an operand at most", kIta),

      integer<kTlb, &Tlb::entries>("tlb.entries", "", 0, 1024,
          "pages in the table that load and store unit share; 0: addresses are physical",
          "chosen; Gemmini: 4"),
      power_of_two<kTlb, &Tlb::page_bytes>("tlb.page_bytes", "bytes", 256, 1073741824,
          "page", "RISC-V Sv39"),
      integer<kTlb, &Tlb::second_entries>("tlb.second_entries", "", 0, 1048576,
          "pages in a direct-mapped second table, which spares walks; 0: none",
          "chosen; Chipyard: 1024"),
      integer<kTlb, &Tlb::hit_cycles>("tlb.hit_cycles", "cycles", 0, 1000,
          "that the shared table takes longer to answer than a port's own page",
          kGemmini),
      integer<kTlb, &Tlb::miss_cycles>("tlb.miss_cycles", "cycles", 0, 100000,
          "until the second table has answered, or a walk of the page table begins", kChosen),
      integer<kTlb, &Tlb::walk_reads>("tlb.walk_reads", "reads", 0, 8,
          "of memory, one after the other, that a walk takes", "Rocket: upper levels are cached"),
  };
  // clang-format on
}

/// Of what is outside of the core and no memory.
std::vector<MachineKey> make_system_keys() {
  constexpr auto kMapper = &Machine::mapper;
  constexpr auto kHost = &Machine::host;

  // clang-format off
  return {
      word<kMapper, &Mapper::strategy>("mapper.strategy", {"cost", "gemmini", "search"},
          "tiles by the cost model, by Gemmini's library's rules, or by a search", kChosen),
      word<kMapper, &Mapper::objective>("mapper.objective", {"cycles", "energy", "edp"},
          "what a search minimises; edp: the product of both", kChosen),
      word<kMapper, &Mapper::fusion>("mapper.fusion", {"all", "library", "none", "post", "off"},
          "joins an anchor: any stage, Gemmini's, no function, any after it, rounding",
          "library: no LayerNorm, no residual addition"),
      integer<kMapper, &Mapper::on_chip>("mapper.on_chip", "", 0, 1,
          "1: what only matmuls read may stay in the scratchpad; 0: all goes to DRAM", kChosen),
      word<kMapper, &Mapper::head_mix>("mapper.head_mix", {"auto", "on", "off"},
          "encoders, decoders of Q, K on attention engines; off: products of the array",
          "auto: layer by layer where expected to be faster"),

      integer<kHost, &Host::mmio_ns>("host.mmio_ns", "ns", 0, 1000000,
          "one access of the host to a core's register", kChosen),
      integer<kHost, &Host::interrupt_ns>("host.interrupt_ns", "ns", 0, 1000000,
          "interrupt to the host's handler", kChosen),
      word<kHost, &Host::operators>("host.operators", {"none", "float", "routing"},
          "in float32: softmax, GELU, LayerNorm, sums; or the routing of experts",
          "survey Sec. 3.4: the baseline's host does"),
      integer<kHost, &Host::clock_mhz>("host.clock_mhz", "MHz", 1, 10000,
          "clock of the host", kChosen),
      integer<kHost, &Host::outstanding>("host.outstanding", "requests", 1, 64,
          "cache lines in flight", "chosen: an in-order core, a blocking cache"),
      number<kHost, &Host::softmax_cycles>("host.softmax_cycles", "cycles/element", 0, 1000000,
          "softmax in float32", kFitted),
      number<kHost, &Host::gelu_cycles>("host.gelu_cycles", "cycles/element", 0, 1000000,
          "GELU in float32", kFitted),
      number<kHost, &Host::layernorm_cycles>("host.layernorm_cycles", "cycles/element", 0, 1000000,
          "LayerNorm in float32", kFitted),
      number<kHost, &Host::add_cycles>("host.add_cycles", "cycles/element", 0, 1000000,
          "sum of two tensors in float32", kFitted),
      number<kHost, &Host::convert_cycles>("host.convert_cycles", "cycles/element", 0, 1000000,
          "an integer to float32, or back",
          "fitted: 385 Mcycle a layer over the elements of its operands and results"),
      number<kHost, &Host::route_cycles>("host.route_cycles", "cycles/element", 0, 1000000,
          "choice of experts, softmax of these, their addresses",
          "chosen: twice a softmax"),
  };
  // clang-format on
}

std::vector<MachineKey> make_backend_keys() {
  return {
      backend<&Backends::systolic_array>("backend.systolic_array"),
      backend<&Backends::accumulator_sram>("backend.accumulator_sram"),
      backend<&Backends::requantizer>("backend.requantizer"),
      backend<&Backends::divider>("backend.divider"),
      backend<&Backends::i_exp>("backend.i_exp"),
      backend<&Backends::i_gelu>("backend.i_gelu"),
      backend<&Backends::softmax_unit>("backend.softmax_unit"),
      backend<&Backends::i_sqrt>("backend.i_sqrt"),
      backend<&Backends::layernorm_unit>("backend.layernorm_unit"),
      backend<&Backends::postop_pipeline>("backend.postop_pipeline"),
      backend<&Backends::sparser_line>("backend.sparser_line"),
      backend<&Backends::denser_line>("backend.denser_line"),
      backend<&Backends::attention_softmax>("backend.attention_softmax"),
      backend<&Backends::head_mix_line>("backend.head_mix_line"),
      backend<&Backends::fp16_mul>("backend.fp16_mul"),
      backend<&Backends::fp16_add>("backend.fp16_add"),
      backend<&Backends::mpu_tree>("backend.mpu_tree"),
      backend<&Backends::ring_router>("backend.ring_router"),
  };
}

bool is_name(std::string_view text) {
  // Not isalnum(), whose answer depends on the locale.
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

}  // namespace

const std::vector<MachineKey>& machine_keys() {
  static const std::vector<MachineKey> keys = [] {
    std::vector<MachineKey> all = make_core_keys();
    append_dynamic_keys(all);
    append_memory_keys(all);
    for (MachineKey& key : make_system_keys()) all.push_back(std::move(key));
    append_cost_keys(all);
    for (MachineKey& key : make_backend_keys()) all.push_back(std::move(key));
    dfx::append_keys(all);
    return all;
  }();
  return keys;
}

const MachineKey* find_machine_key(std::string_view path) {
  const auto& keys = machine_keys();
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [&](const MachineKey& key) { return key.path == path; });
  return found == keys.end() ? nullptr : &*found;
}

std::string_view section_of(std::string_view path) {
  const auto dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string_view key_of(std::string_view path) {
  const auto dot = path.find('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

bool accepts(const MachineKey& key, const KeyValue& value) {
  // Negated comparisons would let a NaN through.
  const auto in_range = [&](double x) { return x >= key.min && x <= key.max; };
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* number = std::get_if<double>(&value);
  const auto* name = std::get_if<std::string>(&value);
  switch (key.kind) {
    case Kind::kInteger:
      return integer != nullptr && in_range(static_cast<double>(*integer));
    case Kind::kPowerOfTwo:
      return integer != nullptr && in_range(static_cast<double>(*integer)) &&
             (*integer & (*integer - 1)) == 0;
    case Kind::kNumber:
      return number != nullptr && in_range(*number);
    case Kind::kWord:
      return integer != nullptr && *integer >= 0 &&
             static_cast<std::uint64_t>(*integer) < key.words.size();
    case Kind::kName:
      return name != nullptr && in_range(static_cast<double>(name->size())) && is_name(*name);
  }
  return false;
}

}  // namespace systole::hw
