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
  const bool heads = structure == Structure::kHeads, tokens = structure == Structure::kTokens;
  if (tokens && (subject.layers < 2 || subject.masked)) {
    throw hw::InputError("--structure tokens: " + graph.name +
                         (subject.masked ? " has masks of its tokens, expected a network without"
                                         : " has one block, expected tokens to drop after it"));
  }
  std::vector<std::vector<double>> columns(subject.layers);
  std::vector<std::string> names;
  for (std::uint32_t layer = 0; layer < subject.layers; ++layer) {
    names.push_back(block_name(layer, heads ? "attn.context" : "mlp.gelu"));
    tensors_.push_back(model::find_tensor(graph, names.back()));
    columns[layer].resize(graph.tensors[tensors_.back()].cols);
  }
  std::vector<double> attention(subject.tokens);
  model::Reference reference(graph, {true, false});
  const std::string& input = graph.tensors[input_tensor(graph)].name;
  for (const std::vector<std::int32_t>& values : subject.calibration) {
    reference.set_input(input, values);
    reference.run();
    for (std::uint32_t h = 0; tokens && h < subject.heads; ++h) {
      const std::vector<std::int32_t> codes =
          reference.values(block_name(0, "attn.head") + std::to_string(h) + ".softmax");
      for (std::size_t row = 0; row < subject.tokens; ++row) {
        const auto begin = codes.begin() + static_cast<std::ptrdiff_t>(row * subject.tokens);
        const double sum =
            std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(subject.tokens), 0.0);
        for (std::size_t key = 0; key < subject.tokens; ++key) {
          attention[key] += sum == 0 ? 0.0 : codes[row * subject.tokens + key] / sum;
        }
      }
    }
    for (std::uint32_t layer = 0; !tokens && layer < subject.layers; ++layer) {
      const std::vector<std::int32_t> codes = reference.values(names[layer]);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        columns[layer][i % columns[layer].size()] += std::abs(codes[i]);
      }
    }
  }
  if (tokens) {
    rank_tokens(std::move(attention));
  } else {
    rank_columns(columns);
  }
}

void StructureRanking::rank_columns(const std::vector<std::vector<double>>& columns) {
  const bool heads = structure_ == Structure::kHeads;
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

void StructureRanking::rank_tokens(std::vector<double> attention) {
  tokens_.resize(subject_.tokens);
  std::iota(tokens_.begin(), tokens_.end(), 0U);
  std::stable_sort(tokens_.begin() + 1, tokens_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return attention[a] > attention[b]; });
  parts_ = subject_.tokens - 1;
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
    table.data = with_rows(table.data, without_first(tokens_));
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
