#include "mapper/fusion_account.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace systole::mapper {
namespace {

/// Parts of a name that are numbered.
constexpr std::array<std::string_view, 2> kNumbered = {"head", "seq"};

Elements elements_of(const model::Graph& graph, const model::View& view) {
  const std::uint64_t count = std::uint64_t{view.rows} * view.cols;
  return {count, count * hw::bytes_of(graph.tensors[view.tensor].type)};
}

PassAccount account_of(const model::Graph& graph, const Group& group) {
  PassAccount pass;
  pass.groups = 1;
  pass.written = elements_of(graph, group.written());
  if (group.attention()) {
    pass.streamed = elements_of(graph, group.attention()->query);
    pass.stationary = elements_of(graph, group.attention()->key);
    pass.stationary += elements_of(graph, group.attention()->value);
  } else {
    pass.streamed = elements_of(graph, group.a);
    if (group.matmul() != nullptr) pass.stationary = elements_of(graph, group.matmul()->b);
  }
  for (const model::View& view : group.tensors) pass.streamed += elements_of(graph, view);
  pass.parameters = std::uint64_t{hw::parameter_words(group.chain)} * group.n();
  if (group.pre) {
    pass.parameters += std::uint64_t{hw::parameter_words(group.pre->chain)} * group.a.cols;
    for (const model::View& view : group.pre->tensors) pass.streamed += elements_of(graph, view);
    pass.trips += elements_of(graph, group.a).count;
  }
  for (const HeadMixLayer& encoder : group.sections.encoders) {
    pass.written += elements_of(graph, encoder.out);
  }
  pass.trips += pass.written.count;
  return pass;
}

void add(PassAccount& sum, const PassAccount& pass) {
  sum.groups += pass.groups;
  sum.trips += pass.trips;
  sum.streamed += pass.streamed;
  sum.written += pass.written;
  sum.stationary += pass.stationary;
  sum.parameters += pass.parameters;
}

}  // namespace

std::string pass_of(const std::string& name) {
  std::string result;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    std::string part = name.substr(begin, end - begin);
    for (const std::string_view word : kNumbered) {
      const bool numbered =
          part.size() > word.size() && part.compare(0, word.size(), word) == 0 &&
          std::all_of(part.begin() + static_cast<std::ptrdiff_t>(word.size()), part.end(),
                      [](unsigned char c) { return std::isdigit(c); });
      if (numbered) part = std::string(word) + "*";
    }
    result += (begin == 0 ? "" : ".") + part;
    begin = end + 1;
  }
  return result;
}

PassAccount FusionAccount::total() const {
  PassAccount sum;
  for (const PassAccount& pass : passes) add(sum, pass);
  return sum;
}

FusionAccount account_fusion(const model::Graph& graph, const Mapping& mapping) {
  FusionAccount account;
  for (const Group& group : mapping.groups) {
    if (group.encoder()) continue;
    const std::string name = pass_of(group.name);
    const auto known = std::find_if(account.passes.begin(), account.passes.end(),
                                    [&](const PassAccount& pass) { return pass.name == name; });
    PassAccount& pass = known == account.passes.end() ? account.passes.emplace_back() : *known;
    pass.name = name;
    add(pass, account_of(graph, group));
  }
  return account;
}

}  // namespace systole::mapper
