#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "testbench/stream/stream_run.h"

namespace systole::testbench {

/// A finished run of layers on a streaming core.
struct StreamReport {
  hw::Machine machine;
  StreamRequest request;
  StreamResult result;

  /// Part of the multiply-accumulates that the core could have done, 0 to 1.
  [[nodiscard]] double utilisation() const;
};

/// At most kTextWidth columns.
[[nodiscard]] std::string stream_text(const StreamReport& report);
/// Names are those of docs/blocks/streaming_core.md.
[[nodiscard]] nlohmann::ordered_json stream_json(const StreamReport& report);

}  // namespace systole::testbench
