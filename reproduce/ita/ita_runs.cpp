#include <algorithm>
#include <utility>

#include "reproduce/ita/ita.h"

namespace systole::testbench {
namespace {

namespace stream = hw::stream;

constexpr std::size_t kMobileBertLayers = 24;
constexpr std::size_t kWidth = 512, kBottleneck = 128, kMobileBertHeads = 4, kNetworks = 4,
                      kHidden = 512;
constexpr std::size_t kMobileBertFeatures = kBottleneck / kMobileBertHeads;
/// Of a token and its two neighbours, which are transformed together.
constexpr std::size_t kEmbeddings = 3 * 128;

/// m x k by k x n.
MobileBertProgram matmul_program(std::string name, std::size_t m, std::size_t k, std::size_t n,
                                 std::size_t length) {
  return {std::move(name), stream::product_work(m, n, k, length), std::uint64_t{m} * k * n};
}

/// Scores and context of a head whose queries, keys and values are there.
MobileBertProgram attention_alone(std::size_t tokens, std::size_t length) {
  MobileBertProgram program{
      "scores, context", {}, std::uint64_t{2} * tokens * tokens * kMobileBertFeatures};
  for (const stream::Work& work :
       stream::attention_work({tokens, kBottleneck, kMobileBertFeatures, 0}, length)) {
    if (work.phase == stream::Phase::kQk || work.phase == stream::Phase::kAv) {
      program.works.push_back(work);
    }
  }
  return program;
}

}  // namespace

ProgramRunner::ProgramRunner(const hw::Machine& machine, std::optional<std::uint64_t> seed)
    : core_(machine.stream) {
  if (seed) random_.emplace(*seed);
}

stream::Streams ProgramRunner::streams() {
  if (!random_) return {};
  const std::uint64_t bits = (*random_)();
  return {(bits & 1) != 0, (bits & 2) != 0, true, (bits & 4) != 0};
}

std::uint64_t ProgramRunner::run(std::vector<stream::Work> works) {
  // A start is seen in the cycle after it, and not before the last result has left.
  if (core_.cycle() != 0) core_.step(streams());
  const std::uint64_t begin = core_.cycle();
  core_.begin(std::move(works), nullptr);
  while (core_.step(streams())) continue;
  return core_.cycle() - begin;
}

std::vector<MobileBertProgram> mobilebert_layer(std::size_t tokens, std::size_t length) {
  std::vector<MobileBertProgram> layer;
  // One feeds queries and keys, the other one the residual path of the feed-forward networks.
  for (int i = 0; i < 2; ++i) {
    layer.push_back(matmul_program("bottlenecks in", tokens, kWidth, kBottleneck, length));
  }
  for (std::size_t head = 0; head < kMobileBertHeads; ++head) {
    layer.push_back(
        matmul_program("queries, keys", tokens, kBottleneck, kMobileBertFeatures, length));
    layer.push_back(
        matmul_program("queries, keys", tokens, kBottleneck, kMobileBertFeatures, length));
    layer.push_back(matmul_program("values", tokens, kWidth, kMobileBertFeatures, length));
    layer.push_back(attention_alone(tokens, length));
    layer.push_back(
        matmul_program("attention output", tokens, kMobileBertFeatures, kBottleneck, length));
  }
  for (std::size_t i = 0; i < kNetworks; ++i) {
    layer.push_back({"feed-forward",
                     stream::feed_forward_work({tokens, kBottleneck, 0, kHidden}, length),
                     std::uint64_t{2} * tokens * kBottleneck * kHidden});
  }
  layer.push_back(matmul_program("bottleneck out", tokens, kBottleneck, kWidth, length));
  return layer;
}

MobileBertRun run_mobilebert(std::size_t tokens, const hw::Machine& machine) {
  MobileBertRun run;
  ProgramRunner runner(machine);
  const auto add = [&](const MobileBertProgram& program) {
    const std::uint64_t begin = runner.cycles();
    runner.run(program.works);
    auto line = std::find_if(run.lines.begin(), run.lines.end(),
                             [&](const auto& each) { return each.name == program.name; });
    if (line == run.lines.end()) line = run.lines.insert(line, {program.name});
    ++line->programs;
    line->macs += program.macs;
    line->cycles += runner.cycles() - begin;
    run.macs += program.macs;
  };
  const std::size_t length = machine.stream.length;
  add(matmul_program("embeddings", tokens, kEmbeddings, kWidth, length));
  const std::vector<MobileBertProgram> layer = mobilebert_layer(tokens, length);
  for (std::size_t i = 0; i < kMobileBertLayers; ++i) {
    for (const MobileBertProgram& program : layer) add(program);
  }
  run.cycles = runner.cycles();
  return run;
}

}  // namespace systole::testbench
