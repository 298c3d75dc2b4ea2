#include "reproduce/ita/ita.h"

#include <cstdio>
#include <string>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "reproduce/published.h"

namespace systole::testbench {
namespace {

namespace stream = hw::stream;
using stream::LayerShape;
using stream::Work;

// MobileBERT (arXiv 2004.02984, Tab. 1).
constexpr std::size_t kBlocks = 24, kBody = 512, kBottleneck = 128, kHeads = 4, kFeatures = 32,
                      kFeedForwards = 4, kHidden = 512, kTokens = 128;

const PublishedPaper& ita_paper() { return PublishedPaper::load("ita"); }

/// Cycles of layers one after the other on one core.
std::vector<double> cycles_of(const std::vector<std::vector<Work>>& layers,
                              const hw::Machine::Stream& machine) {
  stream::StreamCore core(machine);
  std::vector<double> cycles;
  for (const std::vector<Work>& layer : layers) {
    if (!cycles.empty()) core.step({});  // the start of the next layer
    const std::uint64_t begin = core.cycle();
    core.begin(layer, nullptr);
    while (core.step({})) continue;
    cycles.push_back(static_cast<double>(core.cycle() - begin));
  }
  return cycles;
}

ReproductionSection layers_section(const hw::Machine::Stream& machine) {
  ReproductionSection section = ita_paper().section("layers");
  const PublishedTable& table = ita_paper().table("layers");
  for (const PublishedTable::Row& row : table.rows) {
    LayerShape shape;
    if (std::sscanf(row.name.c_str(), "%zu/%zu/%zu/%zu", &shape.sequence, &shape.embedding,
                    &shape.projection, &shape.hidden) != 4) {
      throw hw::InputError(table.place + ": " + row.name + ": expected S/E/P/F");
    }
    section.add(
        table.compare_row(row.name, cycles_of({stream::attention_work(shape, machine.length),
                                               stream::feed_forward_work(shape, machine.length)},
                                              machine)));
  }
  return section;
}

ReproductionSection mobilebert_section(const hw::Machine& machine) {
  const auto macs = static_cast<double>(kBlocks * mobilebert_block_macs(kTokens));
  double cycles = 0;
  for (const double layer :
       cycles_of(mobilebert_block(kTokens, machine.stream.length), machine.stream)) {
    cycles += (layer + 1) * kBlocks;
  }
  const double watts = 52.0e-3, rate = ita_paper().figure("rate").value;
  const double units = static_cast<double>(machine.stream.units) * machine.stream.length;
  return ita_paper().section("mobilebert", {{"operations", 2 * macs / 1e9},
                                            {"least", macs / units / 1e6},
                                            {"cycles", cycles / 1e6},
                                            {"per cycle", 2 * macs / cycles},
                                            {"clock", cycles * rate / 1e6},
                                            {"rate", machine.core.clock_mhz * 1e6 / cycles},
                                            {"energy", watts / rate * 1e3},
                                            {"efficiency", 154e9 / watts / 1e12}});
}

}  // namespace

std::vector<std::vector<Work>> mobilebert_block(std::size_t tokens, std::size_t length) {
  const auto product = [&](std::size_t n, std::size_t k) {
    return stream::product_work(tokens, n, k, length);
  };
  std::vector<std::vector<Work>> layers = {product(kBottleneck, kBody),   // of the residual stream
                                           product(kBottleneck, kBody)};  // shared by Q and K
  // The values are of the body's width.
  std::vector<Work> head = stream::attention_work({tokens, kBottleneck, kFeatures, 0}, length);
  head[static_cast<std::size_t>(stream::Phase::kV)].inner = kBody / length;
  layers.insert(layers.end(), kHeads, head);
  layers.insert(layers.end(), kFeedForwards,
                stream::feed_forward_work({tokens, kBottleneck, 0, kHidden}, length));
  layers.push_back(product(kBody, kBottleneck));
  return layers;
}

std::uint64_t mobilebert_block_macs(std::uint64_t tokens) {
  const std::uint64_t bottlenecks = 3 * kBody * kBottleneck;
  const std::uint64_t attention =
      kHeads * kFeatures * (2 * kBottleneck + kBody + 2 * tokens + kBottleneck);
  return tokens * (bottlenecks + attention + kFeedForwards * 2 * kBottleneck * kHidden);
}

Reproduction reproduce_ita() {
  const hw::Machine machine = hw::find_machine("ita");
  Reproduction reproduction = ita_paper().reproduction();
  reproduction.add(layers_section(machine.stream));
  reproduction.add(mobilebert_section(machine));
  return reproduction;
}

}  // namespace systole::testbench
