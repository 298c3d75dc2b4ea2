#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mapper/mapping.h"
#include "model/graph/graph.h"

/// What an inference moves, counted in elements and passes: what fusion is there to save.
namespace systole::mapper {

/// Elements of one sort, and their bytes in memory.
struct Elements {
  std::uint64_t count = 0, bytes = 0;
  Elements& operator+=(const Elements& other) {
    count += other.count;
    bytes += other.bytes;
    return *this;
  }
};

/// Operators that run as one, each tensor moved once, wherever it is.
struct PassAccount {
  std::string name;          ///< pass_of() of the groups
  std::uint64_t groups = 0;  ///< one, or one for each head
  std::uint64_t trips = 0;   ///< of loops over elements: results, and what goes through stages in
                             ///< front
  Elements streamed;         ///< read: a matmul's A or the tensor that is loaded, tensor operands
  Elements written;          ///< results
  Elements stationary;       ///< a matmul's B: weights, keys, values. No part of the accesses
  std::uint64_t parameters = 0;  ///< words: biases and factors of channels. Neither are they
  [[nodiscard]] std::uint64_t accesses() const { return streamed.count + written.count; }
};

struct FusionAccount {
  std::vector<PassAccount> passes;  ///< in order

  [[nodiscard]] PassAccount total() const;  ///< its name is empty
};

/// Operators of the heads of an attention, and those of sequences side by side, are one operator
/// that runs once for each: "attn.head3.scores" and "attn.seq1.head3.scores" belong to
/// "attn.head*.scores" and "attn.seq*.head*.scores". This is the only place that knows.
[[nodiscard]] std::string pass_of(const std::string& name);

/// Of a mapping of that graph. Groups without commands of their own (encoders on the way out of
/// another) are no passes: what they write belongs to the group before.
[[nodiscard]] FusionAccount account_fusion(const model::Graph& graph, const Mapping& mapping);

}  // namespace systole::mapper
