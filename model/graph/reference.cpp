#include "model/graph/reference.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "hw/host/host_function.h"
#include "hw/kernel/gemm.h"
#include "hw/postop/plain_stage.h"
#include "model/graph/elements.h"
#include "model/graph/graph_builder.h"
#include "model/graph/graph_check.h"

namespace systole::model {
namespace {

/// Element of a tensor with which a row of a view begins.
std::size_t first_of(const Tensor& tensor, const View& view, std::size_t row) {
  return std::size_t{view.row} * tensor.cols + view.col + row * view.pitch(tensor.cols);
}

/// Rows of `cols` values with rows and columns exchanged.
std::vector<std::int32_t> transposed(const std::vector<std::int32_t>& values, std::size_t cols) {
  const std::size_t rows = values.size() / cols;
  std::vector<std::int32_t> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) result[i % cols * rows + i / cols] = values[i];
  return result;
}

}  // namespace

Reference::Reference(const Graph& graph, ReferenceOptions options)
    : graph_(graph),
      options_(options),
      memory_(graph.tensors.size()),
      last_use_(graph.nodes.size()) {
  check_graph(graph);
  std::vector<std::size_t> last(graph.tensors.size(), graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const TensorId id : tensors_of(graph.nodes[n])) last[id] = n;
  }
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Tensor& tensor = graph.tensors[id];
    if (tensor.kind == Tensor::Kind::kConstant && tensor.data.empty() && tensor.bytes() != 0) {
      throw std::invalid_argument("graph '" + graph.name + "': constant '" + tensor.name +
                                  "' has no data");
    }
    if (tensor.kind != Tensor::Kind::kActivation) allocate(static_cast<TensorId>(id));
    const bool freed = options.free_activations && tensor.kind == Tensor::Kind::kActivation;
    if (freed && last[id] < last_use_.size()) {
      last_use_[last[id]].push_back(static_cast<TensorId>(id));
    }
  }
}

void Reference::allocate(TensorId id) {
  const Tensor& tensor = graph_.tensors[id];
  memory_[id] = tensor.data;
  if (tensor.data.empty()) memory_[id] = std::vector<std::uint8_t>(tensor.bytes(), 0);
}

void Reference::set_input(std::string_view name, const std::vector<std::int32_t>& values) {
  const TensorId id = find_tensor(graph_, name);
  const Tensor& tensor = graph_.tensors[id];
  const std::size_t count = std::size_t{tensor.rows} * tensor.cols;
  if (tensor.kind != Tensor::Kind::kInput || values.size() != count) {
    throw std::invalid_argument("'" + tensor.name + "' is not an input of " +
                                std::to_string(values.size()) + " elements");
  }
  if (memory_[id].empty()) allocate(id);  // no input when this began
  for (std::size_t i = 0; i < count; ++i) {
    if (!store_element(memory_[id].edit().data(), i, tensor.type, values[i])) {
      throw std::out_of_range("'" + tensor.name + "': " + std::to_string(values[i]) +
                              " does not fit " + hw::name_of(tensor.type));
    }
  }
}

void Reference::run(const std::function<void(std::size_t nodes)>& progress) {
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    for (const TensorId id : tensors_of(node)) {
      if (memory_[id].empty()) allocate(id);
    }
    if (node.product() != nullptr) {
      store(node, node.out, options_.fast ? multiply_fast(node) : multiply(node));
    } else if (node.host() != nullptr) {
      run_host(node);
    } else {
      run_stage(node);
    }
    // Nodes may be others, and more, than those that this began with.
    for (std::size_t i = 0; n < last_use_.size() && i < last_use_[n].size(); ++i) {
      memory_[last_use_[n][i]] = {};
    }
    if (progress) progress(n + 1);
  }
}

const std::vector<std::uint8_t>& Reference::bytes(std::string_view name) const {
  return memory_[find_tensor(graph_, name)];
}

std::vector<std::int32_t> Reference::values(std::string_view name) const {
  const TensorId id = find_tensor(graph_, name);
  const hw::DType type = graph_.tensors[id].type;
  std::vector<std::int32_t> result(memory_[id].size() / hw::bytes_of(type));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = load_element(memory_[id].data(), i, type);
  }
  return result;
}

std::vector<std::int32_t> Reference::load(const View& view) const {
  const Tensor& tensor = graph_.tensors[view.tensor];
  const std::uint8_t* bytes = memory_[view.tensor].data();
  std::vector<std::int32_t> values(std::size_t{view.rows} * view.cols);
  for (std::size_t r = 0; r < view.rows; ++r) {
    const std::size_t first = first_of(tensor, view, r);
    for (std::size_t c = 0; c < view.cols; ++c) {
      values[r * view.cols + c] = load_element(bytes, first + c, tensor.type);
    }
  }
  return values;
}

std::vector<std::int32_t> Reference::load_input(const Node& node) const {
  if (!node.window) return load(node.in);
  const hw::Window& window = *node.window;
  const std::vector<std::int32_t> picture = load(node.in);
  const std::int64_t height = window.height, width = window.width, channels = window.channels;
  std::vector<std::int32_t> values;
  values.reserve(window.rows() * window.cols());
  const hw::Padding& padding = window.padding;
  for (std::int64_t y = -padding.top; y + window.kernel_rows <= height + padding.bottom;
       y += window.stride) {
    for (std::int64_t x = -padding.left; x + window.kernel_cols <= width + padding.right;
         x += window.stride) {
      const std::size_t first = values.size();
      for (std::int64_t i = y; i < y + window.kernel_rows; ++i) {
        for (std::int64_t j = x; j < x + window.kernel_cols; ++j) {
          const bool inside = i >= 0 && i < height && j >= 0 && j < width;
          if (!inside && window.gather == hw::Gather::kMaximum) continue;
          const bool begins = values.size() == first;
          for (std::int64_t c = 0; c < channels; ++c) {
            const std::int32_t value =
                inside ? picture[static_cast<std::size_t>((i * width + j) * channels + c)] : 0;
            if (begins || window.gather == hw::Gather::kPatches) {
              values.push_back(value);
              continue;
            }
            std::int32_t& so_far = values[first + static_cast<std::size_t>(c)];
            so_far = window.gather == hw::Gather::kSum ? so_far + value : std::max(so_far, value);
          }
        }
      }
    }
  }
  return values;
}

void Reference::store(const Node& node, const View& view, const std::vector<std::int32_t>& values) {
  const Tensor& tensor = graph_.tensors[view.tensor];
  std::uint8_t* bytes = memory_[view.tensor].edit().data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t index = first_of(tensor, view, i / view.cols) + i % view.cols;
    if (!store_element(bytes, index, tensor.type, values[i])) {
      throw std::overflow_error("node '" + node.name + "': " + std::to_string(values[i]) +
                                " does not fit " + hw::name_of(tensor.type));
    }
  }
}

std::vector<std::int32_t> Reference::multiply(const Node& node) const {
  const std::size_t m = node.in_rows();
  const std::size_t k = node.in_cols();
  const std::size_t n = node.out.cols;
  const std::vector<std::int32_t> a = load_input(node);
  const std::vector<std::int32_t> b = load(node.product()->b);
  std::vector<std::int32_t> c(m * n, 0);  // check_graph() bounds k, so that no sum overflows
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; node.product()->b_transposed && j < n; ++j) {
      for (std::size_t p = 0; p < k; ++p) c[i * n + j] += a[i * k + p] * b[j * k + p];
    }
    for (std::size_t p = 0; !node.product()->b_transposed && p < k; ++p) {
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
  return c;
}

std::vector<std::int32_t> Reference::multiply_fast(const Node& node) const {
  const Tensor& a = graph_.tensors[node.in.tensor];
  const Tensor& b = graph_.tensors[node.product()->b.tensor];
  std::vector<std::int32_t> c(std::size_t{node.out.rows} * node.out.cols);
  hw::GemmArgs args;
  std::vector<std::uint8_t> gathered;
  if (node.window) {
    const std::vector<std::int32_t> values = load_input(node);
    gathered.assign(values.begin(), values.end());  // modulo 256: two's complement
  }
  args.a = node.window ? gathered.data() : memory_[node.in.tensor].data() + first_of(a, node.in, 0);
  args.lda = node.window ? node.in_cols() : node.in.pitch(a.cols);
  args.a_unsigned = a.type == hw::DType::kU8;
  const View& of_b = node.product()->b;
  // Weights as a file has them: none are made, and none stay.
  const hw::SharedVector<std::uint8_t> exchanged = memory_[of_b.tensor].exchanged();
  const bool by_column = exchanged.is_view() && !of_b.folded;
  const hw::SharedVector<std::uint8_t> stored = by_column ? exchanged : memory_[of_b.tensor];
  args.b = reinterpret_cast<const std::int8_t*>(stored.data()) +
           (by_column ? std::size_t{of_b.col} * b.rows + of_b.row : first_of(b, of_b, 0));
  args.ldb = by_column ? b.rows : of_b.pitch(b.cols);
  args.b_transposed = node.product()->b_transposed != by_column;
  args.c = c.data();
  args.ldc = node.out.cols;
  args.m = node.in_rows();
  args.n = node.out.cols;
  args.k = node.in_cols();
  if (!stored.is_view() || !args.b_transposed) {
    hw::gemm(args);
    return c;
  }
  // Of a file so many bytes at a time, which do not stay.
  constexpr std::size_t kAtOnce = std::size_t{4} << 20U;
  const std::size_t columns = std::max<std::size_t>(1, kAtOnce / args.ldb);
  for (std::size_t first = 0; first < node.out.cols; first += columns) {
    args.n = std::min<std::size_t>(columns, node.out.cols - first);
    hw::gemm(args);
    stored.let_go();
    args.b += args.n * args.ldb;
    args.c += args.n;
  }
  return c;
}

void Reference::run_host(const Node& node) {
  const auto offset = [this](const View& view, std::size_t row) {
    const Tensor& tensor = graph_.tensors[view.tensor];
    return first_of(tensor, view, row) * hw::bytes_of(tensor.type);
  };
  const auto row_of = [&](const View& view, std::size_t row) {
    return view.tensor == kNoTensor ? nullptr : memory_[view.tensor].data() + offset(view, row);
  };
  std::uint8_t* const out = memory_[node.out.tensor].edit().data();
  for (std::size_t r = 0; r < node.in.rows; ++r) {
    hw::apply_host_row(node.host()->function, row_of(node.in, r), row_of(node.second(), r),
                       node.in.cols, out + offset(node.out, r),
                       hw::host_kept(node.valid_cols(), r, node.in.cols));
  }
}

void Reference::run_stage(const Node& node) {
  const StageUse& use = *node.stage();
  const hw::Chain chain{{use.stage}, hw::DType::kS32};
  const bool has_tensor = use.stage.operand == hw::Operand::kTensor;
  const std::size_t words = hw::statistics_words(chain);
  const View statistics{use.statistics, 0, 0, node.in_rows(), static_cast<std::uint32_t>(words)};
  const std::size_t cols = node.in_cols();
  const std::vector<std::int32_t> in = load_input(node);
  const std::vector<std::int32_t> tensor =
      has_tensor ? load(use.tensor) : std::vector<std::int32_t>{};
  std::vector<std::int32_t> out, left;
  std::vector<std::int32_t> given(words * node.in_rows(), 0);
  if (hw::reads_row_statistics(chain)) given = load(statistics);
  out.reserve(in.size());
  const auto part = [](const std::vector<std::int32_t>& values, std::size_t r, std::size_t n) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(r * n);
    return std::vector<std::int32_t>(first, first + static_cast<std::ptrdiff_t>(n));
  };
  hw::PlainRow row;
  row.parameters = use.parameters;
  for (std::size_t r = 0; r < node.in_rows(); ++r) {
    row.x = part(in, r, cols);
    if (has_tensor) row.tensors = {part(tensor, r, cols)};
    const std::vector<std::int32_t> before = part(given, r, words);
    row.statistics.assign(before.begin(), before.end());
    if (use.valid_cols != 0) row.valid_cols = use.valid_cols + r;
    hw::apply_plain_row(chain, row);
    left.insert(left.end(), row.statistics.begin(), row.statistics.end());
    out.insert(out.end(), row.x.begin(), row.x.end());
  }
  if (use.stage.op == hw::StageOp::kTranspose) out = transposed(out, cols);
  store(node, node.out, out);
  if (hw::writes_row_statistics(chain) && use.statistics != kNoTensor) {
    store(node, statistics, left);
  }
}

}  // namespace systole::model
