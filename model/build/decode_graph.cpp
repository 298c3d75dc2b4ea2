#include "model/build/decode_graph.h"

#include <algorithm>
#include <utility>

#include "model/build/encoder_blocks.h"
#include "model/build/encoder_graph.h"
#include "model/build/host_operators.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "model/graph/valid_keys.h"

namespace systole::model {
namespace {

bool is_cache(const Graph& graph, const View& view) {
  return view.tensor != kNoTensor && graph.tensors[view.tensor].kind == Tensor::Kind::kState;
}

std::string layer_name(std::size_t index) { return "blocks." + std::to_string(index) + ".attn."; }

}  // namespace

Graph make_decode_graph(const IntegerEncoder& encoder, std::uint32_t positions, std::string name,
                        double embedding_scale) {
  GraphBuilder builder(std::move(name));
  EncoderBlocks blocks(builder, encoder, {1, positions});
  View stream = blocks.input("embedding", 1, blocks.stream_type(), embedding_scale);
  for (std::uint32_t i = 0; i < encoder.shape.layers; ++i) stream = blocks.block(i, stream);
  builder.tensor(stream.tensor).kind = Tensor::Kind::kOutput;
  return std::move(builder).take();
}

void move_to_token(Graph& graph, std::uint32_t token) {
  for (Node& node : graph.nodes) {
    if (is_cache(graph, node.out)) node.out.row = token;
  }
  attend_to_keys(graph, token + 1);
}

void move_llama_to_chunk(Graph& graph, std::uint32_t first, std::uint32_t count) {
  attend_to_keys(graph, first + count);
  // Of tensors with a row for each token of a chunk; those of the last token alone stay.
  const std::uint32_t chunk =
      std::find_if(graph.tensors.begin(), graph.tensors.end(), [](const Tensor& tensor) {
        return tensor.kind == Tensor::Kind::kInput;
      })->rows;
  const auto cut = [&](View& view) {
    if (view.tensor == kNoTensor) return;
    const Tensor& tensor = graph.tensors[view.tensor];
    const bool per_token =
        tensor.kind != Tensor::Kind::kConstant && tensor.kind != Tensor::Kind::kState;
    if (per_token && tensor.rows == chunk) view.rows = count;
  };
  for (Node& node : graph.nodes) {
    const bool picks_last =
        graph.tensors[node.in.tensor].rows == chunk && graph.tensors[node.out.tensor].rows == 1;
    if (picks_last) {
      node.in.row = count - 1;
      continue;
    }
    cut(node.in);
    cut(node.out);
    if (graph.tensors[node.out.tensor].kind == Tensor::Kind::kState) {
      node.out.row = first;
      node.out.rows = count;
    }
    StageUse* const use = node.stage();
    if (use == nullptr) continue;
    cut(use->tensor);
    if (node.is(hw::StageOp::kRope)) {
      use->tensor.row = first;
      use->tensor.rows = count;
    }
    if (use->valid_cols != 0) use->valid_cols = first + 1;
  }
}

void move_llama_to_token(Graph& graph, const LlamaShape& shape, std::uint32_t token) {
  const std::uint32_t keys = shape.window == 0 ? token + 1 : std::min(token + 1, shape.window);
  attend_to_keys(graph, keys);
  for (Node& node : graph.nodes) {
    if (graph.tensors[node.out.tensor].kind == Tensor::Kind::kState) node.out.row = token;
    if (node.is(hw::StageOp::kRope)) node.stage()->tensor.row = token * node.out.rows;
    if (Product* const product = node.product()) {
      const bool cached = graph.tensors[product->b.tensor].kind == Tensor::Kind::kState;
      if (cached) product->b.row = token + 1 - keys;
    }
  }
}

void fill_caches(Graph& graph, const IntegerEncoder& encoder, std::uint32_t tokens,
                 const std::vector<std::int32_t>& embedding, const hw::Machine& machine) {
  Graph prompt = for_machine(make_encoder_graph(encoder, tokens, graph.name, 0.0), machine);
  for (std::size_t i = 0; i < encoder.blocks.size(); ++i) {
    // An output is not freed after its last reader.
    prompt.tensors[find_tensor(prompt, layer_name(i) + "qkv.requantise")].kind =
        Tensor::Kind::kOutput;
  }
  Reference reference(prompt, {true, true});
  reference.set_input("embedding", embedding);
  reference.run();
  const std::size_t width = encoder.shape.width;
  for (std::size_t i = 0; i < encoder.blocks.size(); ++i) {
    const std::vector<std::uint8_t>& qkv = reference.bytes(layer_name(i) + "qkv.requantise");
    Tensor& cache = graph.tensors[find_tensor(graph, layer_name(i) + "cache")];
    std::vector<std::uint8_t> bytes(cache.bytes(), 0);
    for (std::size_t row = 0; row < tokens; ++row) {
      const auto from = qkv.begin() + static_cast<std::ptrdiff_t>((3 * row + 1) * width);
      std::copy_n(from, 2 * width, bytes.begin() + static_cast<std::ptrdiff_t>(2 * row * width));
    }
    cache.data = std::move(bytes);
  }
}

}  // namespace systole::model
