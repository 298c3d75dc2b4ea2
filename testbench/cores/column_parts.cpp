#include "testbench/cores/column_parts.h"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "testbench/cores/column_division.h"

namespace systole::testbench {
namespace {

using model::Graph;
using model::kNoTensor;
using model::Node;
using model::Tensor;
using model::TensorId;
using model::View;

/// Writes the nodes of one part.
class PartBuilder {
 public:
  PartBuilder(const ColumnDivision& division, std::size_t segment, std::size_t core)
      : all_(division), segment_(segment), core_(core), graph_(std::make_shared<Graph>()) {
    graph_->name = division.graph().name;
  }

  void add(std::size_t index) {
    const Node& node = all_.graph().nodes[index];
    const ColumnRanges ranges = all_.work(index, core_);
    // Pieces that are neighbours in every tensor here are one node.
    std::vector<ColumnRanges> groups;
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
  [[nodiscard]] const Tensor& whole(TensorId tensor) const { return all_.graph().tensors[tensor]; }

  /// Whether this core has the tensor with its own columns side by side.
  [[nodiscard]] bool is_compact(TensorId tensor) const {
    const ColumnDivision::Spread& spread = all_.spread_of(tensor);
    return spread.split && !spread.crosses && whole(tensor).kind == Tensor::Kind::kActivation &&
           whole(tensor).data.empty();
  }

  /// The column here of column `col` of the whole tensor.
  [[nodiscard]] std::uint32_t local(TensorId tensor, std::uint32_t col) const {
    if (!is_compact(tensor)) return col;
    std::uint32_t at = 0;
    for (const Columns& own : all_.spread_of(tensor).own[core_]) {
      if (col >= own.begin && col < own.end) return at + col - own.begin;
      at += own.end - own.begin;
    }
    throw std::logic_error("column_parts: a core reads a column that it does not have");
  }

  [[nodiscard]] bool continues(std::size_t index, Columns before, Columns after) const {
    std::vector<std::uint32_t> ends, begins;
    const auto note = [&](const Columns& range, std::vector<std::uint32_t>& columns, bool end) {
      const Node& node = all_.graph().nodes[index];
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
      const ColumnDivision::Spread& spread = all_.spread_of(tensor);
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
        if (!writes) copy.int4 = false;  // it comes as it left the other core
        if (!writes) copy.data = {};     // rows that never change are where it is written
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
      part_.output = all_.spread_of(tensor).split ? all_.spread_of(tensor).own[core_]
                                                  : ColumnRanges{{0, whole(tensor).cols}};
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
  View constant(const View& of, const ColumnRanges& ranges, const std::string& name) {
    const Tensor& from = whole(of.tensor);
    const std::size_t element = hw::bytes_of(from.type);
    Tensor copy = from;
    copy.name = name;
    copy.rows = of.rows;
    copy.cols = 0;
    copy.data = {};
    copy.groups = {};
    if (of.row != 0 || of.rows != from.rows) copy.format = hw::WeightFormat::kInt8;
    for (const Columns& range : ranges) copy.cols += range.end - range.begin;
    for (std::size_t at = 0; copy.grouped() && at < from.groups.size(); at += from.cols) {
      for (const Columns& range : ranges) {
        const auto row = from.groups.begin() + static_cast<std::ptrdiff_t>(at);
        std::vector<hw::WeightGroup>& groups = copy.groups.edit();
        groups.insert(groups.end(), row + range.begin, row + range.end);
      }
    }
    if (!from.data.empty()) {
      for (std::uint32_t row = of.row; row < of.row + of.rows; ++row) {
        for (const Columns& range : ranges) {
          const auto first =
              from.data.begin() +
              static_cast<std::ptrdiff_t>((std::size_t{row} * from.cols + range.begin) * element);
          std::vector<std::uint8_t>& data = copy.data.edit();
          data.insert(
              data.end(), first,
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

  void add_node(std::size_t index, const ColumnRanges& ranges, std::string name) {
    const Node& from = all_.graph().nodes[index];
    Node node = from;
    node.name = std::move(name);
    std::uint32_t cols = 0;
    for (const Columns& range : ranges) cols += range.end - range.begin;
    const bool by_column = all_.by_column(index);
    // They are side by side here: the first says where.
    const auto part_of = [&](const View& of, bool written) {
      const std::uint32_t first = ranges.front().begin - from.out.col + of.col;
      return view(of, {first, first + cols}, written);
    };
    const auto shifted = [&](const View& of) {
      ColumnRanges result;
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
                             const ColumnRanges& ranges) {
    std::vector<std::int32_t> parameters;
    const std::size_t words = from.parameters.size() / out.cols;
    for (std::size_t word = 0; word < words; ++word) {
      const auto row = from.parameters.begin() + static_cast<std::ptrdiff_t>(word * out.cols);
      for (const Columns& range : ranges) {
        parameters.insert(parameters.end(), row + (range.begin - out.col),
                          row + (range.end - out.col));
      }
    }
    stage.parameters = std::move(parameters);
  }

  const ColumnDivision& all_;
  const std::size_t segment_, core_;
  std::shared_ptr<Graph> graph_;
  ColumnPart part_;
  std::map<TensorId, TensorId> ids_;
};

}  // namespace

std::vector<std::vector<std::unique_ptr<ColumnPart>>> column_parts(const Graph& graph,
                                                                   std::size_t cores) {
  const ColumnDivision division(graph, cores);
  std::vector<std::vector<std::unique_ptr<ColumnPart>>> parts(division.segments());
  for (std::size_t segment = 0; segment < parts.size(); ++segment) {
    for (std::size_t core = 0; core < cores; ++core) {
      PartBuilder builder(division, segment, core);
      for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        if (division.segment_of(i) == segment) builder.add(i);
      }
      parts[segment].push_back(builder.take());
    }
  }
  return parts;
}

}  // namespace systole::testbench
