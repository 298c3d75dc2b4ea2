#include "model/graph/graph_check.h"

#include <set>
#include <stdexcept>
#include <string>

#include "base/error.h"

namespace systole::model {
namespace {

/// Longest sum of u8 x s8 products that stays within int32: 65536 * 255 * 128 < 2^31.
constexpr std::uint32_t kMaxCommonDimension = 1U << 16;

/// By tensor: whether a node has its row statistics there.
std::vector<bool> statistics_of(const Graph& graph) {
  std::vector<bool> is_statistics(graph.tensors.size(), false);
  for (const Node& node : graph.nodes) {
    if (node.statistics() < is_statistics.size()) is_statistics[node.statistics()] = true;
  }
  return is_statistics;
}

class NodeCheck {
 public:
  NodeCheck(const Graph& graph, const std::vector<bool>& is_statistics, const Node& node)
      : graph_(graph), is_statistics_(is_statistics), node_(node) {}

  void run() const {
    inside(node_.in, "input");
    inside(node_.out, "output");
    if (graph_.tensors[node_.out.tensor].kind == Tensor::Kind::kConstant) {
      fail("output is a constant");
    }
    check_statistics();
    if (node_.window) check_window();
    std::visit([this](const auto& op) { check(op); }, node_.op);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument("graph '" + graph_.name + "': node '" + node_.name + "': " + what);
  }

  void require(bool holds, const char* what) const {
    if (!holds) fail(what);
  }

  [[nodiscard]] hw::DType type(const View& view) const { return graph_.tensors[view.tensor].type; }

  void inside(const View& rectangle, const std::string& role) const {
    if (rectangle.tensor >= graph_.tensors.size()) fail(role + " is missing");
    const View view = rectangle.unfolded();
    const Tensor& tensor = graph_.tensors[view.tensor];
    if (view.row > tensor.rows || view.rows > tensor.rows - view.row || view.col > tensor.cols ||
        view.cols > tensor.cols - view.col) {
      fail(role + " reaches outside '" + tensor.name + "'");
    }
    if (is_statistics_[view.tensor]) fail(role + " is '" + tensor.name + "', row statistics");
  }

  /// The result is written tile by tile, before all else has been read.
  void check_in_place(const View& read, const std::string& role) const {
    const bool turns = node_.is(hw::StageOp::kTranspose);
    if (overlap(read, node_.out) && (turns || !same(read, node_.out))) {
      fail("output lies over other elements of its " + role);
    }
  }

  void check_statistics() const {
    const bool stage = node_.stage() != nullptr;
    const std::uint32_t read = stage ? hw::statistics_read(node_.stage()->stage) : 0;
    const std::uint32_t left = stage ? hw::statistics_written(node_.stage()->stage) : 0;
    require(read == 0 || left == 0, "row statistics are read, and others left");
    const std::uint32_t words = read + left;
    if (words == 0) {
      require(node_.statistics() == kNoTensor, "row statistics that the operator does not use");
      return;
    }
    require(node_.statistics() < graph_.tensors.size(), "row statistics are missing");
    const Tensor& tensor = graph_.tensors[node_.statistics()];
    require(tensor.type == hw::DType::kS32, "row statistics are not s32");
    // Those of an input are for the reference alone: no host writes them into a machine.
    const bool free =
        tensor.kind == Tensor::Kind::kActivation || tensor.kind == Tensor::Kind::kInput;
    require(free && tensor.data.empty(), "row statistics are wanted in memory");
    const auto size = [](std::uint32_t rows, std::uint32_t cols) {
      return std::to_string(rows) + " x " + std::to_string(cols);
    };
    if (tensor.rows != node_.in.rows || tensor.cols != words) {
      fail("row statistics '" + tensor.name + "' are " + size(tensor.rows, tensor.cols) +
           ", expected " + size(node_.in.rows, words));
    }
  }

  void check_window() const {
    const hw::Window& window = *node_.window;
    try {
      hw::check_window(window);
    } catch (const hw::InputError& error) {
      fail("window: " + std::string(error.what()));
    }
    require(node_.host() == nullptr, "a function of the host through a window");
    require(!node_.in.folded && node_.in.cols == window.channels &&
                node_.in.rows == std::uint64_t{window.height} * window.width,
            "input is not the window's picture: a row for each pixel, a column for each channel");
    require(hw::bytes_of(type(node_.in)) == 1, "elements of more than one byte under a window");
    require((node_.product() != nullptr) == (window.gather == hw::Gather::kPatches),
            "expected patches for a product, maxima or sums for a stage");
    require(!overlap(node_.in, node_.out), "output lies over the picture under its window");
    if (node_.stage() == nullptr) return;
    const hw::StageInfo& info = hw::stage_info(node_.stage()->stage.op);
    require(!info.row_wise && !node_.is(hw::StageOp::kTranspose) &&
                node_.statistics() == kNoTensor && node_.valid_cols() == 0,
            "a stage of whole rows through a window");
  }

  void check(const Product& product) const {
    inside(product.b, "operand B");
    const std::uint32_t k = product.b_transposed ? product.b.cols : product.b.rows;
    const std::uint32_t n = product.b_transposed ? product.b.rows : product.b.cols;
    require(k <= kMaxCommonDimension, "the common dimension exceeds 65536");
    require(node_.in_cols() == k, "A and B differ in their common dimension");
    require(!node_.window || !product.b_transposed, "patches times B transposed");
    require(product.groups != 0 && k % product.groups == 0 && n % product.groups == 0,
            "groups do not divide the channels");
    require(node_.out.rows == node_.in_rows() && node_.out.cols == n,
            "C is not rows of A x cols of B");
    require(type(node_.in) == hw::DType::kS8 || type(node_.in) == hw::DType::kU8,
            "A is neither s8 nor u8");
    require(type(product.b) == hw::DType::kS8, "B is not s8");
    require(type(node_.out) == hw::DType::kS32, "C is not s32");
  }

  void check_elementwise(bool with_tensor, hw::DType tensor) const {
    require(node_.out.rows == node_.in_rows() && node_.out.cols == node_.in_cols(),
            "output and input differ in shape");
    if (!node_.window) check_in_place(node_.in, "input");
    if (!with_tensor) return;
    const View second = node_.second();
    inside(second, "tensor operand");
    require(second.rows == node_.in_rows() && second.cols == node_.in_cols(),
            "tensor operand and input differ in shape");
    require(type(second) == tensor, "tensor operand has another type");
    check_in_place(second, "tensor operand");
  }

  void check_valid_cols(bool masks) const {
    require(node_.valid_cols() == 0 || (masks && node_.valid_cols() <= node_.in.cols),
            "kept columns without a softmax or a causal mask, or more than there are");
  }

  void check(const HostUse& use) const {
    const hw::HostFunction& host = use.function;
    try {
      hw::check_host_function(host);
    } catch (const hw::InputError& error) {
      fail(error.what());
    }
    check_elementwise(hw::operands_of(host.op) > 1, host.tensor);
    require(type(node_.in) == host.in && type(node_.out) == host.out,
            "input or output has another type");
    check_valid_cols(host.op == hw::HostOp::kSoftmax);
    require(node_.in.cols <= hw::kHostMaxColumns, "a row exceeds 65536 elements");
    require(host.gamma.empty() || host.gamma.size() == node_.in.cols,
            "gamma and beta do not fill the columns");
  }

  void check(const StageUse& use) const {
    const hw::Stage& stage = use.stage;
    const bool transposes = stage.op == hw::StageOp::kTranspose;
    if (transposes) {
      require(node_.out.rows == node_.in.cols && node_.out.cols == node_.in.rows,
              "output is not the input transposed");
      check_in_place(node_.in, "input");
    } else {
      check_elementwise(stage.operand == hw::Operand::kTensor, stage.tensor);
    }
    require(stage.operand != hw::Operand::kSaved, "a graph has no saved operand: it is a tensor");
    require(use.parameters.size() == std::size_t{hw::parameter_words(stage)} * node_.in_cols(),
            "parameters do not fill the columns");
    check_valid_cols(hw::uses_valid_cols({{stage}, {}}));
    if (stage.op == hw::StageOp::kRope) require(node_.in.cols % 2 == 0, "pairs of an odd row");
  }

  const Graph& graph_;
  const std::vector<bool>& is_statistics_;
  const Node& node_;
};

}  // namespace

std::vector<TensorId> tensors_of(const Node& node) {
  std::vector<TensorId> ids;
  for (const TensorId id :
       {node.in.tensor, node.second().tensor, node.statistics(), node.out.tensor}) {
    if (id != kNoTensor) ids.push_back(id);
  }
  return ids;
}

void check_graph(const Graph& graph) {
  std::set<std::string> names;
  for (const Tensor& tensor : graph.tensors) {
    if (!names.insert(tensor.name).second) {
      throw std::invalid_argument("graph '" + graph.name + "': two tensors '" + tensor.name + "'");
    }
    if (!tensor.data.empty() && tensor.data.size() != tensor.bytes()) {
      throw std::invalid_argument("graph '" + graph.name + "': tensor '" + tensor.name +
                                  "' has data of another size");
    }
  }
  names.clear();
  const std::vector<bool> is_statistics = statistics_of(graph);
  for (const Node& node : graph.nodes) {
    if (!names.insert(node.name).second) {
      throw std::invalid_argument("graph '" + graph.name + "': two nodes '" + node.name + "'");
    }
    NodeCheck(graph, is_statistics, node).run();
  }
}

}  // namespace systole::model
