#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "testbench/rtl/core/core_limits.h"
#include "testbench/rtl/core/core_rtl.h"
#include "tests/rtl/core/core_case.h"

namespace systole::testbench {

/// What random programs in a core were made of.
struct RandomCoreRuns {
  RtlCounts counts;
  std::size_t waits = 0;  ///< commands that started later than they could be dispatched
  std::size_t reads = 0, writes = 0, operands = 0;  ///< requests
  std::size_t transposed = 0;                       ///< matmuls
  std::size_t second_tensors = 0;                   ///< operands of results
  std::size_t replaced = 0;                         ///< chains in the slot of another one
  std::size_t staged = 0, staged_tensors = 0;       ///< loads with stages, with a tensor operand
  std::size_t late_words = 0;    ///< results whose parameters or operands older commands write
  std::size_t words_ahead = 0;   ///< results that may read them before they start
  std::size_t tiles_ahead = 0;   ///< results whose first request for an operand is before the start
  std::size_t tiles_beside = 0;  ///< and before the one before has ended
  std::set<hw::StageOp> row_wise;  ///< and others that use the row statistics
  std::map<hw::Reduction, std::size_t> sides, continued;  ///< side outputs of results
  std::size_t late = 0;    ///< loads to the accumulator that wait for the array at their end
  std::size_t beside = 0;  ///< loads that start before one to the accumulator has ended

  void add(const hw::Program& program, const CoreRun& run, std::uint32_t chain_slots) {
    std::map<std::size_t, std::size_t> slots;  // of chains, by slot
    for (const hw::Command& command : program.commands) {
      if (const auto* const matmul = command.as<hw::cmd::Matmul>()) {
        transposed += matmul->b_transposed ? 1 : 0;
      }
      if (const auto* const load = command.as<hw::cmd::Load>(); load != nullptr && load->pre) {
        ++staged;
        staged_tensors += hw::tensor_operands(hw::chain_of(*load->pre, program)) == 0 ? 0 : 1;
      }
      const auto* const result = command.as<hw::cmd::Result>();
      if (result == nullptr) continue;
      const std::size_t chain = result->chain.chain;
      const auto [slot, is_new] = slots.emplace(chain % chain_slots, chain);
      replaced += !is_new && slot->second != chain ? 1 : 0;
      slot->second = chain;
      second_tensors += hw::tensor_operands(program.chains[chain]) > 1 ? 1 : 0;
      for (const hw::Stage& stage : hw::chain_of(result->chain, program).stages) {
        if (hw::stage_info(stage.op).row_wise || hw::statistics_read(stage) != 0) {
          row_wise.insert(stage.op);
        }
        ++sides[stage.side];
        continued[stage.side] += result->chain.continues ? 1 : 0;
      }
    }
    add_sums(program, run);
    add_ahead(program, run);
    reads += run.reads.size();
    operands += run.operands.size();
    writes += run.writes.size();
    for (const CoreCommandTimes& times : run.commands) {
      waits += times.started > times.dispatched ? 1 : 0;
    }
  }

 private:
  void add_ahead(const hw::Program& program, const CoreRun& run) {
    std::map<std::size_t, std::uint64_t> first;  // request for an operand, by result
    for (const hw::ReadRequest& request : run.operands) {
      first.emplace(request.command, request.issued);
    }
    std::size_t results = 0;
    std::uint64_t ended = 0;  // the result before
    for (std::size_t i = 0; i + 1 < program.commands.size(); ++i) {
      const auto* const result = program.commands[i].as<hw::cmd::Result>();
      if (result == nullptr) continue;
      const CoreCommandTimes& times = run.commands[i];
      if (hw::parameter_words(program.chains[result->chain.chain]) != 0) {
        late_words += times.readable > times.dispatched ? 1 : 0;
        words_ahead += times.readable < times.started ? 1 : 0;
      }
      if (const auto request = first.find(results++); request != first.end()) {
        tiles_ahead += request->second < times.started ? 1 : 0;
        tiles_beside += request->second < ended ? 1 : 0;
      }
      ended = times.completed;
    }
  }

  void add_sums(const hw::Program& program, const CoreRun& run) {
    std::map<std::size_t, std::uint64_t> read;  // loads: the cycle with which all has been read
    for (const hw::ReadRequest& request : run.reads) {
      read[request.command] = std::max(read[request.command], request.done);
    }
    std::uint64_t until = 0;
    for (const auto& [command, done] : read) {
      const CoreCommandTimes& times = run.commands[command];
      beside += times.started < until ? 1 : 0;
      if (program.commands[command].opcode() != hw::Opcode::kLoadAccumulator) continue;
      until = std::max(until, times.completed);
      late += times.completed > done + 2 ? 1 : 0;
    }
  }
};

/// Runs random programs one after the other, the first of which fills the local memories, and
/// compares all that a core does with its contracts: check_core().
inline RandomCoreRuns run_random_programs(CoreRtl& core, int programs, unsigned seed) {
  constexpr hw::SlotOrder kEachOrder[] = {hw::SlotOrder::kIssue, hw::SlotOrder::kCompletion};
  constexpr hw::ArrayOverlap kEachOverlap[] = {hw::ArrayOverlap::kFull, hw::ArrayOverlap::kPreload,
                                               hw::ArrayOverlap::kNone};
  hw::test::Random random(seed);
  RandomCore cases(random, core.size(), core.size().preop != 0);
  RandomCoreRuns runs;
  for (int i = 0; i < programs; ++i) {
    const hw::Program program = i == 0 ? cases.first() : cases.next(24);
    const CoreCase test{program, cases.put(program), kEachOrder[random() % 2],
                        kEachOverlap[random() % 4 % 3], i % 3 != 2};
    const CoreRun run = check_core(core, test, cases.ports(), cases.state(), runs.counts);
    EXPECT_EQ(runs.counts.mismatches, 0U) << "program " << i;
    EXPECT_EQ(core_program_problem(program, core.size()), "") << "program " << i;
    if (testing::Test::HasFailure()) break;
    runs.add(program, run, core.size().chain_slots);
  }
  return runs;
}

}  // namespace systole::testbench
