#pragma once

#include <string>

namespace systole {

/// Absolute path of a file of the source tree; `name` is relative to its top. The only place that
/// knows where the tree is, so that test objects of two checkouts are the same to a compiler cache.
[[nodiscard]] std::string source_path(const std::string& name);

}  // namespace systole
