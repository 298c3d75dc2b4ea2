#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/machine/machine.h"
#include "hw/program/program.h"

namespace systole::hw {

/// Whether the engines' own pipelines can run the stages: of each element alone, without operands
/// from elsewhere, which those pipelines have no ports for. `row_sums`: those of the softmax are
/// there.
[[nodiscard]] bool runs_on_engines(const Chain& chain, bool row_sums);

/// Calls `fail`, which must not return, with what is wrong with an attention command: a machine
/// without engines or with buffers too small for one token, a chain that cannot be after it, no
/// mask, sizes out of range, decoders to another number of heads.
void check_attention_command(const cmd::Attention& attention, const Program& program,
                             const Machine& machine,
                             const std::function<void(const std::string& what)>& fail);

/// The same for the masks of commands that passed check_attention_command(): one that is none, or
/// of other sizes; scores and outputs of one query that are more than the accumulator. Decoding a
/// mask takes time that grows with queries x heads, so a command's ranges should be known to lie in
/// memory; it is done once for all commands of one shape.
class AttentionMaskCheck {
 public:
  AttentionMaskCheck(const Program& program, const Machine& machine)
      : program_(program), machine_(machine) {}

  void run(const cmd::Attention& attention,
           const std::function<void(const std::string& what)>& fail);

 private:
  /// Mask, heads, queries, keys.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

  struct Decoded {
    std::vector<SparseHead> heads;
    std::set<std::uint32_t> fits;  ///< features of V for which scores and outputs fit
  };

  [[nodiscard]] Decoded& decoded(const cmd::Attention& attention);

  const Program& program_;
  const Machine& machine_;
  std::map<Key, Decoded> decoded_;
};

/// The same if Program::mixes does not have `count` of them from `mix` on.
void check_mix_index(std::uint16_t mix, std::size_t count, const Program& program,
                     const std::function<void(const std::string& what)>& fail);

}  // namespace systole::hw
