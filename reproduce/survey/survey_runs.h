#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "testbench/network/matmul_graph.h"

/// What `systole reproduce survey` simulates, timing alone.
namespace systole::testbench {

/// Products of a layer of BERT-Base, and how many of each. Those with weights have biases, and
/// those in front of a LayerNorm leave int32.
struct LayerProduct {
  MatmulShape shape;
  std::uint32_t count = 0;
  MatmulResult result;
};
[[nodiscard]] std::vector<LayerProduct> bert_base_products(std::uint32_t length);

/// A product as a program of its own on the baseline machine "gemmini".
struct ProductRun {
  LayerProduct product;
  std::uint64_t cycles = 0;  ///< start to interrupt
  [[nodiscard]] double utilisation(double macs_per_cycle) const {
    return static_cast<double>(product.shape.macs()) / macs_per_cycle / static_cast<double>(cycles);
  }
};

/// The products of a layer, with these sizes of scratchpad and accumulator.
struct SplitRun {
  std::uint32_t scratchpad_kib = 0, accumulator_kib = 0;
  std::vector<ProductRun> products;
  [[nodiscard]] double layer_cycles() const;
  /// Of 256 MACs, all products of the layer together.
  [[nodiscard]] double utilisation() const;
};

/// The products of 128 tokens with the sizes that RTL was measured with, 256 and 64 KiB; products
/// alone, without biases.
[[nodiscard]] SplitRun run_measured_products();
/// The nine machines of Fig. 13 with the products of 512 tokens; the accumulator changes last.
[[nodiscard]] std::vector<SplitRun> run_splits();

/// Encoders of BERT-Base on the survey's optimised machine, "survey", and on its baseline,
/// "gemmini". Documents:
/// | name           | unit    | meaning                                              |
/// |----------------|---------|------------------------------------------------------|
/// | cycles         | cycles  | of an inference, start to interrupt                  |
/// | layers         |         |                                                      |
/// | macs           | MAC     | of an inference                                      |
/// | macs_per_cycle | MAC     | that the array has                                   |
/// | softmax_reads  | vectors | counted by the post-op unit                          |
/// | classes        | cycles  | by class (testbench/run/class_cycles.h)              |
struct EncoderRuns {
  using Json = nlohmann::ordered_json;
  /// In the order of Gemmini's library (reproduce/study/library_order.h).
  Json at_128, at_256, at_512;
  Json deferred;   ///< the last of them, division after the product with V
  Json unswapped;  ///< 512 tokens, in BERT's own order
  Json fused;      ///< the same, everything fused that can be
  Json baseline;   ///< 512 tokens
};
[[nodiscard]] EncoderRuns run_encoders();

}  // namespace systole::testbench
