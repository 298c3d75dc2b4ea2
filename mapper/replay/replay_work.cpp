#include "mapper/replay/replay_work.h"

#include <algorithm>

#include "base/round.h"
#include "hw/array/accumulator.h"
#include "hw/core/bank_words.h"
#include "hw/number/weight_groups.h"
#include "hw/program/program_ranges.h"
#include "mapper/tile/host_cost.h"

namespace systole::mapper {
namespace {

/// Cycles of a product among others: its first weights have arrived before, and what its last fold
/// waits for is the next one's.
std::uint64_t least_product_cycles(const hw::cmd::Matmul& mm, const hw::Machine& machine) {
  const hw::ArrayCycles cycles =
      hw::array_cycles(machine.array, mm.m, mm.n, hw::array_steps(mm.k, hw::int4_of(mm)), false);
  if (machine.array.dataflow != hw::Dataflow::kWeightStationary) return cycles.interval;
  const bool hides = machine.array.overlap == hw::ArrayOverlap::kFull;
  return cycles.interval - machine.array.rows - cycles.fold_drain -
         (hides ? cycles.fold_preload : 0);
}

/// How long a result's chain takes, from the accumulator on.
hw::ResultCycles result_cycles(const hw::cmd::Result& result, const hw::Program& program,
                               const hw::Machine& machine, bool move) {
  const hw::Chain& chain = hw::chain_of(result.chain, program);
  const std::uint32_t lanes = machine.result_lanes();
  return hw::result_cycles(hw::chain_cycles(chain, result.m, result.n, lanes), chain, result.m,
                           result.n, lanes, hw::result_piece_bytes(machine, move),
                           hw::kAccumulatorReadCycles + hw::accumulator_code(machine).read_delay());
}

/// The same with the encoder behind it.
void add_encoder(const hw::cmd::Store& store, const hw::Program& program,
                 const hw::Machine& machine, hw::ResultCycles& cycles) {
  if (!store.encoder) return;
  const hw::HeadMix& mix = program.mixes[*store.encoder];
  cycles.per_row =
      std::max(cycles.per_row, hw::mix_interval(mix, store.n / mix.in_heads,
                                                std::max(machine.attention.encoder_lines, 1U),
                                                machine.attention.macs_per_line));
  const std::uint64_t behind = hw::mix_products(mix) + hw::kHeadMixLatency;
  cycles.fill += behind;
  cycles.after_operands += behind;
}

/// Makes what a replay keeps of a command; a function for every type of work.
class Decode {
 public:
  Decode(const hw::Program& program, const hw::Machine& machine, std::uint64_t attention,
         ReplayWork& work)
      : program_(program), machine_(machine), attention_(attention), work_(work) {}

  void operator()(const hw::cmd::End& /*end*/) {}
  void operator()(const hw::cmd::Loop& /*loop*/) {}  // loops are timed by call: ReplayLoops

  void operator()(const hw::cmd::Load& load) { decode(load, 1, scratchpad_word_bytes(machine_)); }
  void operator()(const hw::cmd::LoadAccumulator& load) {
    work_.to_accumulator = true;
    decode(load, 4, accumulator_word_bytes(machine_));
  }

  void operator()(const hw::cmd::Matmul& mm) {
    work_.read_delay = hw::matmul_read_delay(machine_.array, mm, hw::scratchpad_code(machine_),
                                             hw::accumulator_code(machine_));
    work_.product = mm;
  }

  void operator()(const hw::cmd::Store& store) {
    const hw::WrittenRows written = hw::written_rows(store, program_);
    work_.rows = {store.to.address, store.to.pitch, written.bytes, 0, written.rows};
    hw::ResultCycles cycles = result_cycles(store, program_, machine_, false);
    add_encoder(store, program_, machine_, cycles);
    decode(store, written, cycles);
  }
  void operator()(const hw::cmd::Move& move) {
    const hw::WrittenRows written = hw::written_rows(move, program_);
    work_.local_pitch = move.to.pitch;
    work_.local_bytes = written.bytes;
    work_.local.begin = move.to.address;
    work_.local.end = move.to.address + (written.rows - 1) * move.to.pitch + written.bytes;
    const hw::ResultCycles cycles = result_cycles(move, program_, machine_, true);
    decode(move, written, cycles);
    // A word for each piece, and of a column those that it covers.
    const std::uint64_t word = scratchpad_word_bytes(machine_);
    const std::uint64_t begin = move.to.address, end = begin + written.bytes;
    work_.row_words =
        (work_.transposed ? ceil_div(written.bytes, word) : cycles.vectors + cycles.pieces) +
        hw::reads_before_write(hw::scratchpad_code(machine_), begin, end, word);
  }

  void operator()(const hw::cmd::Attention& /*attention*/) { work_.duration = attention_; }
  void operator()(const hw::cmd::HostCall& call) {
    work_.duration = static_cast<std::uint64_t>(
        host_cost(program_.host_functions[call.function], call.m, call.n, machine_).total());
  }

 private:
  void decode(const hw::ChainUse& use, std::uint64_t m, std::uint64_t n,
              const hw::ChainCycles& cycles) {
    work_.has_chain = true;
    work_.fill = cycles.fill;
    work_.per_row = cycles.per_row;
    hw::for_each_operand(use, program_, [&](const hw::DramTile& tile, hw::DType type) {
      if (work_.operands == work_.operand.size()) return;
      work_.operand[work_.operands++] = {tile.address, tile.pitch, n * hw::bytes_of(type), 0, m};
    });
  }

  void decode(const hw::cmd::Load& load, std::uint64_t scale, std::uint32_t word) {
    const hw::ReadRows read = hw::read_rows(load);
    work_.rows = {load.from.address, load.from.pitch, read.bytes, 0, read.rows};
    work_.local_bytes = load.n * scale;
    work_.local_pitch = load.to.pitch * scale;
    work_.local.begin = load.to.address * scale;
    const hw::WordCode code =
        work_.to_accumulator ? hw::accumulator_code(machine_) : hw::scratchpad_code(machine_);
    const std::uint64_t begin = work_.local.begin;
    work_.as_it_arrives = hw::is_written_by_request(load, work_.to_accumulator);
    work_.is_placed = hw::is_placed_by_beat(load, work_.to_accumulator);
    work_.element = hw::bytes_of(load.type);
    work_.row_readings = hw::reads_before_write(code, begin, begin + work_.local_bytes, word);
    work_.row_words = work_.row_readings + ceil_div(work_.local_bytes, std::uint64_t{word});
    if (load.packed()) decode_packed(load, word);
    if (load.window) decode_window(load);
    if (load.pre) {
      const hw::Chain& chain = hw::chain_of(*load.pre, program_);
      const std::uint32_t lanes = machine_.preop.lanes;
      decode(*load.pre, load.m, load.n, hw::chain_cycles(chain, load.m, load.n, lanes));
      work_.set_up = hw::set_up_command(chain, load.n, lanes, word, 0, 0, 0);
      work_.columns = load.n;
    }
  }

  /// What is read at once are the rows of a group.
  void decode_packed(const hw::cmd::Load& load, std::uint32_t word) {
    const hw::ExpansionCycles cycles =
        hw::expansion_cycles(load.n, machine_.dma.expander_lanes, word);
    work_.has_chain = work_.expands = true;
    work_.per_row = cycles.per_group;
    work_.fill = cycles.fill;
    work_.local_bytes += (hw::kGroupWeights - 1) * work_.local_pitch;
    work_.local_pitch *= hw::kGroupWeights;
    work_.row_words *= hw::kGroupWeights;
  }

  /// All runs as if they were as long, as far apart, and as many in each row.
  void decode_window(const hw::cmd::Load& load) {
    std::uint64_t runs = 0, bytes = 0, first = 0, last = 0;
    for (std::uint64_t row = 0; row < load.m; ++row) {
      hw::for_each_run(*load.window, row, load.n, load.from.pitch, [&](const hw::WindowRun& run) {
        if (runs == 0) first = run.offset;
        last = std::max(last, run.offset);
        ++runs;
        bytes += run.bytes;
      });
    }
    if (runs == 0) runs = bytes = 1;  // padding alone
    work_.rows = {load.from.address + first, runs == 1 ? 0 : (last - first) / (runs - 1),
                  ceil_div(bytes, runs), 0, runs};
    work_.local_pitch = std::max<std::uint64_t>(work_.local_pitch * load.m / runs, 1);
    work_.local_bytes = std::min(work_.local_bytes, work_.local_pitch);
    work_.row_words = ceil_div(work_.row_words * load.m, runs);
  }

  void decode(const hw::cmd::Result& result, const hw::WrittenRows& written,
              const hw::ResultCycles& cycles) {
    const hw::Chain& chain = hw::chain_of(result.chain, program_);
    const std::uint32_t lanes = machine_.result_lanes();
    decode(result.chain, result.m, result.n, cycles);
    work_.m = result.m;
    work_.transposed = hw::transposes(chain);
    if (work_.operands != 0) {
      work_.operand_block = hw::operand_block(result, chain, machine_.postop);
    }
    work_.result = cycles;
    work_.bits = result.int4 ? 4 : 8 * hw::bytes_of(chain.out);
    work_.columns = result.n;
    work_.element = work_.transposed ? written.bytes / result.m : 0;
    const std::uint64_t parameters = std::uint64_t{4} * hw::parameter_words(chain) * result.n;
    const std::uint32_t at = result.chain.parameters;
    const std::uint64_t word = hw::scratchpad_word_bytes(machine_);
    work_.set_up = hw::set_up_command(chain, result.n, lanes, word, 0, 0, 0);
    work_.parameter_words = {at, hw::parameter_words(chain), result.n, lanes, word};
    work_.parameters = {at, at + parameters};
  }

  const hw::Program& program_;
  const hw::Machine& machine_;
  const std::uint64_t attention_;
  ReplayWork& work_;
};

}  // namespace

std::uint64_t least_cycles(const hw::Command& command, const hw::Program& program,
                           const hw::Machine& machine) {
  if (const auto* mm = command.as<hw::cmd::Matmul>()) return least_product_cycles(*mm, machine);
  const auto* result = command.as<hw::cmd::Result>();
  if (result == nullptr) return 0;
  hw::ResultCycles cycles =
      result_cycles(*result, program, machine, command.as<hw::cmd::Move>() != nullptr);
  if (const auto* store = command.as<hw::cmd::Store>())
    add_encoder(*store, program, machine, cycles);
  return cycles.fill + result->m * cycles.per_row;
}

void decode_work(const hw::Command& command, const hw::Program& program, const hw::Machine& machine,
                 std::uint64_t attention, ReplayWork& work) {
  work = ReplayWork{};
  work.opcode = command.opcode();
  work.op = command.op;
  std::visit(Decode(program, machine, attention, work), command.work);
}

hw::ResultFlow decode_flow(const hw::Command& command, const hw::Program& program,
                           const hw::Machine& machine, const ReplayWork& work) {
  const auto& result = *command.as<hw::cmd::Result>();
  const hw::Chain& chain = hw::chain_of(result.chain, program);
  const std::uint32_t lanes = machine.result_lanes();
  // As tlm/core/store_unit.cpp has it.
  const bool whole = work.operands != 0 && work.operand_block == work.m &&
                     hw::writes_what_it_reads(hw::ranges_of(command, program));
  return {hw::chain_cycles(chain, result.m, result.n, lanes),
          chain,
          {result.m, result.n, result.from.address, result.from.pitch},
          lanes,
          hw::kAccumulatorReadCycles + hw::accumulator_code(machine).read_delay(),
          whole ? hw::ResultFlow::Inputs::kWhole : hw::ResultFlow::Inputs::kSums};
}

}  // namespace systole::mapper
