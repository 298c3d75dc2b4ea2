#include "hw/dma/result_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/dma/operand_arrivals.h"
#include "hw/postop/store_set_up.h"
#include "tests/hw/dma/store_case.h"
#include "tests/hw/postop/random_chain.h"

namespace systole::hw {
namespace {

/// A store or a move, and what is around it.
struct ResultCase {
  Machine machine;
  Chain chain;
  StoreCommand command;
  std::uint64_t lanes = 4, word = 4;
  std::set<std::uint64_t> refused;  ///< cycles in which the scratchpad does not take results
  std::uint64_t latency = 30, latencies = 1;  ///< of requests for a tensor operand
  std::vector<std::uint64_t> answers;         ///< by write request: cycles after its last beat
  /// Others use the accumulator from this cycle on, 0: they do not; and by cycle of announcement.
  std::uint64_t sums_from = 0, sums_ahead = 0;

  [[nodiscard]] bool sums_taken(std::uint64_t cycle, std::uint64_t at) const {
    return sums_from != 0 && cycle >= sums_from && (cycle * 7 + at / lanes * 5) % 11 < 4;
  }
};

/// Who uses the accumulator, as late as it can be known.
class LateSums final : public SumReads {
 public:
  explicit LateSums(const ResultCase& of) : of_(of) {}
  [[nodiscard]] Free free(std::uint64_t from, std::uint64_t first,
                          std::uint64_t last) const override {
    EXPECT_EQ(first, of_.command.c);
    EXPECT_GE(last, first + (of_.command.m - 1) * of_.command.c_pitch + of_.command.n - 1);
    const std::uint64_t announced = known_ + of_.sums_ahead;
    if (announced <= of_.sums_from) return {announced, false};
    return {std::max(of_.sums_from, from), true};
  }
  [[nodiscard]] std::optional<bool> can_read(std::uint64_t cycle, std::uint64_t at,
                                             std::uint64_t /*last*/) const override {
    if (cycle >= known_) return std::nullopt;
    return !of_.sums_taken(cycle, at);
  }
  void reveal() { known_ += 1 + known_ % 3; }

 private:
  const ResultCase& of_;
  std::uint64_t known_ = 0;
};

struct ResultTimes {
  std::uint64_t released = 0, completed = 0;
  std::vector<std::uint64_t> issued;  ///< write requests
};

bool operator==(const ResultTimes& a, const ResultTimes& b) {
  return a.released == b.released && a.completed == b.completed && a.issued == b.issued;
}
std::ostream& operator<<(std::ostream& out, const ResultTimes& times) {
  out << "released " << times.released << " completed " << times.completed << " issued";
  for (const std::uint64_t cycle : times.issued) out << " " << cycle;
  return out;
}

StoreParams store_params_of(const ResultCase& of) {
  const RequestCut cut(of.machine.dma);
  return {of.lanes,
          {cut, of.word, of.machine.dma.outstanding_writes, SlotOrder::kIssue,
           store_queue_beats(of.machine.dma.request_bytes, of.machine.bus.width_bytes)},
          {cut, of.machine.dma.outstanding_reads, SlotOrder::kIssue, 2}};
}

StoreSchedule rows_in_gates(const ResultCase& of) {
  StoreSurroundings around = test::nothing_around();
  around.write = [&](std::uint64_t cycle, std::uint64_t, std::uint64_t) {
    return of.refused.count(cycle) == 0;
  };
  around.no_port = [&](std::uint64_t cycle, std::uint64_t at) { return of.sums_taken(cycle, at); };
  std::size_t answered = 0;
  around.memory.done = [&](const WriteRequest& request) {
    return request.sent + of.answers.at(answered++);
  };
  std::uint64_t done = 0;
  around.operands.done = [&](const ReadRequest& request) {
    done = std::max(done + 1, request.issued + of.latency + request.address / 64 % of.latencies);
    return done;
  };
  return store_times({of.chain}, {of.command}, store_params_of(of), around);
}

/// LateOperands that become known request by request, as late as it can be.
class LateOperands {
 public:
  LateOperands(const ResultCase& of, const std::vector<ReadRequest>& requests)
      : requests_(requests),
        arrivals_(of.command.m, of.command.n, of.lanes, of.lanes),
        types_(tensor_types(of.chain)),
        row_bytes_(of.command.n),
        rows_(of.command.m),
        lanes_(of.lanes) {
    if (!types_.empty()) begin_rows();
  }
  [[nodiscard]] InputTimes times(const SumReads* sums) const {
    InputTimes times;
    times.sums = sums;
    if (types_.empty()) return times;
    if (next_ < requests_.size()) times.not_before = first_beat();
    arrivals_.tell(times);
    return times;
  }
  void reveal() {
    const ReadRequest& request = requests_.at(next_++);
    arrivals_.arrive(request.address, request.bytes, request.done);
    left_ -= request.bytes;
    if (left_ == 0 && ++tensor_ < types_.size()) begin_rows();
  }

 private:
  void begin_rows() {
    const std::uint64_t element = bytes_of(types_[tensor_]);
    arrivals_.begin_rows(element, tensor_ + 1 == types_.size());
    left_ = row_bytes_ * rows_ * element;
  }
  [[nodiscard]] std::uint64_t first_beat() const {
    // No later request has a beat before the first of this one.
    return local_writes(requests_[next_], lanes_).front().cycle;
  }

  const std::vector<ReadRequest>& requests_;
  OperandArrivals arrivals_;
  std::vector<DType> types_;
  std::uint64_t row_bytes_, rows_, lanes_;
  std::size_t next_ = 0, tensor_ = 0;
  std::uint64_t left_ = 0;
};

/// The same by ResultRows.
ResultTimes rows_by_request(const ResultCase& of, const std::vector<ReadRequest>& requests) {
  const StoreCommand& command = of.command;
  const auto lanes = static_cast<std::uint32_t>(of.lanes);
  const StoreSetUp::Command words = set_up_command(of.chain, command.n, of.lanes, of.word, 0, 0, 0);
  const std::uint64_t set_up = 1 + std::max(words.stages * kMicrocodeWords, words.parameter_words);
  const ResultFlow::Tile tile{command.m, command.n, command.c, command.c_pitch};
  ResultFlow flow(chain_cycles(of.chain, command.m, command.n, lanes), of.chain, tile, lanes,
                  kAccumulatorReadCycles,
                  command.whole ? ResultFlow::Inputs::kWhole : ResultFlow::Inputs::kSums);
  flow.start(command.started, set_up);
  const std::uint64_t bytes = command.n * bytes_of(of.chain.out);
  ResultRows rows(flow, {command.n, of.lanes, 8 * bytes_of(of.chain.out), of.word},
                  {command.to, command.to_pitch, command.m, bytes});
  LateOperands operands(of, requests);
  LateSums sums(of);
  const auto inputs = [&] { return operands.times(of.sums_from == 0 ? nullptr : &sums); };
  ResultTimes times;
  const auto know = [&](const auto& ask) {
    for (;;) {
      const std::optional<std::uint64_t> cycle = ask();
      if (cycle) return *cycle;
      rows.waits_for_sums() ? sums.reveal() : operands.reveal();
    }
  };
  if (command.move) {
    while (rows.left().size() < command.m) {
      std::uint64_t cycle = know([&] { return rows.next(inputs()); });
      while (of.refused.count(cycle) != 0) ++cycle;
      rows.take(cycle);
    }
    times.completed = rows.left().back();
  } else {
    StoreQueue queue(of.machine);
    const RequestCut cut(of.machine.dma);
    std::uint64_t next = 0, sent = 0;
    std::vector<std::uint64_t> done;
    for (std::uint64_t row = 0; row < command.m; ++row) {
      const std::uint64_t address = command.to + row * command.to_pitch;
      cut.for_each(address, bytes, [&](std::uint64_t at, std::uint64_t length) {
        const std::uint64_t beats = queue.beats(address + at, length);
        const auto ask = [&] { return rows.request(length, queue, inputs()); };
        std::uint64_t cycle = std::max(next, know(ask));
        EXPECT_EQ(ask(), know(ask)) << "again";
        const std::size_t slots = of.machine.dma.outstanding_writes;
        if (done.size() >= slots) cycle = std::max(cycle, done[done.size() - slots]);
        rows.issued(cycle, address + at, length, queue);
        next = cycle + 1;
        sent = std::max(cycle, sent) + beats;
        done.push_back(sent + of.answers.at(done.size()));
        times.completed = std::max(times.completed, done.back());
        times.issued.push_back(cycle);
      });
    }
  }
  times.released = rows.sums_read().value_or(0);
  return times;
}

ResultCase random_result_case(test::Random& random, std::size_t tensors, StageOp last) {
  ResultCase of;
  of.lanes = 4U << random() % 3;
  of.word = std::min<std::uint64_t>(of.lanes, 4U << random() % 3);
  of.machine.bus.width_bytes = static_cast<std::uint32_t>(of.word);
  of.machine.dma.request_bytes = static_cast<std::uint32_t>(of.word << (1 + random() % 3));
  of.machine.dma.outstanding_writes = static_cast<std::uint32_t>(1 + random() % 6);
  of.machine.dma.outstanding_reads = static_cast<std::uint32_t>(1 + random() % 6);
  of.chain.out = static_cast<DType>(random() % kDTypes);
  for (std::size_t i = random() % 3; i > 0; --i) of.chain.stages.emplace_back();
  for (std::size_t i = 0; i < tensors; ++i) {
    Stage add;
    add.operand = Operand::kTensor;
    add.tensor = random() % 2 == 0 ? DType::kS8 : DType::kS16;
    of.chain.stages.push_back(add);
  }
  if (last == StageOp::kDivideRowSum) {
    const std::size_t at = random() % (of.chain.stages.size() + 1);
    of.chain.stages.insert(of.chain.stages.begin() + static_cast<std::ptrdiff_t>(at),
                           test::random_stage(random, last));
  } else if (last != StageOp::kAdd) {
    of.chain.stages.push_back(test::random_stage(random, last));
  }
  StoreCommand& command = of.command;
  command.started = command.dispatched = command.readable = 5 + random() % 20;
  command.move = random() % 2 == 0;
  command.whole = random() % 8 == 0;
  command.m = 1 + random() % 30;
  command.n = 1 + random() % 60;
  command.c = random() % 64;
  command.c_pitch = command.n + random() % 20;
  if (random() % 2 == 0) of.sums_from = 1 + random() % 400;
  of.sums_ahead = random() % 2 == 0 ? 0 : random() % 60;
  command.to = random() % 64;
  command.to_pitch = 1024 + random() % 64;
  for (std::size_t i = 0; i < tensors; ++i)
    command.tensors.at(i) = {65536 * i + random() % 64, 512 + random() % 8};
  of.latency = 10 + random() % 100;
  of.latencies = 1 + random() % 30;
  const std::uint64_t least = random() % 2 == 0 ? 2 : 40;
  for (std::size_t i = 0; i < 8000; ++i) of.answers.push_back(least + random() % least);
  for (int k = random() % 2 == 0 ? 4 : 0; k > 0; --k) {
    const std::uint64_t from = random() % 800, until = from + 1 + random() % 40;
    for (std::uint64_t cycle = from; cycle < until; ++cycle) of.refused.insert(cycle);
  }
  return of;
}

class ResultRowsTest : public ::testing::TestWithParam<StageOp> {};

// Of every request, and of the end of what holds the accumulator.
TEST_P(ResultRowsTest, LeaveAsThoseOfTheGates) {
  test::Random random(7);
  for (int i = 0; i < 4'000; ++i) {
    const std::size_t tensors = random() % 3;
    const ResultCase of = random_result_case(random, tensors, GetParam());
    const StoreSchedule schedule = rows_in_gates(of);
    ResultTimes gates{schedule.times[0].released, schedule.times[0].completed, {}};
    for (const WriteRequest& request : schedule.requests) gates.issued.push_back(request.issued);
    ASSERT_EQ(rows_by_request(of, schedule.operands), gates)
        << i << ": " << (of.command.move ? "move " : "store ") << of.command.m << " x "
        << of.command.n << ", lanes " << of.lanes << ", word " << of.word << ", tensors " << tensors
        << (of.command.whole ? ", whole" : "") << ", stages " << of.chain.stages.size()
        << ", element " << bytes_of(of.chain.out);
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, ResultRowsTest,
                         ::testing::Values(StageOp::kAdd, StageOp::kDivideRowSum, StageOp::kSoftmax,
                                           StageOp::kLayerNorm, StageOp::kLayerNormApply),
                         [](const auto& last) { return std::string(stage_info(last.param).name); });

}  // namespace
}  // namespace systole::hw
