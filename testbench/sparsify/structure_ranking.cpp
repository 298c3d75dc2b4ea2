#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "model/prune/prune_graph.h"
#include "testbench/network/tensors.h"
#include "testbench/sparsify/structure_curve.h"

namespace systole::testbench {
namespace {

/// Calibration inputs on which each token is left out.
constexpr std::size_t kTokenInputs = 24;

std::string block_name(std::uint32_t layer, const char* part) {
  return "blocks." + std::to_string(layer) + "." + part;
}

/// Sums of magnitudes of the rows of a constant matrix: what reads each of its inputs.
std::vector<double> row_weights(const model::Tensor& weight) {
  std::vector<double> sums(weight.rows);
  for (std::size_t i = 0; i < weight.data.size(); ++i) {
    sums[i / weight.cols] += std::abs(int{static_cast<std::int8_t>(weight.data[i])});
  }
  return sums;
}

/// Rows of a row-major matrix in another order: row i of the result is row order[i].
template <typename T>
std::vector<T> with_rows(const std::vector<T>& values, const std::vector<std::uint32_t>& order) {
  const std::size_t width = values.size() / order.size();
  std::vector<T> result;
  result.reserve(values.size());
  for (const std::uint32_t row : order) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(row * width);
    result.insert(result.end(), from, from + static_cast<std::ptrdiff_t>(width));
  }
  return result;
}

/// Of tokens, without the first one: of the rows of pictures that have a class token before them.
std::vector<std::uint32_t> without_first(const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> rest;
  for (const std::uint32_t token : order) {
    if (token != 0) rest.push_back(token - 1);
  }
  return rest;
}

}  // namespace

const char* structure_name(Structure structure) {
  if (structure == Structure::kHeads) return "heads";
  return structure == Structure::kNeurons ? "neurons" : "tokens";
}

StructureRanking::StructureRanking(const IntegerSubject& subject, Structure structure)
    : subject_(subject), structure_(structure) {
  const model::Graph& graph = subject.graph;
  const bool tokens = structure == Structure::kTokens;
  if (tokens && (subject.layers < 2 || subject.masked)) {
    throw hw::InputError("--structure tokens: " + graph.name +
                         (subject.masked ? " has masks of its tokens, expected a network without"
                                         : " has one block, expected tokens to drop after it"));
  }
  if (tokens) {
    rank_tokens();
  } else {
    rank_columns();
  }
  if (parts_ == 0) {
    throw hw::InputError(std::string("--structure ") + structure_name(structure) + ": " +
                         graph.name + " has one of them where one stays, expected more");
  }
}

std::vector<std::vector<double>> StructureRanking::column_sums() const {
  std::vector<std::vector<double>> columns(subject_.layers);
  model::Reference reference(subject_.graph, {true, false});
  for (const std::vector<std::int32_t>& values : subject_.calibration) {
    reference.set_input(subject_.graph.tensors[input_tensor(subject_.graph)].name, values);
    reference.run();
    for (std::uint32_t layer = 0; layer < subject_.layers; ++layer) {
      const model::Tensor& tensor = subject_.graph.tensors[tensors_[layer]];
      columns[layer].resize(tensor.cols);
      const std::vector<std::int32_t> codes = reference.values(tensor.name);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        columns[layer][i % tensor.cols] += std::abs(codes[i]);
      }
    }
  }
  return columns;
}

void StructureRanking::rank_columns() {
  const bool heads = structure_ == Structure::kHeads;
  for (std::uint32_t layer = 0; layer < subject_.layers; ++layer) {
    const std::string name = block_name(layer, heads ? "attn.context" : "mlp.gelu");
    tensors_.push_back(model::find_tensor(subject_.graph, name));
  }
  const std::vector<std::vector<double>> columns = column_sums();
  for (std::uint32_t layer = 0; layer < subject_.layers; ++layer) {
    const char* const reader = heads ? "attn.proj.weight" : "mlp.fc2.weight";
    const std::vector<double> weights = row_weights(
        subject_.graph.tensors[model::find_tensor(subject_.graph, block_name(layer, reader))]);
    const std::size_t count = heads ? subject_.heads : columns[layer].size();
    const std::size_t width = columns[layer].size() / count;
    std::vector<Part> parts(count);
    double all = 0.0;
    for (std::size_t i = 0; i < columns[layer].size(); ++i) {
      Part& part = parts[i / width];
      part.layer = layer;
      part.index = static_cast<std::uint32_t>(i / width);
      part.importance += columns[layer][i] * weights.at(i);
      all += columns[layer][i] * weights[i];
    }
    for (Part& part : parts) part.importance /= all > 0 ? all : 1.0;
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.importance < b.importance; });
    parts.pop_back();  // the most important one stays
    order_.insert(order_.end(), parts.begin(), parts.end());
  }
  std::stable_sort(order_.begin(), order_.end(),
                   [](const Part& a, const Part& b) { return a.importance < b.importance; });
  parts_ = order_.size();
}

void StructureRanking::rank_tokens() {
  parts_ = subject_.tokens - 1;
  std::vector<std::uint32_t> order(subject_.tokens);
  std::iota(order.begin(), order.end(), 0U);
  const std::size_t inputs = std::min(subject_.calibration.size(), kTokenInputs);
  std::vector<std::vector<std::int32_t>> whole(inputs);
  model::Reference complete(subject_.graph, {true, false});
  const std::string& in = subject_.graph.tensors[input_tensor(subject_.graph)].name;
  const std::string& out = subject_.graph.tensors[output_tensor(subject_.graph)].name;
  for (std::size_t i = 0; i < inputs; ++i) {
    complete.set_input(in, subject_.calibration[i]);
    complete.run();
    whole[i] = complete.values(out);
  }
  std::vector<double> loss(subject_.tokens, 0.0);
  for (std::size_t token = 1; token < subject_.tokens; ++token) {
    tokens_ = order;
    std::rotate(tokens_.begin() + static_cast<std::ptrdiff_t>(token),
                tokens_.begin() + static_cast<std::ptrdiff_t>(token) + 1, tokens_.end());
    const model::Graph graph = without_tokens(1);
    model::Reference reference(graph, {true, false});
    for (std::size_t i = 0; i < inputs; ++i) {
      reference.set_input(in, reordered(subject_.calibration[i]));
      reference.run();
      const std::vector<std::int32_t> output = reference.values(out);
      const std::vector<std::int32_t> expected = reordered_output(whole[i], output.size());
      for (std::size_t k = 0; k < output.size(); ++k) {
        loss[token] += std::pow(static_cast<double>(output[k]) - expected[k], 2);
      }
    }
  }
  tokens_ = std::move(order);
  std::stable_sort(tokens_.begin() + 1, tokens_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return loss[a] > loss[b]; });
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> StructureRanking::order() const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
  for (const Part& part : order_) order.emplace_back(part.layer, part.index);
  return order;
}

model::Graph StructureRanking::without(double share, std::size_t& gone) const {
  gone = static_cast<std::size_t>(std::llround(share * static_cast<double>(parts_)));
  return structure_ == Structure::kTokens ? without_tokens(gone) : without_parts(gone);
}

model::Graph StructureRanking::without_parts(std::size_t count) const {
  std::map<model::TensorId, model::GoneColumns> columns;
  for (std::size_t i = 0; i < count; ++i) {
    const Part& part = order_[i];
    const model::TensorId id = tensors_[part.layer];
    const std::uint32_t cols = subject_.graph.tensors[id].cols;
    const std::uint32_t width = structure_ == Structure::kHeads ? cols / subject_.heads : 1;
    model::GoneColumns& gone = columns[id];
    gone.resize(cols);
    std::fill_n(gone.begin() + part.index * width, width, true);
  }
  return model::without_columns(subject_.graph, columns);
}

model::Graph StructureRanking::without_tokens(std::size_t count) const {
  model::Graph graph = subject_.graph;
  std::size_t first = graph.nodes.size();
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    if (graph.nodes[n].name.rfind(block_name(1, ""), 0) == 0) first = n;
    // The table of positions has a row for each patch.
    if (graph.nodes[n].name != "patch_embed.position") continue;
    model::Tensor& table = graph.tensors[graph.nodes[n].second().tensor];
    table.data = with_rows(table.data.get(), without_first(tokens_));
  }
  const auto kept = static_cast<std::uint32_t>(subject_.tokens - count);
  return model::with_fewer_tokens(graph, first, static_cast<std::uint32_t>(subject_.tokens), kept);
}

std::vector<std::int32_t> StructureRanking::reordered(
    const std::vector<std::int32_t>& input) const {
  if (tokens_.empty()) return input;
  const bool patches =
      subject_.graph.tensors[input_tensor(subject_.graph)].rows + 1 == subject_.tokens;
  return with_rows(input, patches ? without_first(tokens_) : tokens_);
}

std::vector<std::int32_t> StructureRanking::reordered_output(
    const std::vector<std::int32_t>& output, std::size_t values) const {
  const model::Tensor& tensor = subject_.graph.tensors[output_tensor(subject_.graph)];
  std::vector<std::int32_t> result =
      tokens_.empty() || tensor.rows != subject_.tokens ? output : with_rows(output, tokens_);
  result.resize(values);
  return result;
}

}  // namespace systole::testbench
