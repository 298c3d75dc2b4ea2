#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hw/attention/timing/attention_cycles.h"
#include "hw/attention/timing/attention_runs.h"
#include "testbench/rtl/attention/attention_line_rtl.h"
#include "testbench/rtl/attention/attention_softmax_rtl.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/system_time.h"
#include "testbench/rtl/engine/engines.h"
#include "testbench/rtl/engine/own_block.h"

namespace systole::testbench {
namespace {

/// Features of an item's group that exist.
std::size_t features_of(const LineWork& work, const LineWork::Item& item, std::size_t macs) {
  return std::min(macs, work.features - item.group * macs);
}

class AttentionRtlEngine final : public TimedRtl<hw::AttentionEngine> {
 public:
  AttentionRtlEngine(const hw::Machine::Attention& attention, const hw::Machine::Backends& backends,
                     const RtlOptions& options, RtlReport& report);

  [[nodiscard]] hw::AttentionSums sums(const hw::SparseHead& head,
                                       const hw::AttentionOperands& operands,
                                       const hw::ScoreFunctions& functions) override;
  void begin_rest_at(std::uint64_t softmax, std::uint64_t sums) override {
    softmax_at_ = softmax;
    sums_at_ = sums;
  }

 private:
  template <typename Rtl>
  struct TwinOf {
    std::unique_ptr<Rtl> rtl;
    RtlCheck check;
  };
  using Twin = TwinOf<AttentionLineRtl>;

  void run_scores(const hw::SparseHead& head, const hw::AttentionOperands& operands,
                  hw::SplitCells<std::int32_t>& scores);
  void run_softmax(const hw::SparseHead& head, const hw::SparseRows& rows,
                   const hw::SplitCells<std::int32_t>& scores,
                   const hw::SoftmaxConstants& constants, hw::AttentionCodes& codes);
  void run_sums(const hw::SparseHead& head, const hw::SparseRows& rows,
                const hw::AttentionOperands& operands, const hw::AttentionCodes& codes,
                std::vector<std::int32_t>& sums);
  /// Results of the work, `expected` being the model's.
  std::vector<std::int32_t> run(Twin& twin, const LineWork& work, std::uint64_t contract,
                                const std::vector<std::int32_t>& expected);

  std::uint64_t softmax_at_ = 0, sums_at_ = 0;
  hw::Machine::Attention attention_;
  std::optional<Twin> dense_, sparse_;  ///< none: the model
  std::optional<TwinOf<AttentionSoftmaxRtl>> softmax_;
};

AttentionRtlEngine::AttentionRtlEngine(const hw::Machine::Attention& attention,
                                       const hw::Machine::Backends& backends,
                                       const RtlOptions& options, RtlReport& report)
    : TimedRtl(options.time), attention_(attention) {
  const auto make = [&](hw::Backend backend, const std::string& block, const OwnSize& size,
                        auto& twin, auto make_rtl) {
    if (backend != hw::Backend::kRtl) return;
    require_lines(block, attention);
    using Interface = typename std::decay_t<decltype(twin->rtl)>::element_type;
    const RtlOptions its = options.for_block(block, size.value);
    const OwnBlock* const own = find_own(options, block, block, {size}, report[block]);
    twin.emplace(std::decay_t<decltype(*twin)>{
        own == nullptr ? make_rtl(static_cast<std::uint32_t>(size.value), its)
                       : make_own<Interface>(*own, {}, its),
        RtlCheck(report[block], its)});
  };
  const OwnSize macs{"macs", "attention.macs_per_line", attention.macs_per_line};
  make(backends.denser_line, "denser_line", macs, dense_, make_denser_line);
  make(backends.sparser_line, "sparser_line", macs, sparse_, make_sparser_line);
  make(backends.attention_softmax, "attention_softmax",
       {"lanes", "attention.softmax_lanes", attention.softmax_lanes}, softmax_,
       make_attention_softmax);
}

hw::AttentionSums AttentionRtlEngine::sums(const hw::SparseHead& head,
                                           const hw::AttentionOperands& operands,
                                           const hw::ScoreFunctions& functions) {
  hw::SplitCells<std::int32_t> scores = hw::attention_scores(head, operands);
  run_scores(head, operands, scores);
  if (time_) time_->begin_at(softmax_at_);
  hw::apply_score_stages(functions, scores);
  const hw::SparseRows rows = hw::sparse_rows(head);
  hw::AttentionCodes codes = hw::softmax_kept_cells(head, rows, scores, functions.softmax);
  if (softmax_) run_softmax(head, rows, scores, functions.softmax, codes);
  if (time_) time_->begin_at(sums_at_);
  std::vector<std::int32_t> sums(head.queries * operands.value_dim, 0);
  run_sums(head, rows, operands, codes, sums);
  return {std::move(sums), std::move(codes.divisor)};
}

// The line's scores take the place of the model's.
void AttentionRtlEngine::run_scores(const hw::SparseHead& head,
                                    const hw::AttentionOperands& operands,
                                    hw::SplitCells<std::int32_t>& scores) {
  const hw::LineRuns runs = hw::sddmm_runs(head, operands.dim, attention_);
  const std::uint64_t step_cycles = hw::line_passes(operands.dim, attention_);
  for (std::size_t line = 0; line < runs.lines.size(); ++line) {
    const bool dense = line < runs.split.dense;
    std::optional<Twin>& twin = dense ? dense_ : sparse_;
    if (!twin || runs.lines[line].empty()) continue;
    const LineWork work = score_work(head, operands, runs, line);
    std::vector<std::int32_t>& cells = dense ? scores.dense : scores.sparse;
    std::vector<std::int32_t> expected;
    expected.reserve(work.steps.size());
    for (const LineWork::Step& step : work.steps) expected.push_back(cells[step.cell]);
    const auto found = run(*twin, work, hw::line_cycles(runs.lines[line], step_cycles), expected);
    for (std::size_t i = 0; i < found.size(); ++i) cells[work.steps[i].cell] = found[i];
  }
}

// The RTL's codes take the place of the model's.
void AttentionRtlEngine::run_softmax(const hw::SparseHead& head, const hw::SparseRows& rows,
                                     const hw::SplitCells<std::int32_t>& scores,
                                     const hw::SoftmaxConstants& constants,
                                     hw::AttentionCodes& codes) {
  ScoreRows work;
  std::vector<std::uint8_t*> places;
  std::vector<std::int32_t> expected;
  const auto add = [&](std::int32_t score, std::uint8_t& code) {
    work.scores.push_back(score);
    places.push_back(&code);
    expected.push_back(code);
  };
  for (std::size_t query = 0; query < head.queries; ++query) {
    for (std::size_t cell = query; cell < head.dense_cells(); cell += head.queries) {
      if (head.dense_keep[cell]) add(scores.dense[cell], codes.cells.dense[cell]);
    }
    for (std::uint32_t i = rows.pointers[query]; i < rows.pointers[query + 1]; ++i) {
      add(scores.sparse[rows.cells[i]], codes.cells.sparse[rows.cells[i]]);
    }
    work.ends.push_back(work.scores.size());
  }
  const std::uint64_t beats = hw::softmax_cycles(head, attention_);
  if (beats == 0) return;
  std::vector<std::uint8_t> found;
  std::vector<std::uint32_t> divisor;
  RtlCheck& check = softmax_->check;
  check.operation();
  check.begin(beats + hw::stage_info(hw::StageOp::kSoftmax).latency);
  check.end(
      check
          .run([&] { return softmax_->rtl->run(work, constants, found, divisor, expected.data()); })
          .cycles);
  for (std::size_t i = 0; i < found.size(); ++i) {
    check.mismatch(found[i] != expected[i]);
    *places[i] = found[i];
  }
  check.values(divisor.data(), codes.divisor.data(), divisor.size());
  check.assertions(softmax_->rtl->failed());
  codes.divisor = std::move(divisor);
}

void AttentionRtlEngine::run_sums(const hw::SparseHead& head, const hw::SparseRows& rows,
                                  const hw::AttentionOperands& operands,
                                  const hw::AttentionCodes& codes,
                                  std::vector<std::int32_t>& sums) {
  const auto accumulate = [&](bool dense, hw::OutputGroup group, std::int32_t* to) {
    if (dense) {
      hw::accumulate_dense_group(head, operands, codes, group, to);
    } else {
      hw::accumulate_sparse_group(rows, operands, codes, group, to);
    }
  };
  const auto row_of = [&](std::size_t query) { return sums.data() + query * operands.value_dim; };
  for (const bool dense : {true, false}) {
    if (dense ? dense_ : sparse_) continue;
    for (std::size_t query = 0; query < head.queries; ++query) {
      accumulate(dense, {query, 0, operands.value_dim}, row_of(query));
    }
  }
  const std::size_t macs = attention_.macs_per_line;
  const hw::LineRuns runs = hw::spmm_runs(head, rows, operands.value_dim, attention_);
  for (std::size_t line = 0; line < runs.lines.size(); ++line) {
    const bool dense = line < runs.split.dense;
    std::optional<Twin>& twin = dense ? dense_ : sparse_;
    if (!twin || runs.lines[line].empty()) continue;
    const LineWork work = sum_work(head, rows, operands, codes, runs, line, macs);
    std::vector<std::int32_t> expected(work.items.size() * macs, 0);
    for (std::size_t i = 0; i < work.items.size(); ++i) {
      const LineWork::Item& item = work.items[i];
      accumulate(dense, {item.item, item.group * macs, features_of(work, item, macs)},
                 expected.data() + i * macs);
    }
    const auto found = run(*twin, work, hw::line_cycles(runs.lines[line], 1), expected);
    for (std::size_t i = 0; i < work.items.size(); ++i) {
      const LineWork::Item& item = work.items[i];
      std::int32_t* const to = row_of(item.item) + item.group * macs;
      for (std::size_t f = 0; f < features_of(work, item, macs); ++f) to[f] += found[i * macs + f];
    }
  }
}

std::vector<std::int32_t> AttentionRtlEngine::run(Twin& twin, const LineWork& work,
                                                  std::uint64_t contract,
                                                  const std::vector<std::int32_t>& expected) {
  RtlCycles cycles;
  twin.check.operation();
  twin.check.begin(contract);
  std::vector<std::int32_t> found =
      twin.check.run([&] { return twin.rtl->run(work, cycles, expected.data()); });
  twin.check.end(cycles.cycles);
  const std::size_t width = work.spmm ? attention_.macs_per_line : 1;
  for (std::size_t i = 0; i < found.size(); i += width) {
    twin.check.values(&found[i], &expected[i],
                      work.spmm ? features_of(work, work.items[i / width], width) : 1);
  }
  twin.check.assertions(twin.rtl->failed());
  return found;
}

}  // namespace

std::unique_ptr<hw::AttentionEngine> make_attention_engine(const hw::Machine::Attention& attention,
                                                           const hw::Machine::Backends& backends,
                                                           const RtlOptions& options,
                                                           RtlReport& report) {
  return std::make_unique<AttentionRtlEngine>(attention, backends, options, report);
}

}  // namespace systole::testbench
