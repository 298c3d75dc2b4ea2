#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"
#include "testbench/attention/attention_simulation.h"
#include "testbench/attention/attention_workload.h"
#include "testbench/rtl/drive/rtl_counts.h"

namespace systole::testbench {

/// A finished run of masked attention.
struct AttentionReport {
  hw::Machine machine;
  std::string mask;        ///< where the mask came from
  std::string reordering;  ///< how global columns were chosen
  bool functional = true;
  const AttentionWorkload* workload = nullptr;
  AttentionResult result;
  /// The same attention with Q and K of all heads in memory.
  struct Plain {
    std::uint64_t cycles, qkv_bytes;
  };
  std::optional<Plain> without_auto_encoder;
  RtlReport rtl;  ///< the blocks that ran as RTL

  /// Bytes that differ from the reference, and RTL that differs from its model.
  [[nodiscard]] std::uint64_t mismatches() const {
    return result.check.mismatches + total_mismatches(rtl);
  }
};

/// For people: at most kTextWidth columns.
[[nodiscard]] std::string attention_text(const AttentionReport& report);

/// The document of docs/attention.md.
[[nodiscard]] nlohmann::ordered_json attention_json(const AttentionReport& report);

/// "12 layers, 3 heads, 197 queries, 197 keys, 64 features".
[[nodiscard]] std::string attention_shape_text(const model::AttentionShape& shape, std::size_t dim,
                                               std::size_t value_dim);

}  // namespace systole::testbench
