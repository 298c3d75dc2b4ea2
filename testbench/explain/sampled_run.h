#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "mapper/mapping.h"
#include "testbench/network/run_subject.h"

namespace systole::testbench {

/// The part of a mapped program that is simulated to see how far the mapper's expectation is off.
struct ProgramHead {
  std::size_t operators = 0;   ///< from the first on
  std::size_t commands = 0;    ///< all of these operators, without kEnd
  std::uint64_t expected = 0;  ///< cycles, by the mapper
};

/// The first commands that are expected to take `cycles` of the program and end where an operator
/// ends before any command of the next one; all, if there is no such place.
[[nodiscard]] ProgramHead head_of(const mapper::Mapping& mapping, double cycles);

/// The same mapping with the head's commands alone.
[[nodiscard]] mapper::Mapping only_head(const mapper::Mapping& mapping, const ProgramHead& head);

/// What a run takes, in core cycles.
struct SampledRun {
  double cycles = 0;
  std::optional<double> joules;  ///< if the whole program was simulated
};

/// Simulates the whole program: the first inference, without values. This and sample_run() are to
/// be called in a process that simulates nothing else.
[[nodiscard]] SampledRun simulate_run(const RunSubject& subject, const hw::Machine& machine);

/// The mapper's replay of the whole program, times what the simulation of its head takes over the
/// replay of the head. The replay errs by the machine: it knows an L2 cache by its latency alone
/// and spreads requests to memory evenly. The head is a quarter of the program and at least two
/// million cycles, less than a second of host time; if that is all, it is simulate_run().
[[nodiscard]] SampledRun sample_run(const RunSubject& subject, const hw::Machine& machine);

}  // namespace systole::testbench
