#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "reproduce/vitcod/auto_encoder_break_even.h"
#include "reproduce/vitcod/vitcod_subject.h"

namespace systole::testbench {

/// Where an auto-encoder breaks even.
struct LinkBreakEven {
  std::string_view model;
  bool array = false;  ///< the array's own lines decode
  BreakEven found;
};

/// Documents of `systole attention` and `systole run`, timing alone.
struct VitcodRuns {
  using Json = nlohmann::ordered_json;

  /// The subject's mask, and a dense one of its shape.
  Json reordered, threshold, unordered, dense;
  /// `reordered` with buffers of 1 KiB each for Q, K and V, or the least that holds a row.
  Json small_buffers;
  /// `reordered` with the auto-encoder of the authors on Q and K; none for a single head.
  std::optional<Json> auto_encoder;
  std::vector<LinkBreakEven> break_even;
  /// The sweep, by point, and a dense mask of the shape of the maps.
  std::vector<Json> sweep_reordered, sweep_unordered;
  Json sweep_dense;
  /// Whole networks: vit65 without and with a mask of 90 %, and with its auto-encoder; DeiT-Tiny's
  /// encoder, dense, and with the subject's mask if it is that of DeiT-Tiny.
  Json vit_dense, vit_pruned, vit_auto_encoder, deit_dense;
  std::optional<Json> deit_pruned;
};

/// Simulates all of them. Throws InputError for a machine that cannot run one.
[[nodiscard]] VitcodRuns run_vitcod(const VitcodSubject& subject);

}  // namespace systole::testbench
