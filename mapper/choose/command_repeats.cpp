#include "mapper/choose/command_repeats.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/round.h"

namespace systole::mapper {
namespace {

/// Commands of a period at least, and of those before it at least, which are not measured: the
/// first ones wait for what those before them have left.
constexpr std::size_t kMeasured = 96, kBefore = 48;
/// Times that a period is taken to repeat before it is replayed again.
constexpr std::size_t kMostRepeats = 16;
/// Longer periods are not looked for, nor more of them from one command on.
constexpr std::size_t kMostPeriod = 2'048, kMostPeriods = 16;

/// Numbers of commands, equal for those that take equally long: their shapes, the banks of the
/// scratchpad that they use, and what their chains do, but no constants.
class Signatures {
 public:
  Signatures(const hw::Program& program, const hw::Machine& machine, Alike alike)
      : bank_bytes_(machine.scratchpad.bank_bytes()), banks_(alike == Alike::kInBanks) {
    for (const hw::Chain& chain : program.chains) {
      begin();
      add(chain.out);
      for (const hw::Stage& stage : chain.stages) {
        add(stage.op, stage.operand, stage.tensor, stage.side, hw::scales_operand(stage));
      }
      chains_.push_back(value_);
    }
    of_.reserve(program.commands.size());
    for (const hw::Command& command : program.commands) {
      begin();
      add(command.work.index(), command.issue);
      std::visit([this](const auto& work) { add_work(work); }, command.work);
      of_.push_back(value_);
    }
  }
  [[nodiscard]] const std::vector<std::uint64_t>& of_commands() const noexcept { return of_; }

 private:
  void begin() { value_ = 0; }
  template <typename... Fields>
  void add(Fields... fields) {
    (mix(static_cast<std::uint64_t>(fields)), ...);
  }
  void mix(std::uint64_t field) {
    value_ = (value_ ^ field) * 0x9E37'79B9'7F4A'7C15U;
    value_ ^= value_ >> 29U;
  }
  void add_tile(const hw::LocalTile& tile, std::uint64_t rows) {
    if (!banks_) return;
    const std::uint64_t last = tile.address + (rows - 1) * std::uint64_t{tile.pitch};
    add(tile.pitch, tile.address / bank_bytes_, last / bank_bytes_);
  }
  void add_work(const hw::cmd::Load& load) {
    add(load.m, load.n, load.type, load.format, load.from.pitch, load.window.has_value());
    if (load.pre) add(chains_[load.pre->chain]);
    add_tile(load.to, load.m);
  }
  void add_work(const hw::cmd::Matmul& product) {
    add(product.m, product.n, product.k, product.accumulate, product.b_transposed);
    add_tile(product.a, product.m);
    add_tile(product.b, product.b_transposed ? product.n : product.k);
  }
  void add_result(const hw::cmd::Result& result) {
    add(result.m, result.n, result.int4, chains_[result.chain.chain], result.chain.continues);
  }
  void add_work(const hw::cmd::Store& store) {
    add_result(store);
    add(store.to.pitch, store.encoder.has_value());
  }
  void add_work(const hw::cmd::Move& move) {
    add_result(move);
    add_tile(move.to, move.m);
  }
  /// Others are rare, and each takes its own time.
  template <typename Work>
  void add_work(const Work& /*work*/) {
    add(of_.size());
  }

  std::uint64_t bank_bytes_;
  bool banks_;
  std::vector<std::uint64_t> chains_, of_;
  std::uint64_t value_ = 0;
};

/// What repeats from one command on.
class RepeatsOfOne {
 public:
  explicit RepeatsOfOne(const std::vector<std::uint64_t>& signatures)
      : signatures_(signatures), next_(signatures.size()) {
    std::unordered_map<std::uint64_t, std::size_t> known;
    known.reserve(signatures.size() / 2);
    for (std::size_t i = signatures.size(); i-- > 0;) {
      const auto [next, is_new] = known.try_emplace(signatures[i], i);
      next_[i] = is_new ? signatures.size() : next->second;
      next->second = i;
    }
  }

  /// The shortest period that commands from `at` on have.
  [[nodiscard]] std::optional<Stretch> from(std::size_t at) const {
    const std::size_t count = signatures_.size();
    std::size_t next = next_[at];
    for (std::size_t i = 0; i < kMostPeriods && next < count; ++i, next = next_[next]) {
      const std::size_t period = next - at;
      if (period > kMostPeriod) break;
      const std::size_t measured = round_up(kMeasured, period);
      Stretch stretch{at, at + round_up(kBefore, period) + measured, measured, 0};
      if (stretch.last + measured > count) continue;
      const std::size_t end = end_of(next, period);
      if (stretch.last + measured > end) continue;
      stretch.repeats = std::min((end - stretch.last) / measured, kMostRepeats);
      return stretch;
    }
    return std::nullopt;
  }

 private:
  /// The first command from `next` on that is not as the one a period before it.
  [[nodiscard]] std::size_t end_of(std::size_t next, std::size_t period) const {
    while (next < signatures_.size() && signatures_[next] == signatures_[next - period]) ++next;
    return next;
  }

  const std::vector<std::uint64_t>& signatures_;
  std::vector<std::size_t> next_;  ///< the next one of the same signature, or the number of all
};

}  // namespace

std::vector<Stretch> find_stretches(const hw::Program& program, const hw::Machine& machine,
                                    Alike alike) {
  const Signatures signatures(program, machine, alike);
  const RepeatsOfOne repeats(signatures.of_commands());
  const std::size_t count = program.commands.size();
  std::vector<Stretch> stretches;
  std::size_t first = 0;
  for (std::size_t at = 0; at < count;) {
    std::optional<Stretch> found = repeats.from(at);
    if (!found) {
      ++at;
      continue;
    }
    found->first = first;
    stretches.push_back(*found);
    first = at = found->end();
  }
  if (first != count) stretches.push_back({first, count, 0, 0});
  return stretches;
}

}  // namespace systole::mapper
