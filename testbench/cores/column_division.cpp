#include "testbench/cores/column_division.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "base/round.h"
#include "hw/postop/postop.h"

namespace systole::testbench {
namespace {

using model::kNoTensor;
using model::Node;
using model::Tensor;
using model::TensorId;
using model::View;

/// Columns that a core gets are multiples of this where there are enough: rows of the array, and
/// bytes of a request.
constexpr std::uint32_t kColumnUnit = 16;

/// What of both is in both.
ColumnRanges common(const ColumnRanges& ranges, Columns with) {
  ColumnRanges result;
  for (const Columns& range : ranges) {
    const Columns both{std::max(range.begin, with.begin), std::min(range.end, with.end)};
    if (both.begin < both.end) result.push_back(both);
  }
  return result;
}

bool covers(const ColumnRanges& ranges, Columns wanted) {
  std::uint32_t at = wanted.begin;
  for (const Columns& range : ranges) {
    if (range.begin <= at && at < range.end) at = range.end;
  }
  return at >= wanted.end;
}

/// `cols` columns in equal parts, as far as units allow.
std::vector<ColumnRanges> equal_parts(std::uint32_t cols, std::size_t cores) {
  const std::uint32_t unit = cols >= kColumnUnit * cores ? kColumnUnit : 1;
  const std::uint64_t units = ceil_div(cols, unit);
  const auto edge = [&](std::size_t of) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(units * of / cores * unit, cols));
  };
  std::vector<ColumnRanges> parts(cores);
  for (std::size_t core = 0; core < cores; ++core) {
    if (edge(core) < edge(core + 1)) parts[core].push_back({edge(core), edge(core + 1)});
  }
  return parts;
}

/// Columns that cores want: by their begin, their end and the core.
using Wishes = std::map<std::uint32_t, std::pair<std::uint32_t, std::size_t>>;

/// What each core wants, if that is every one of `cols` columns once; else nothing.
std::vector<ColumnRanges> wished_parts(const Wishes& wishes, std::uint32_t cols,
                                       std::size_t cores) {
  std::vector<ColumnRanges> parts(cores);
  std::uint32_t at = 0;
  for (const auto& [begin, to] : wishes) {
    if (begin != at) return {};
    at = to.first;
    ColumnRanges& own = parts[to.second];
    if (!own.empty() && own.back().end == begin) {
      own.back().end = to.first;
    } else {
      own.push_back({begin, to.first});
    }
  }
  return at == cols ? parts : std::vector<ColumnRanges>{};
}

}  // namespace

ColumnDivision::ColumnDivision(const model::Graph& graph, std::size_t cores)
    : graph_(graph), cores_(cores) {
  kinds_.resize(graph.nodes.size());
  owners_.resize(graph.nodes.size(), 0);
  tensors_.resize(graph.tensors.size());
  of_one_head_.resize(graph.tensors.size(), false);
  check();
  find_heads();
  find_columns();
  find_segments();
}

void ColumnDivision::check() const {
  for (const Node& node : graph_.nodes) {
    if (node.host() != nullptr || node.in.folded || node.out.folded || node.second().folded) {
      throw hw::InputError("--split heads: " + graph_.name + ": " + node.name +
                           " cannot be divided: the host computes it, or heads share keys");
    }
  }
}

void ColumnDivision::find_heads() {
  // Nodes that write the same columns: a step of a decoder need not fill a row.
  std::map<TensorId, View> written;
  std::set<TensorId> shared;
  for (const Node& node : graph_.nodes) {
    const auto [entry, added] = written.try_emplace(node.out.tensor, node.out);
    const View& other = entry->second;
    if (!added && (other.col != node.out.col || other.cols != node.out.cols)) {
      shared.insert(node.out.tensor);
    }
  }
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
    if (node.out.col == 0 && shared.count(node.out.tensor) == 0) {
      head_of[node.out.tensor] = head[i];
      of_one_head_[node.out.tensor] = true;
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

ColumnDivision::Kind ColumnDivision::kind_of(const Node& node) {
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

void ColumnDivision::find_columns() {
  std::vector<Wishes> wanted(graph_.tensors.size());
  std::vector<bool> clash(graph_.tensors.size(), false);
  const auto want = [&](TensorId tensor, Columns columns, std::size_t core) {
    if (of_one_head_[tensor]) columns = {0, graph_.tensors[tensor].cols};
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
        const ColumnRanges part = common({{begin, to.first}}, columns_of(node.out));
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
    const std::uint32_t cols = graph_.tensors[out].cols;
    if (!clash[out]) spread.own = wished_parts(wanted[out], cols, cores_);
    if (spread.own.empty()) spread.own = equal_parts(cols, cores_);
  }
}

ColumnRanges ColumnDivision::work(std::size_t node, std::size_t core) const {
  const View& out = graph_.nodes[node].out;
  switch (kinds_[node]) {
    case Kind::kColumns:
      return common(tensors_[out.tensor].own[core], columns_of(out));
    case Kind::kHead:
      return owners_[node] == core ? ColumnRanges{columns_of(out)} : ColumnRanges{};
    case Kind::kRows:
      break;
  }
  // What every core has is given to the host once.
  const bool is_output = graph_.tensors[out.tensor].kind == Tensor::Kind::kOutput;
  return is_output && core != 0 ? ColumnRanges{} : ColumnRanges{columns_of(out)};
}

void ColumnDivision::visit_reads(
    std::size_t index, const Columns& columns,
    const std::function<void(TensorId tensor, const Columns& read)>& visit) const {
  const Node& node = graph_.nodes[index];
  const auto same = [&](const View& view) {
    return Columns{columns.begin - node.out.col + view.col, columns.end - node.out.col + view.col};
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

void ColumnDivision::find_segments() {
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
    note_writes(i, segment);
  }
  // What lasts from one inference to the next stays where it is.
  for (TensorId id = 0; id < graph_.tensors.size(); ++id) {
    if (graph_.tensors[id].kind != Tensor::Kind::kState || !tensors_[id].crosses) continue;
    throw hw::InputError("--split heads: " + graph_.name + ": a core reads columns of " +
                         graph_.tensors[id].name +
                         " that another one writes, expected heads with keys of their core");
  }
}

void ColumnDivision::note_writes(std::size_t node, std::size_t segment) {
  for (const TensorId tensor : {graph_.nodes[node].out.tensor, graph_.nodes[node].statistics()}) {
    if (tensor == kNoTensor) continue;
    Spread& spread = tensors_[tensor];
    if (spread.written && spread.segment != segment && tensor == graph_.nodes[node].out.tensor) {
      throw hw::InputError("--split heads: " + graph_.name + ": " + graph_.tensors[tensor].name +
                           " is written before and after an exchange");
    }
    if (!spread.written) spread.segment = segment;
    spread.written = true;
  }
}

}  // namespace systole::testbench
