#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "base/accounting.h"
#include "hw/machine/machine.h"
#include "hw/stream/stream_layer.h"

namespace systole::hw::stream {

/// "Q", "K", "V", "QK", "AV", "OW", "F1", "F2".
[[nodiscard]] std::string_view name_of(Phase phase);

/// A run of output tiles, each of which takes the same number of inner tiles.
struct Work {
  Phase phase = Phase::kQ;
  std::size_t outer = 0;  ///< output tiles
  std::size_t inner = 0;  ///< products that each of them sums up
};

/// What a core does in a layer, in order, for sizes in tiles of `length` elements, rounded up. Q,
/// K, V; then for each row of tiles QK and AV; then OW.
[[nodiscard]] std::vector<Work> attention_work(const LayerShape& shape, std::size_t length);
/// F1, F2.
[[nodiscard]] std::vector<Work> feed_forward_work(const LayerShape& shape, std::size_t length);
/// One product of m x k by k x n, as Q.
[[nodiscard]] std::vector<Work> product_work(std::size_t m, std::size_t n, std::size_t k,
                                             std::size_t length);

/// Cycles of a phase, counted from that in which the core was started first.
struct PhaseTimes {
  Phase phase = Phase::kQ;
  std::uint64_t tiles = 0;                  ///< outer times inner
  std::uint64_t first_in = 0, last_in = 0;  ///< input beats accepted
  std::uint64_t last_out = 0;               ///< output beat taken
};

/// Which streams move if the core lets them: valid of the three that come in, ready of the output.
struct Streams {
  bool input = true, weights = true, bias = true, output = true;
};

/// The controllers of a streaming attention core, cycle by cycle: weight buffers, input handshake,
/// output queue, softmax queue and dividers of ITA (pulp-platform/ITA @ ba96519).
///
/// `units` dot products of `length` elements a cycle. A pass keeps a weight buffer for `length`
/// input beats, an output tile of length x length takes length / units passes for each inner tile.
/// One buffer is in use while the other one fills. A beat of the last inner tile leaves `depth`
/// cycles later, if the output stream is ready.
///
/// An input beat waits for its weights; for an output if `output_queue` of them are under way; in
/// QK's last pass for a divider if `softmax_queue` row sums wait for one; in AV's first pass for
/// the division of its row. Dividers take row sums and give them back in turn.
class StreamCore {
 public:
  /// Why no input beat is accepted, in the order of the account.
  enum Cause : std::size_t { kWeights, kInput, kOutput, kDivider, kDrain };

  explicit StreamCore(const Machine::Stream& machine);

  /// Begins with the next cycle. Nothing may be under way. `rows`: of the scores, in order, for the
  /// time of their divisions; without them each takes the longest.
  void begin(std::vector<Work> works, const std::vector<SoftmaxRow>* rows);
  /// One cycle. Returns whether anything is left to do.
  bool step(const Streams& streams);

  /// Of begin(), in the order of their first input beats; a phase with several works once.
  [[nodiscard]] const std::vector<PhaseTimes>& phases() const { return phases_; }
  /// Of the next input beat; of none left, that of the last one.
  [[nodiscard]] Phase phase() const {
    return works_[work_ == works_.size() ? work_ - 1 : work_].phase;
  }
  [[nodiscard]] std::uint64_t cycle() const { return cycle_; }
  [[nodiscard]] const BlockAccount& account() const { return account_; }
  /// Input beats accepted, and output beats.
  [[nodiscard]] std::uint64_t beats() const { return beats_; }
  [[nodiscard]] std::uint64_t outputs() const { return outputs_; }

 private:
  static constexpr std::size_t kBuffers = 2;

  struct Divider {
    bool busy = false;
    std::uint64_t done = 0;  ///< cycle in which the quotient is valid
  };
  struct Sum {
    std::uint64_t arrives;   ///< at the queue before the dividers
    std::uint64_t duration;  ///< of its division
  };
  struct Output {
    std::uint64_t arrives;
    std::size_t phase;  ///< index into phases_
  };

  [[nodiscard]] const Work& work() const { return works_[work_]; }
  [[nodiscard]] bool is_last_pass_of_scores() const;
  [[nodiscard]] bool waits_for_division() const;
  /// Why no beat is accepted now; kDrain: there is none.
  [[nodiscard]] bool accepts(const Streams& streams, Cause& why) const;
  void accept();
  void enter_phase();
  void fill(const Streams& streams, bool was_full);
  void divide();
  void put_out(const Streams& streams);
  [[nodiscard]] std::uint64_t division_of(std::size_t row) const;

  const Machine::Stream machine_;
  const std::uint64_t pass_beats_, tile_beats_, buffer_beats_;
  std::vector<Work> works_;
  const std::vector<SoftmaxRow>* rows_ = nullptr;
  std::size_t work_ = 0;
  std::uint64_t outer_ = 0, inner_ = 0, beat_ = 0;  ///< within the work
  std::uint64_t block_ = 0;                         ///< row of tiles of QK and AV
  std::vector<PhaseTimes> phases_;
  std::size_t phase_ = 0;  ///< index into phases_

  std::array<bool, kBuffers> full_{};
  std::size_t filling_ = 0, reading_ = 0;
  std::uint64_t filled_ = 0, used_ = 0;  ///< beats

  std::deque<Output> under_way_;
  std::deque<Sum> sums_;
  std::vector<Divider> dividers_;
  std::size_t next_in_ = 0, next_out_ = 0;
  std::uint64_t divided_ = 0;  ///< rows of the block

  std::uint64_t cycle_ = 0;
  std::uint64_t beats_ = 0, outputs_ = 0;
  BlockAccount account_;
};

}  // namespace systole::hw::stream
