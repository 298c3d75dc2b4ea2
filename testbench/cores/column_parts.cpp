#include "testbench/cores/column_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/round.h"
#include "hw/postop/postop.h"

namespace systole::testbench {
namespace {

using model::Graph;
using model::kNoTensor;
using model::Node;
using model::Tensor;
using model::TensorId;
using model::View;

/// Columns that a core gets are multiples of this where there are enough: rows of the array, and
/// bytes of a request.
constexpr std::uint32_t kColumnUnit = 16;

using Ranges = std::vector<Columns>;

/// What of both is in both.
Ranges common(const Ranges& ranges, Columns with) {
  Ranges result;
  for (const Columns& range : ranges) {
    const Columns both{std::max(range.begin, with.begin), std::min(range.end, with.end)};
    if (both.begin < both.end) result.push_back(both);
  }
  return result;
}

bool covers(const Ranges& ranges, Columns wanted) {
  std::uint32_t at = wanted.begin;
  for (const Columns& range : ranges) {
    if (range.begin <= at && at < range.end) at = range.end;
  }
  return at >= wanted.end;
}

Columns columns_of(const View& view) { return {view.col, view.col + view.cols}; }

/// Divides the nodes of a graph among cores.
class Division {
 public:
  Division(const Graph& graph, std::size_t cores) : graph_(graph), cores_(cores) {
    kinds_.resize(graph.nodes.size());
    owners_.resize(graph.nodes.size(), 0);
    tensors_.resize(graph.tensors.size());
    check();
    find_heads();
    find_columns();
    find_segments();
  }

  [[nodiscard]] std::size_t segments() const { return segment_.back() + 1; }
  [[nodiscard]] std::unique_ptr<ColumnPart> part(std::size_t segment, std::size_t core) const;

 private:
  enum class Kind {
    kColumns,  ///< each core computes some columns of the result
    kHead,     ///< one core does it
    kRows,     ///< every core does it
  };
  struct Spread {
    bool split = false;  ///< cores have columns of it; else each has it all
    bool written = false;
    bool crosses = false;     ///< it is read in a later segment than that of its first write
    std::size_t segment = 0;  ///< of its first write
    std::vector<Ranges> own;  ///< by core, of a split tensor
  };

  void check() const {
    for (const Node& node : graph_.nodes) {
      if (node.host() != nullptr || node.in.folded || node.out.folded || node.second().folded) {
        throw hw::InputError("--split heads: " + graph_.name + ": " + node.name +
                             " cannot be divided: the host computes it, or heads share keys");
      }
      const TensorId out = node.out.tensor;
      if (graph_.tensors[out].kind == Tensor::Kind::kState) {
        throw hw::InputError("--split heads: " + graph_.name +
                             ": found a cache of keys and values");
      }
    }
  }

  [[nodiscard]] bool is_constant(TensorId tensor) const {
    return graph_.tensors[tensor].kind == Tensor::Kind::kConstant;
  }

  /// Nodes from the product of two activations to what is written next to other heads.
  void find_heads() {
    std::map<TensorId, std::size_t> head_of;  // tensors that one head alone writes
    std::map<TensorId, std::set<std::size_t>> writers;
    std::vector<std::size_t> head(graph_.nodes.size(), 0);
    std::size_t heads = 0;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const auto found = head_of.find(node.in.tensor);
      const bool product = node.product() != nullptr && !is_constant(node.product()->b.tensor);
      if (!product && (found == head_of.end() || node.product() != nullptr)) continue;
      head[i] = found == head_of.end() ? ++heads : found->second;
      writers[node.out.tensor].insert(head[i]);
      // The result of the last stage is next to those of other heads.
      if (columns_of(node.out).end - node.out.col == graph_.tensors[node.out.tensor].cols) {
        head_of[node.out.tensor] = head[i];
      }
    }
    // The columns of what heads write together say whose they are.
    std::map<std::size_t, std::size_t> core_of;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (head[i] == 0 || writers[node.out.tensor].size() < 2) continue;
      const std::size_t all = graph_.tensors[node.out.tensor].cols / node.out.cols;
      core_of[head[i]] = node.out.col / node.out.cols * cores_ / all;
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (head[i] == 0) continue;
      kinds_[i] = Kind::kHead;
      owners_[i] = core_of[head[i]];
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (head[i] == 0) kinds_[i] = kind_of(graph_.nodes[i]);
    }
  }

  [[nodiscard]] static Kind kind_of(const Node& node) {
    if (node.product() != nullptr) return Kind::kColumns;
    const hw::Stage& stage = node.stage()->stage;
    hw::Chain chain;
    chain.stages.push_back(stage);
    const bool by_column = !hw::is_row_wise(chain) && node.statistics() == kNoTensor &&
                           stage.op != hw::StageOp::kRope && stage.op != hw::StageOp::kTranspose &&
                           stage.op != hw::StageOp::kMask && node.valid_cols() == 0 &&
                           node.in.cols == node.out.cols;
    return by_column ? Kind::kColumns : Kind::kRows;
  }

  /// Which core has which columns of a split tensor: those that its heads read, else equal parts.
  void find_columns() {
    std::vector<std::map<std::uint32_t, std::pair<std::uint32_t, std::size_t>>> wanted(
        graph_.tensors.size());  // begin: end, core
    std::vector<bool> clash(graph_.tensors.size(), false);
    const auto want = [&](TensorId tensor, Columns columns, std::size_t core) {
      const auto [entry, added] = wanted[tensor].try_emplace(columns.begin, columns.end, core);
      if (!added && entry->second != std::pair{columns.end, core}) clash[tensor] = true;
    };
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      if (kinds_[i] == Kind::kHead) {
        for (const View& view : {node.in, node.second()}) {
          if (view.tensor != kNoTensor) want(view.tensor, columns_of(view), owners_[i]);
        }
        want(node.out.tensor, columns_of(node.out), owners_[i]);
      } else if (kinds_[i] == Kind::kColumns && node.product() == nullptr) {
        for (const auto& [begin, to] : wanted[node.out.tensor]) {
          const Ranges part = common({{begin, to.first}}, columns_of(node.out));
          for (const Columns& columns : part) {
            want(node.in.tensor,
                 {columns.begin - node.out.col + node.in.col,
                  columns.end - node.out.col + node.in.col},
                 to.second);
          }
        }
      }
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const TensorId out = graph_.nodes[i].out.tensor;
      Spread& spread = tensors_[out];
      if (kinds_[i] == Kind::kRows || !spread.own.empty()) continue;
      spread.split = true;
      spread.own.resize(cores_);
      const std::uint32_t cols = graph_.tensors[out].cols;
      std::uint32_t at = 0;
      bool complete = !clash[out];
      for (const auto& [begin, to] : wanted[out]) {
        complete = complete && begin == at;
        at = to.first;
      }
      if (complete && at == cols) {
        for (const auto& [begin, to] : wanted[out]) {
          Ranges& own = spread.own[to.second];
          if (!own.empty() && own.back().end == begin) {
            own.back().end = to.first;
          } else {
            own.push_back({begin, to.first});
          }
        }
        continue;
      }
      const std::uint32_t unit = cols >= kColumnUnit * cores_ ? kColumnUnit : 1;
      const std::uint64_t units = ceil_div(cols, unit);
      for (std::size_t core = 0; core < cores_; ++core) {
        const auto edge = [&](std::size_t of) {
          return static_cast<std::uint32_t>(
              std::min<std::uint64_t>(units * of / cores_ * unit, cols));
        };
        if (edge(core) < edge(core + 1)) spread.own[core].push_back({edge(core), edge(core + 1)});
      }
    }
  }

  /// What a core computes of a node: columns of its result.
  [[nodiscard]] Ranges work(std::size_t node, std::size_t core) const {
    const View& out = graph_.nodes[node].out;
    switch (kinds_[node]) {
      case Kind::kColumns:
        return common(tensors_[out.tensor].own[core], columns_of(out));
      case Kind::kHead:
        return owners_[node] == core ? Ranges{columns_of(out)} : Ranges{};
      case Kind::kRows:
        break;
    }
    // What every core has is given to the host once.
    const bool is_output = graph_.tensors[out.tensor].kind == Tensor::Kind::kOutput;
    return is_output && core != 0 ? Ranges{} : Ranges{columns_of(out)};
  }

  /// Calls visit(tensor, columns) for what a core reads to compute `columns` of a node's result.
  template <typename Visit>
  void visit_reads(std::size_t index, const Columns& columns, Visit visit) const {
    const Node& node = graph_.nodes[index];
    const auto same = [&](const View& view) {
      return Columns{columns.begin - node.out.col + view.col,
                     columns.end - node.out.col + view.col};
    };
    const bool by_column = kinds_[index] == Kind::kColumns;
    const bool product = node.product() != nullptr;
    visit(node.in.tensor, by_column && !product ? same(node.in) : columns_of(node.in));
    if (const View second = node.second(); second.tensor != kNoTensor) {
      visit(second.tensor, by_column && !product ? same(second) : columns_of(second));
    }
    if (node.statistics() != kNoTensor) {
      visit(node.statistics(), Columns{0, graph_.tensors[node.statistics()].cols});
    }
  }

  /// A node that needs columns of another core, written since the last exchange, follows the next.
  void find_segments() {
    std::size_t segment = 0;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (std::size_t core = 0; core < cores_; ++core) {
        for (const Columns& columns : work(i, core)) {
          visit_reads(i, columns, [&](TensorId tensor, Columns read) {
            const Spread& spread = tensors_[tensor];
            if (spread.split && spread.written && spread.segment == segment &&
                !covers(spread.own[core], read)) {
              ++segment;
            }
          });
        }
      }
      segment_.push_back(segment);
      for (std::size_t core = 0; core < cores_; ++core) {
        for (const Columns& columns : work(i, core)) {
          visit_reads(i, columns, [&](TensorId tensor, Columns) {
            Spread& spread = tensors_[tensor];
            if (spread.written && spread.segment < segment) spread.crosses = true;
          });
        }
      }
      for (const TensorId tensor : {graph_.nodes[i].out.tensor, graph_.nodes[i].statistics()}) {
        if (tensor == kNoTensor) continue;
        Spread& spread = tensors_[tensor];
        if (spread.written && spread.segment != segment && tensor == graph_.nodes[i].out.tensor) {
          throw hw::InputError("--split heads: " + graph_.name + ": " +
                               graph_.tensors[tensor].name +
                               " is written before and after an exchange");
        }
        if (!spread.written) spread.segment = segment;
        spread.written = true;
      }
    }
  }

  class Builder;

  const Graph& graph_;
  const std::size_t cores_;
  std::vector<Kind> kinds_;          ///< by node
  std::vector<std::size_t> owners_;  ///< by node of a head: its core
  std::vector<Spread> tensors_;
  std::vector<std::size_t> segment_;  ///< by node
};

/// Writes the nodes of one part.
class Division::Builder {
 public:
  Builder(const Division& division, std::size_t segment, std::size_t core)
      : all_(division), segment_(segment), core_(core), graph_(std::make_shared<Graph>()) {
    graph_->name = division.graph_.name;
  }

  void add(std::size_t index) {
    const Node& node = all_.graph_.nodes[index];
    const Ranges ranges = all_.work(index, core_);
    // Pieces that are neighbours in every tensor here are one node.
    std::vector<Ranges> groups;
    for (const Columns& range : ranges) {
      if (!groups.empty() && continues(index, groups.back().back(), range)) {
        groups.back().push_back(range);
      } else {
        groups.push_back({range});
      }
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::string suffix = groups.size() == 1 ? "" : ".columns" + std::to_string(i);
      add_node(index, groups[i], node.name + suffix);
    }
  }

  [[nodiscard]] std::unique_ptr<ColumnPart> take() {
    if (graph_->nodes.empty()) return nullptr;
    part_.graph = graph_;
    return std::make_unique<ColumnPart>(std::move(part_));
  }

 private:
  [[nodiscard]] const Tensor& whole(TensorId tensor) const { return all_.graph_.tensors[tensor]; }

  /// Whether this core has the tensor with its own columns side by side.
  [[nodiscard]] bool is_compact(TensorId tensor) const {
    const Spread& spread = all_.tensors_[tensor];
    return spread.split && !spread.crosses && whole(tensor).kind == Tensor::Kind::kActivation &&
           whole(tensor).data.empty();
  }

  /// The column here of column `col` of the whole tensor.
  [[nodiscard]] std::uint32_t local(TensorId tensor, std::uint32_t col) const {
    if (!is_compact(tensor)) return col;
    std::uint32_t at = 0;
    for (const Columns& own : all_.tensors_[tensor].own[core_]) {
      if (col >= own.begin && col < own.end) return at + col - own.begin;
      at += own.end - own.begin;
    }
    throw std::logic_error("column_parts: a core reads a column that it does not have");
  }

  [[nodiscard]] bool continues(std::size_t index, Columns before, Columns after) const {
    std::vector<std::uint32_t> ends, begins;
    const auto note = [&](const Columns& range, std::vector<std::uint32_t>& columns, bool end) {
      const Node& node = all_.graph_.nodes[index];
      const auto add = [&](TensorId tensor, Columns of) {
        columns.push_back(end ? local(tensor, of.end - 1) + 1 : local(tensor, of.begin));
      };
      add(node.out.tensor, range);
      if (node.product() != nullptr) return;
      all_.visit_reads(index, range, add);
    };
    note(before, ends, true);
    note(after, begins, false);
    return ends == begins;
  }

  TensorId take_tensor(TensorId tensor, bool written) {
    const auto [entry, added] =
        ids_.try_emplace(tensor, static_cast<TensorId>(graph_->tensors.size()));
    if (added) {
      const Spread& spread = all_.tensors_[tensor];
      Tensor copy = whole(tensor);
      TensorOrigin origin{
          tensor, {}, copy.cols, static_cast<std::uint32_t>(hw::bytes_of(copy.type))};
      if (is_compact(tensor)) {
        for (const Columns& own : spread.own[core_]) {
          for (std::uint32_t col = own.begin; col < own.end; ++col) origin.columns.push_back(col);
        }
        copy.cols = static_cast<std::uint32_t>(origin.columns.size());
      }
      if (spread.crosses) {
        const bool writes = spread.segment == segment_;
        copy.kind = writes ? Tensor::Kind::kOutput : Tensor::Kind::kInput;
        if (!writes) copy.data.clear();  // rows that never change are where it is written
        part_.exchanged.push_back({entry->second, tensor, writes, !spread.split});
      } else if (copy.kind == Tensor::Kind::kInput) {
        part_.exchanged.push_back({entry->second, tensor, false, true});
        part_.reads_input = true;
      } else if (copy.kind == Tensor::Kind::kOutput) {
        part_.exchanged.push_back({entry->second, tensor, true, false});
      }
      graph_->tensors.push_back(std::move(copy));
      part_.origins.push_back(std::move(origin));
    }
    if (written && whole(tensor).kind == Tensor::Kind::kOutput && part_.output.empty()) {
      part_.output = all_.tensors_[tensor].split ? all_.tensors_[tensor].own[core_]
                                                 : Ranges{{0, whole(tensor).cols}};
    }
    return entry->second;
  }

  [[nodiscard]] View view(const View& of, Columns columns, bool written = false) {
    if (of.tensor == kNoTensor) return of;
    View here = of;
    here.tensor = take_tensor(of.tensor, written);
    here.col = local(of.tensor, columns.begin);
    here.cols = columns.end - columns.begin;
    return here;
  }

  /// Columns `ranges` of a constant, side by side.
  View constant(const View& of, const Ranges& ranges, const std::string& name) {
    const Tensor& from = whole(of.tensor);
    const std::size_t element = hw::bytes_of(from.type);
    Tensor copy = from;
    copy.name = name;
    copy.rows = of.rows;
    copy.cols = 0;
    copy.data.clear();
    copy.groups.clear();
    copy.grouped = from.grouped && of.row == 0 && of.rows == from.rows;
    for (const Columns& range : ranges) copy.cols += range.end - range.begin;
    for (std::size_t at = 0; copy.grouped && at < from.groups.size(); at += from.cols) {
      for (const Columns& range : ranges) {
        const auto row = from.groups.begin() + static_cast<std::ptrdiff_t>(at);
        copy.groups.insert(copy.groups.end(), row + range.begin, row + range.end);
      }
    }
    if (!from.data.empty()) {
      for (std::uint32_t row = of.row; row < of.row + of.rows; ++row) {
        for (const Columns& range : ranges) {
          const auto first =
              from.data.begin() +
              static_cast<std::ptrdiff_t>((std::size_t{row} * from.cols + range.begin) * element);
          copy.data.insert(
              copy.data.end(), first,
              first + static_cast<std::ptrdiff_t>(std::size_t{range.end - range.begin} * element));
        }
      }
    }
    const View here{
        static_cast<TensorId>(graph_->tensors.size()), 0, 0, copy.rows, copy.cols, false};
    graph_->tensors.push_back(std::move(copy));
    part_.origins.push_back({of.tensor, {}, 0, 1});
    return here;
  }

  void add_node(std::size_t index, const Ranges& ranges, std::string name) {
    const Node& from = all_.graph_.nodes[index];
    Node node = from;
    node.name = std::move(name);
    std::uint32_t cols = 0;
    for (const Columns& range : ranges) cols += range.end - range.begin;
    const bool by_column = all_.kinds_[index] == Kind::kColumns;
    // They are side by side here: the first says where.
    const auto part_of = [&](const View& of, bool written) {
      const std::uint32_t first = ranges.front().begin - from.out.col + of.col;
      return view(of, {first, first + cols}, written);
    };
    const auto shifted = [&](const View& of) {
      Ranges result;
      for (const Columns& range : ranges) {
        result.push_back({range.begin - from.out.col + of.col, range.end - from.out.col + of.col});
      }
      return result;
    };
    if (!by_column) {
      node.in = view(from.in, columns_of(from.in));
      if (auto* const product = node.product()) {
        product->b = view(from.product()->b, columns_of(from.product()->b));
      }
      if (auto* const stage = node.stage()) {
        stage->tensor = view(from.stage()->tensor, columns_of(from.stage()->tensor));
        if (stage->statistics != kNoTensor) {
          stage->statistics = take_tensor(stage->statistics, false);
        }
      }
      node.out = view(from.out, columns_of(from.out), true);
    } else if (auto* const product = node.product()) {
      node.in = view(from.in, columns_of(from.in));
      if (product->b_transposed) {
        throw hw::InputError("--split heads: " + graph_->name + ": " + from.name +
                             " has transposed weights");
      }
      product->b = constant(from.product()->b, shifted(from.product()->b), node.name + ".weight");
      node.out = part_of(from.out, true);
    } else {
      set_parameters(*node.stage(), *from.stage(), from.out, ranges);
      node.in = part_of(from.in, false);
      const View& second = from.stage()->tensor;
      if (second.tensor != kNoTensor) {
        node.stage()->tensor = all_.is_constant(second.tensor)
                                   ? constant(second, shifted(second), node.name + ".operand")
                                   : part_of(second, false);
      }
      node.out = part_of(from.out, true);
    }
    graph_->nodes.push_back(std::move(node));
  }

  /// The parameters of a stage's columns.
  static void set_parameters(model::StageUse& stage, const model::StageUse& from, const View& out,
                             const Ranges& ranges) {
    stage.parameters.clear();
    const std::size_t words = from.parameters.size() / out.cols;
    for (std::size_t word = 0; word < words; ++word) {
      const auto row = from.parameters.begin() + static_cast<std::ptrdiff_t>(word * out.cols);
      for (const Columns& range : ranges) {
        stage.parameters.insert(stage.parameters.end(), row + (range.begin - out.col),
                                row + (range.end - out.col));
      }
    }
  }

  const Division& all_;
  const std::size_t segment_, core_;
  std::shared_ptr<Graph> graph_;
  ColumnPart part_;
  std::map<TensorId, TensorId> ids_;
};

std::unique_ptr<ColumnPart> Division::part(std::size_t segment, std::size_t core) const {
  Builder builder(*this, segment, core);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (segment_[i] == segment) builder.add(i);
  }
  return builder.take();
}

}  // namespace

std::vector<std::vector<std::unique_ptr<ColumnPart>>> column_parts(const Graph& graph,
                                                                   std::size_t cores) {
  const Division division(graph, cores);
  std::vector<std::vector<std::unique_ptr<ColumnPart>>> parts(division.segments());
  for (std::size_t segment = 0; segment < parts.size(); ++segment) {
    for (std::size_t core = 0; core < cores; ++core) {
      parts[segment].push_back(division.part(segment, core));
    }
  }
  return parts;
}

}  // namespace systole::testbench
