#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/stream/stream_core.h"
#include "reproduce/reproduction.h"

/// ITA beside its RTL, and MobileBERT on it.
namespace systole::testbench {

/// A core that runs programs one after the other at once, without values: divisions take their
/// longest time.
class ProgramRunner {
 public:
  /// With a seed, input, weights and output each stall at random in half of the cycles. The bias
  /// goes with the input.
  explicit ProgramRunner(const hw::Machine& machine, std::optional<std::uint64_t> seed = {});

  /// Cycles from the start of this program to its last result.
  std::uint64_t run(std::vector<hw::stream::Work> works);
  /// Since the first start.
  [[nodiscard]] std::uint64_t cycles() const { return core_.cycle(); }
  [[nodiscard]] std::uint64_t beats() const { return core_.beats(); }

 private:
  hw::stream::Streams streams();

  hw::stream::StreamCore core_;
  std::optional<std::mt19937_64> random_;
};

/// A program of MobileBERT.
struct MobileBertProgram {
  std::string name;
  std::vector<hw::stream::Work> works;
  std::uint64_t macs = 0;  ///< of the network, without those that fill up tiles
};

/// One of MobileBERT's 24 layers, in order, for a core with tiles of `length` elements. Sizes as in
/// arXiv 2004.02984 and the configuration of google/mobilebert-uncased.
[[nodiscard]] std::vector<MobileBertProgram> mobilebert_layer(std::size_t tokens,
                                                              std::size_t length);

/// An inference.
struct MobileBertRun {
  /// Programs of one name.
  struct Line {
    std::string name;
    std::uint64_t programs = 0, macs = 0, cycles = 0;  ///< with the cycle of the start
  };
  std::vector<Line> lines;
  std::uint64_t macs = 0, cycles = 0;
};
[[nodiscard]] MobileBertRun run_mobilebert(std::size_t tokens, const hw::Machine& machine);

[[nodiscard]] Reproduction reproduce_ita();

}  // namespace systole::testbench
