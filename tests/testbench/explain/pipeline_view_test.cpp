#include "testbench/explain/pipeline_view.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/input_error.h"
#include "support/network/encoder_run.h"
#include "support/temp_directory.h"
#include "testbench/explain/explanation.h"
#include "testbench/network/matmul_graph.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;

struct KonataStage {
  std::string name;
  std::uint64_t begin, end;
};

struct KonataRow {
  std::uint64_t begun = 0, retired = 0;
  std::string label, hover;
  std::map<int, std::vector<KonataStage>> lanes;                   ///< stages in order of time
  std::vector<std::pair<std::uint32_t, std::uint64_t>> producers;  ///< and when

  [[nodiscard]] const KonataStage* find(const std::string& name) const {
    const auto lane = lanes.find(0);
    if (lane == lanes.end()) return nullptr;
    for (const KonataStage& stage : lane->second) {
      if (stage.name == name) return &stage;
    }
    return nullptr;
  }
};

/// Reads a log by the format's description, and expects what the description demands.
class KonataLog {
 public:
  explicit KonataLog(const std::string& path) {
    std::istringstream in(read_file(path));
    std::string text;
    EXPECT_TRUE(std::getline(in, text));
    EXPECT_EQ(text, "Kanata\t0004");
    while (std::getline(in, text)) {
      std::vector<std::string> columns;
      std::istringstream line(text);
      for (std::string column; std::getline(line, column, '\t');) columns.push_back(column);
      take(columns);
    }
    EXPECT_EQ(open_, 0U) << "rows without an end";
  }

  std::vector<KonataRow> rows;
  std::vector<std::uint32_t> retired;  ///< rows in the order of their retirement

 private:
  void take(const std::vector<std::string>& columns) {
    const std::string& kind = columns.at(0);
    const std::uint64_t first = std::stoull(columns.at(1));
    if (kind == "C=") {
      now_ = first;
    } else if (kind == "C") {
      EXPECT_GT(first, 0U);
      now_ += first;
    } else if (kind == "I") {
      EXPECT_EQ(first, rows.size()) << "ids are sequential";
      EXPECT_EQ(columns.at(2), columns.at(1));
      rows.emplace_back().begun = now_;
      alive_.push_back(true);
      ++open_;
    } else {
      KonataRow& row = rows.at(first);
      EXPECT_TRUE(alive_.at(first)) << kind << " after the end of row " << first;
      take(kind, row, static_cast<std::uint32_t>(first), columns);
    }
  }

  void take(const std::string& kind, KonataRow& row, std::uint32_t id,
            const std::vector<std::string>& columns) {
    if (kind == "L") {
      (columns.at(2) == "0" ? row.label : row.hover) += columns.at(3);
    } else if (kind == "S") {
      auto& lane = row.lanes[std::stoi(columns.at(2))];
      EXPECT_TRUE(lane.empty() || lane.back().end != kOpen) << "two stages at a time";
      lane.push_back({columns.at(3), now_, kOpen});
    } else if (kind == "E") {
      KonataStage& stage = row.lanes.at(std::stoi(columns.at(2))).back();
      EXPECT_EQ(stage.name, columns.at(3));
      EXPECT_EQ(stage.end, kOpen);
      stage.end = now_;
    } else if (kind == "W") {
      const auto producer = static_cast<std::uint32_t>(std::stoul(columns.at(2)));
      EXPECT_LT(producer, rows.size());
      row.producers.emplace_back(producer, now_);
    } else if (kind == "R") {
      EXPECT_EQ(std::stoull(columns.at(2)), retired.size());
      EXPECT_EQ(columns.at(3), "0");
      for (const auto& [number, lane] : row.lanes) EXPECT_NE(lane.back().end, kOpen);
      row.retired = now_;
      retired.push_back(id);
      alive_.at(id) = false;
      --open_;
    } else {
      ADD_FAILURE() << "unknown: " << kind;
    }
  }

  static constexpr std::uint64_t kOpen = ~std::uint64_t{0};
  std::uint64_t now_ = 0, open_ = 0;
  std::vector<bool> alive_;
};

using Times = std::tuple<std::string, std::uint64_t, std::uint64_t>;

std::vector<Times> times_of(const std::vector<KonataStage>& stages) {
  std::vector<Times> times;
  for (const KonataStage& stage : stages) times.emplace_back(stage.name, stage.begin, stage.end);
  return times;
}

KonataLog log_of(const hw::Program& program, const SimulationResult& result) {
  const TempDirectory directory;
  PipelineView view(directory.path("run.kanata"));
  view.write(program, result);
  return KonataLog(directory.path("run.kanata"));
}

// Cycles of every row against the traces, by unit and cause against the accounts, and where the
// steps of the critical path lie.
void expect_right(const hw::Program& program, const SimulationResult& result) {
  const KonataLog log = log_of(program, result);
  ASSERT_EQ(log.rows.size(), result.traces.size());
  std::map<std::pair<std::string, std::string>, std::uint64_t> sums;
  std::uint64_t loops_end = 0;
  for (const CommandTrace& trace : result.traces) {
    const KonataRow& row = log.rows[trace.index];
    const std::string unit = block_of(trace.unit);
    EXPECT_EQ(row.begun, trace.dispatch.begun);
    EXPECT_EQ(row.retired, trace.completed);
    const KonataStage* const work = row.find("X " + unit);
    if (trace.released > trace.started) {
      ASSERT_NE(work, nullptr) << trace.index;
      EXPECT_EQ(work->begin, trace.started);
      EXPECT_EQ(work->end, trace.released);
    }
    std::uint64_t at = trace.dispatch.begun;  // no stage is missing
    for (const KonataStage& stage : row.lanes.at(0)) {
      ASSERT_EQ(stage.begin, at) << stage.name << " of " << trace.index;
      at = stage.end;
    }
    EXPECT_EQ(at, trace.completed);
    EXPECT_EQ(row.producers.size(), trace.was_blocked ? 1U : 0U);
    for (const auto& [producer, when] : row.producers) {
      EXPECT_EQ(producer, trace.blocker);
      EXPECT_EQ(when, trace.started);
    }
    const std::uint64_t loop_before =
        std::exchange(loops_end, trace.unit == hw::Unit::kLoop ? trace.completed : loops_end);
    const auto stalls = row.lanes.find(1);
    if (stalls == row.lanes.end()) continue;
    for (const KonataStage& stall : stalls->second) {
      const bool loop = trace.unit == hw::Unit::kLoop;  // up to its last write
      EXPECT_GE(stall.begin, loop ? loop_before : trace.dispatched) << trace.index;
      EXPECT_LE(stall.end, loop ? trace.completed : trace.released) << trace.index;
      sums[{unit, stall.name}] += stall.end - stall.begin;
    }
  }
  for (const hw::BlockReport& block : result.blocks) {
    const bool loops = block.name == "loops" && block.time->busy != 0;
    if (!loops && block.name != "load" && block.name != "array" && block.name != "store") continue;
    const std::map<std::string, std::string> waits{
        {"wait_load", "wait load"}, {"wait_compute", "wait array"}, {"wait_store", "wait store"}};
    for (std::size_t i = 1; i < block.time->stalled.size(); ++i) {
      const hw::TimeAccount::Stall& stall = block.time->stalled[i];
      const auto wait = waits.find(stall.cause);
      const std::string name = wait == waits.end() ? stall.cause : wait->second;
      const auto sum = std::make_pair(block.name, name);
      EXPECT_EQ(sums[sum], stall.time) << block.name << "." << stall.cause;
    }
  }
  for (const PathStep& step : explain(program, result).path) {
    if (step.command >= log.rows.size()) continue;
    const KonataRow& row = log.rows[step.command];
    const std::string unit = block_of(result.traces[step.command].unit);
    if (step.stage == Stage::kExecute || step.stage == Stage::kInFlight) {
      const KonataStage* const stage =
          row.find(step.stage == Stage::kExecute ? "X " + unit : "in_flight");
      ASSERT_NE(stage, nullptr) << step.command;
      EXPECT_LE(stage->begin, step.begin);
      EXPECT_GE(stage->end, step.end);
    }
    if (step.stage == Stage::kDispatch) {
      const KonataStage* const stage = row.find("dispatch");
      ASSERT_NE(stage, nullptr);
      EXPECT_EQ(Times("", stage->begin, stage->end), Times("", step.begin, step.end));
    }
  }
  for (std::size_t i = 1; i < log.retired.size(); ++i) {
    EXPECT_LE(log.rows[log.retired[i - 1]].retired, log.rows[log.retired[i]].retired);
  }
}

TEST(PipelineView, AgreesWithAccountsAndPathOnEveryPreset) {
  const test::Workload workload = test::encoder_workload({2, 32, 2, 64}, 16, 1);
  for (const char* const preset : {"tiny", "gemmini", "gemmini-bare", "transformer"}) {
    SCOPED_TRACE(preset);
    const hw::Machine machine = hw::find_machine(preset);
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    SimulationOptions options;
    options.functional = false;
    expect_right(mapping.program, workload.simulate(mapping, machine, options));
  }
}

// The unroller has several loops at a time; each has what passed since the one before it ended.
TEST(PipelineView, AgreesWithTheAccountOfALoopUnroller) {
  const hw::Machine machine = hw::find_machine("gemmini-bare");
  const MatmulShape shape = parse_matmul_shape("512x256x384");
  const test::Workload workload{make_matmul_graph(shape, machine.datapath, true, {}), {{}}};
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  SimulationOptions options;
  options.functional = false;
  const SimulationResult result = workload.simulate(mapping, machine, options);
  ASSERT_GT(result.traces.size(), 4U);
  ASSERT_EQ(result.traces.back().unit, hw::Unit::kLoop);
  expect_right(mapping.program, result);
}

/// A load, and a matmul that waits for it, for room in its station and for its fetch.
struct TwoCommands {
  TwoCommands() {
    program.operators.resize(1);
    program.operators[0].name = "a\tb\nc";
    program.commands.resize(3);
    program.commands[0] = {hw::cmd::Load{}};
    program.commands[1] = {hw::cmd::Matmul{}};
    hw::TimeAccount account;
    account.stalled = {{"no_command", "", 0}, {"wait_load", "", 0}, {"memory", "", 0}};
    hw::BlockReport array;
    array.name = "array";
    array.time = account;
    result.blocks.push_back(array);
    CommandTrace& load = result.traces.emplace_back();
    load.dispatch = {5, 7, 7, 7, 7};
    load.dispatched = load.started = 8;
    load.released = 20;
    load.completed = 30;
    CommandTrace& matmul = result.traces.emplace_back();
    matmul.index = 1;
    matmul.unit = hw::Unit::kCompute;
    matmul.opcode = hw::Opcode::kMatmul;
    matmul.dispatch = {8, 9, 12, 15, 18, 0, 0};
    matmul.dispatched = 19;
    matmul.started = matmul.ready = 30;
    matmul.was_blocked = true;
    matmul.stalled = {0, 0, 6};
    matmul.released = 44;
    matmul.completed = 45;
  }
  hw::Program program;
  SimulationResult result;
};

TEST(PipelineView, ShowsEveryStageStallAndWait) {
  const TwoCommands two;
  const KonataLog log = log_of(two.program, two.result);
  ASSERT_EQ(log.rows.size(), 2U);
  EXPECT_EQ(times_of(log.rows[0].lanes.at(0)),
            (std::vector<Times>{
                {"fetch", 5, 7}, {"dispatch", 7, 8}, {"X load", 8, 20}, {"in_flight", 20, 30}}));
  EXPECT_EQ(log.rows[0].lanes.count(1), 0U);
  EXPECT_EQ(times_of(log.rows[1].lanes.at(0)), (std::vector<Times>{{"fetch", 8, 9},
                                                                   {"fence", 9, 12},
                                                                   {"host", 12, 15},
                                                                   {"station", 15, 18},
                                                                   {"dispatch", 18, 19},
                                                                   {"hazard", 19, 30},
                                                                   {"X array", 30, 44},
                                                                   {"in_flight", 44, 45}}));
  EXPECT_EQ(times_of(log.rows[1].lanes.at(1)),
            (std::vector<Times>{{"wait load", 19, 30}, {"memory", 30, 36}}));
  EXPECT_EQ(log.rows[1].hover,
            R"(dispatch waited 3 cycles for command 0\ndispatch waited 3 cycles for command 0\n)");
  EXPECT_EQ(log.rows[1].producers, (decltype(log.rows[1].producers){{0, 30}}));
}

TEST(PipelineView, NamesStayInTheirColumn) {
  const TwoCommands two;
  EXPECT_EQ(log_of(two.program, two.result).rows[0].label, "0: a\\x09b\\x0ac load 0x0");
}

TEST(PipelineView, WithoutWriteThereIsNoFile) {
  const TempDirectory directory;
  { const PipelineView view(directory.path("run.kanata")); }
  EXPECT_TRUE(directory.names().empty());
  EXPECT_NE(input_error_of([&] { PipelineView view(directory.path("no/a")); }).find("no/a"),
            std::string::npos);
}

}  // namespace
}  // namespace systole::testbench
