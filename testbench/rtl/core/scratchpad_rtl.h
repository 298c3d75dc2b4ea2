#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// What rtl/core/systole_scratchpad.sv is built for.
struct ScratchpadSize {
  std::uint32_t banks, word_bytes, bank_words;

  [[nodiscard]] std::uint64_t bank_bytes() const { return std::uint64_t{bank_words} * word_bytes; }
  [[nodiscard]] std::uint64_t bytes() const { return banks * bank_bytes(); }
};
inline constexpr std::array<ScratchpadSize, 2> kScratchpadSizes = {{{4, 4, 16}, {2, 16, 8}}};

/// Clients in the order of their priority: writes of the load unit and of the post-op unit, reads
/// of parameters, reads of the array.
inline constexpr std::size_t kScratchpadWriters = 2, kScratchpadClients = 4;

/// A step of a client: the bytes that it writes, or a word from each address that it reads, of
/// which only the array has two. None: a cycle without access.
struct ScratchpadStep {
  std::array<std::optional<std::uint64_t>, 2> address;
  std::vector<std::uint8_t> written;  ///< of a writer, at most a word
};
struct ScratchpadClient {
  std::uint64_t begin = 0;  ///< cycle of the first step at the earliest
  std::vector<ScratchpadStep> steps;
};
struct ScratchpadResult {
  std::uint64_t end = 0;                            ///< cycle after the step
  std::array<std::vector<std::uint8_t>, 2> read{};  ///< by address
};
struct ScratchpadClients : std::array<ScratchpadClient, kScratchpadClients> {
  bool late_parameters = false;  ///< they are read after what the array reads
};
using ScratchpadResults = std::array<std::vector<ScratchpadResult>, kScratchpadClients>;

/// Drives the Verilated scratchpad.
class ScratchpadRtl {
 public:
  virtual ~ScratchpadRtl() = default;
  /// Runs the clients from reset on; what is stored stays. `expected`: for the waveform, or null.
  /// Throws std::runtime_error if the RTL hangs.
  virtual ScratchpadResults run(const ScratchpadClients& clients,
                                const ScratchpadResults* expected) = 0;
  [[nodiscard]] virtual std::uint64_t cycles() const = 0;  ///< of the last run
  [[nodiscard]] virtual bool failed() const = 0;           ///< an assertion has fired
};

/// In a waveform the model's outputs are, for each client, the end of the step that it is in.
[[nodiscard]] std::unique_ptr<ScratchpadRtl> make_scratchpad(const ScratchpadSize& size,
                                                             const RtlOptions& options = {});

/// What hw::BankService and a plain memory say of the clients. `stored`: the contents, before and
/// after.
[[nodiscard]] ScratchpadResults model_scratchpad(const ScratchpadSize& size,
                                                 const ScratchpadClients& clients,
                                                 std::vector<std::uint8_t>& stored);

/// Runs the clients and compares ends and bytes with model_scratchpad(); an operation is a step.
void check_scratchpad(ScratchpadRtl& scratchpad, const ScratchpadSize& size,
                      const ScratchpadClients& clients, std::vector<std::uint8_t>& stored,
                      RtlCounts& counts);

}  // namespace systole::testbench
