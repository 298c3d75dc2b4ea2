#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"

namespace systole::testbench {

/// What `systole reproduce vitcod` was asked for.
struct VitcodOptions {
  std::string mask;                 ///< .npy of bool; empty: of the embedded maps at 90 %
  std::string maps;                 ///< .npy of floats; empty: the embedded ones
  bool cls = false;                 ///< the maps have a class token
  std::optional<std::int64_t> dim;  ///< features of a head in these files
};

/// The masks that it runs.
struct VitcodSubject {
  struct Point {
    int percent;  ///< pruned, wanted
    model::AttentionMask mask;
  };

  hw::Machine machine;
  model::AttentionMask mask{model::AttentionShape{}};
  std::string mask_name;
  std::size_t mask_dim = 0;  ///< features of Q, K and V in a head
  bool deit_tiny = false;    ///< `mask` is the one that ViTCoD's authors published
  std::vector<Point> sweep;  ///< of the maps: 60 to 95 % pruned, as far as the rule reaches
  std::string maps_name;
  model::AttentionShape maps_shape;
  std::size_t maps_dim = 0;

  /// The point of that sparsity, or null.
  [[nodiscard]] const Point* at(int percent) const;
};

/// Throws InputError for files that are no mask or maps, and for a dimension out of range.
[[nodiscard]] VitcodSubject load_vitcod_subject(const VitcodOptions& options,
                                                const hw::Machine& machine);

/// A mask of that shape in which no cell is pruned.
[[nodiscard]] model::AttentionMask dense_mask(const model::AttentionShape& shape);

}  // namespace systole::testbench
