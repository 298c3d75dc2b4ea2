/// Host speed of fused chains: one composed chain over a tensor, beside a pass per stage through
/// memory, and whole networks with fusion off, after anchors and everywhere.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <systemc>
#include <vector>

#include "bench/cpu_time.h"
#include "bench/native_encoder.h"
#include "hw/description/machine_file.h"
#include "hw/function/gelu.h"
#include "hw/function/layernorm.h"
#include "hw/postop/chain_kernel.h"
#include "mapper/fuse/split_norms.h"
#include "mapper/mapping.h"
#include "model/graph/stages.h"
#include "testbench/common/child_process.h"
#include "testbench/network/networks.h"
#include "testbench/report/fusion_run.h"
#include "testbench/run/simulation.h"

namespace systole::bench {
namespace {

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

constexpr int kSamples = 7;
constexpr std::size_t kRows = 512, kCols = 768;

/// Seconds of the fastest of several runs, in turns with those of `other`.
struct Pair {
  double first = 1e9, second = 1e9;
};
Pair in_turns(const std::function<void()>& first, const std::function<void()>& second) {
  Pair best;
  const auto time_of = [](const std::function<void()>& work) {
    const double begin = cpu_seconds();
    work();
    return cpu_seconds() - begin;
  };
  for (int i = 0; i < kSamples; ++i) {
    best.first = std::min(best.first, time_of(first));
    best.second = std::min(best.second, time_of(second));
  }
  return best;
}

/// A tensor of int32 and all operands that a chain may want.
class ChainTensor {
 public:
  ChainTensor()
      : input_(kRows * kCols),
        parameters_(2 * kCols),
        tensors_(hw::kMaxTensorOperands, std::vector<std::int16_t>(kRows * kCols)),
        statistics_(4 * kRows),
        between_(2, std::vector<std::int32_t>(kRows * kCols)),
        fused_(kRows * kCols) {
    std::mt19937 random(1);
    for (std::int32_t& x : input_) x = static_cast<std::int32_t>(random()) >> 12;
    for (std::size_t i = 0; i < kCols; ++i) {
      parameters_[i] = static_cast<std::int32_t>(random() % 32768);
      parameters_[kCols + i] = static_cast<std::int32_t>(random()) >> 12;
    }
    for (auto& tensor : tensors_) {
      for (std::int16_t& x : tensor) x = static_cast<std::int16_t>(random());
    }
    for (std::size_t row = 0; row < kRows; ++row) {  // s64 sum 0, u64 sum of squares 2^40
      statistics_[4 * row + 3] = 1U << 8;
    }
  }

  /// Per stage a pass through memory; the last one writes the chain's type.
  void run_apart(const std::vector<hw::ChainKernel>& passes) {
    const std::int32_t* from = input_.data();
    std::size_t tensor = 0;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      std::int32_t* const to = between_[i % 2].data();
      run(passes[i], from, to, tensor);
      tensor += hw::tensor_operands(passes[i].chain());
      from = to;
    }
  }
  void run_fused(const hw::ChainKernel& kernel) { run(kernel, input_.data(), fused_.data(), 0); }
  /// The same, composed for every tile of 64 rows anew.
  void run_composing(const hw::Chain& chain) {
    constexpr std::size_t kTileRows = 64;
    for (std::size_t row = 0; row < kRows; row += kTileRows) {
      run(hw::ChainKernel(chain), input_.data(), fused_.data(), 0, row, kTileRows);
    }
  }
  void run_tiles(const hw::ChainKernel& kernel) {
    constexpr std::size_t kTileRows = 64;
    for (std::size_t row = 0; row < kRows; row += kTileRows) {
      run(kernel, input_.data(), fused_.data(), 0, row, kTileRows);
    }
  }
  [[nodiscard]] bool equal(std::size_t passes) const {
    return between_[(passes - 1) % 2] == fused_;
  }

 private:
  void run(const hw::ChainKernel& kernel, const std::int32_t* from, std::int32_t* to,
           std::size_t tensor, std::size_t row = 0, std::size_t rows = kRows) {
    hw::ChainOperands operands;
    operands.accumulator = from + row * kCols;
    operands.accumulator_pitch = kCols;
    operands.parameters = parameters_.data();
    for (std::size_t i = 0; tensor + i < tensors_.size(); ++i) {
      operands.tensors.at(i) = {tensors_[tensor + i].data() + row * kCols,
                                kCols * sizeof(std::int16_t)};
    }
    operands.row_statistics = statistics_.data() + 4 * row;
    operands.out = to + row * kCols;
    operands.out_pitch = kCols * sizeof(std::int32_t);
    operands.rows = rows;
    operands.cols = kCols;
    kernel.apply(operands);
  }

  std::vector<std::int32_t> input_, parameters_;
  std::vector<std::vector<std::int16_t>> tensors_;
  std::vector<std::uint32_t> statistics_;
  std::vector<std::vector<std::int32_t>> between_;
  std::vector<std::int32_t> fused_;
};

struct NamedChain {
  const char* name;
  std::vector<hw::Stage> stages;
};

std::vector<NamedChain> chains() {
  constexpr auto kHalfUp = hw::Rounding::kHalfUp;
  const hw::Stage requantise = model::requantise_stage({43690, 26}, 8, kHalfUp);
  const hw::Stage gelu = model::gelu_stage(hw::make_gelu_constants(0.04, 0.03), 8);
  const hw::Stage residual = model::add_tensor_stage(hw::DType::kS16, {}, 31, kHalfUp);
  hw::Stage product = hw::default_stage(hw::StageOp::kMul);
  product.operand = hw::Operand::kTensor;
  product.imm = {15, -32768, 32767};
  hw::Stage apply = hw::default_stage(hw::StageOp::kLayerNormApply);
  apply.imm = {15, 20, -127, 127, kCols};
  const hw::Stage bias = model::bias_stage();
  return {
      {"product, sum", {product, residual}},
      {"bias, requantise, gelu, requantise, residual",
       {bias, requantise, gelu, requantise, residual}},
      {"LayerNorm apply, requantise", {apply, requantise}},
      {"eight stages",
       {bias, requantise, product, residual, gelu, requantise, residual, model::clamp_stage(8)}}};
}

bool report_chains() {
  std::printf("%-46s %9s %9s %7s %9s\n", "chain, 512 x 768", "fused ns", "apart ns", "ratio",
              "composing");
  bool good = true;
  ChainTensor tensor;
  for (const NamedChain& named : chains()) {
    const hw::Chain chain{named.stages, hw::DType::kS32};
    const hw::ChainKernel kernel(chain);
    std::vector<hw::ChainKernel> passes;
    for (const hw::Stage& stage : named.stages) {
      passes.emplace_back(hw::Chain{{stage}, hw::DType::kS32});
    }
    const Pair time =
        in_turns([&] { tensor.run_fused(kernel); }, [&] { tensor.run_apart(passes); });
    good = good && tensor.equal(passes.size());
    const Pair composing =
        in_turns([&] { tensor.run_tiles(kernel); }, [&] { tensor.run_composing(chain); });
    const double elements = kRows * kCols;
    std::printf("%-46s %9.3f %9.3f %6.2fx %8.3fx\n", named.name, 1e9 * time.first / elements,
                1e9 * time.second / elements, time.second / time.first,
                composing.second / composing.first);
  }
  return good;
}

/// A network with one level of fusion.
struct Fused {
  hw::Machine machine;
  model::Graph graph;
  mapper::Mapping mapping;
};

Fused fused_network(const testbench::Network& network, hw::FusionLevel level) {
  Fused fused;
  fused.machine = testbench::with_fusion(hw::find_machine("transformer"), level);
  fused.graph = mapper::split_norms(network.graph, fused.machine);
  fused.mapping = mapper::map_graph(network.graph, fused.machine);
  return fused;
}

double simulated_seconds(const Fused& fused, const testbench::Bytes& input) {
  const testbench::Bytes bytes = testbench::run_in_child([&] {
    // Standard output belongs to the figures.
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    testbench::SimulationOptions options;
    const std::vector<testbench::Bytes> inputs(20, input);
    const double begin = cpu_seconds();
    static_cast<void>(testbench::simulate(fused.graph, fused.mapping, fused.machine,
                                          tlm_model::make_models(fused.machine), inputs, options));
    const double seconds = (cpu_seconds() - begin) / static_cast<double>(inputs.size());
    testbench::Bytes result(sizeof seconds);
    std::memcpy(result.data(), &seconds, sizeof seconds);
    return result;
  });
  double seconds = 0;
  std::memcpy(&seconds, bytes.data(), sizeof seconds);
  return seconds;
}

bool report_network(const std::string& name) {
  const testbench::Network network = testbench::load_network(name, hw::find_machine("transformer"));
  const model::Dataset pictures =
      model::load_images(testbench::default_data(), network.vit->shape.pictures());
  const testbench::Bytes input = testbench::network_inputs(network, pictures, 1).front();
  std::printf("\n%-12s %12s %12s %10s\n", name.c_str(), "native us", "simulated us", "over off");
  bool good = true;
  std::vector<std::uint8_t> expected;
  double off = 0;
  for (const testbench::FusionStep& step : testbench::kFusionStepNames) {
    const Fused fused = fused_network(network, step.level);
    NativeEncoder native(fused.graph, fused.mapping.groups);
    const std::vector<std::uint8_t> output = native.run(input);
    if (expected.empty()) expected = output;
    good = good && output == expected;
    double seconds = 1e9, simulated = 1e9;
    for (int i = 0; i < kSamples; ++i) {
      constexpr int kInferences = 20;
      const double begin = cpu_seconds();
      for (int k = 0; k < kInferences; ++k) native.run(input);
      seconds = std::min(seconds, (cpu_seconds() - begin) / kInferences);
      simulated = std::min(simulated, simulated_seconds(fused, input));
    }
    if (off == 0) off = seconds;
    std::printf("%-12s %12.1f %12.1f %9.2fx\n", step.name, 1e6 * seconds, 1e6 * simulated,
                off / seconds);
  }
  return good;
}

}  // namespace
}  // namespace systole::bench

int sc_main(int, char**) {
  const bool chains = systole::bench::report_chains();
  const bool network = systole::bench::report_network("vit65");
  if (!chains || !network) std::printf("fused and unfused results differ\n");
  return chains && network ? 0 : 1;
}
