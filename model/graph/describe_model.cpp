#include "model/graph/describe_model.h"

#include <algorithm>
#include <cctype>

#include "hw/number/int4.h"

namespace systole::model {
namespace {

/// "blocks.0.attn.head3.scores" -> "blocks.0.attn.head*.scores": what differs in its head alone is
/// one line of a table.
std::string without_head(const std::string& name) {
  static const std::string kHead = ".head";
  const std::size_t at = name.find(kHead);
  if (at == std::string::npos) return name;
  const std::size_t digits = at + kHead.size();
  const auto end = std::find_if_not(name.begin() + static_cast<std::ptrdiff_t>(digits), name.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
  if (end == name.begin() + static_cast<std::ptrdiff_t>(digits)) return name;
  return name.substr(0, digits) + "*" + std::string(end, name.end());
}

void add_product(ModelInfo& info, const Graph& graph, const Node& node) {
  ProductInfo product;
  product.name = without_head(node.name);
  product.m = node.in_rows();
  product.k = node.in_cols();
  product.n = node.out.cols;
  product.macs = node.macs();
  const Tensor& b = graph.tensors[node.product()->b.tensor];
  if (b.kind == Tensor::Kind::kConstant) {
    const bool transposed = node.product()->b_transposed;
    const hw::StoredShape stored = hw::stored_shape(b.rows, b.cols, transposed, b.int4);
    product.weight_bytes = b.grouped()
                               ? hw::packed_bytes(b.format, b.rows, b.cols)
                               : std::uint64_t{stored.rows} * stored.cols * hw::bytes_of(b.type);
  }
  info.macs += product.macs;
  info.weight_bytes += product.weight_bytes;
  const auto same = std::find_if(info.products.begin(), info.products.end(),
                                 [&](const ProductInfo& p) { return p.name == product.name; });
  if (same == info.products.end()) {
    info.products.push_back(std::move(product));
  } else {
    ++same->count;
    same->macs += product.macs;
    same->weight_bytes += product.weight_bytes;
  }
}

}  // namespace

ModelInfo describe_graph(const Graph& graph) {
  ModelInfo info;
  std::vector<bool> weight(graph.tensors.size(), false);
  std::string layer;  // the last product
  for (const Node& node : graph.nodes) {
    if (node.product() != nullptr) {
      add_product(info, graph, node);
      weight[node.product()->b.tensor] = true;
      layer = node.name;
      continue;
    }
    ++info.stages;
    const std::uint64_t bytes =
        (node.stage() == nullptr ? 0 : node.stage()->parameters.size()) * sizeof(std::int32_t);
    info.parameter_bytes += bytes;
    if (!layer.empty() && node.name.compare(0, layer.size() + 1, layer + ".") == 0) {
      const std::string name = without_head(layer);
      const auto product = std::find_if(info.products.begin(), info.products.end(),
                                        [&](const ProductInfo& p) { return p.name == name; });
      product->parameter_bytes += bytes;
    }
  }
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Tensor& tensor = graph.tensors[id];
    if (tensor.kind == Tensor::Kind::kConstant && !weight[id]) info.table_bytes += tensor.bytes();
    if (tensor.scale != 0) {
      info.scales.push_back({tensor.name, tensor.type, tensor.rows, tensor.cols, tensor.scale});
    }
  }
  return info;
}

}  // namespace systole::model
