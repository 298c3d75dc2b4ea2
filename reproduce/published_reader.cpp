/// Reads the files of published figures.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_text.h"
#include "hw/description/toml_text.h"
#include "reproduce/published.h"

namespace systole::testbench {
namespace {

using Keys = std::vector<std::string_view>;

constexpr int kMaxDecimals = 9;
constexpr const char* kTolerance =
    "\"equal\", \"at most\", \"at least\", \"none\", \"printed\", \"printed + 1 %\", \"5 %\" or a "
    "number and the figure's unit (\"points\" of %)";

/// The number at the front of a text, which it takes off.
std::optional<double> take_number(std::string_view& text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0.0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// Half of a figure's last digit.
double rounding(int decimals) { return 0.5 * std::pow(10.0, -decimals); }

/// What `text` means for a figure; an error: none.
std::optional<std::optional<Tolerance>> tolerance_of(std::string_view text,
                                                     const Published& figure) {
  using Kind = Tolerance::Kind;
  constexpr std::string_view kPrinted = "printed", kMore = " + ";
  if (text == "none") return std::optional<Tolerance>();
  if (text == "equal") return kExactly;
  if (text == "at most") return kAtMost;
  if (text == "at least") return kAtLeast;
  const bool as_printed = text.substr(0, kPrinted.size()) == kPrinted;
  Tolerance tolerance{Kind::kAbsolute, 0.0};
  if (as_printed) {
    if (!figure.decimals) return std::nullopt;
    tolerance.amount = rounding(*figure.decimals);
    text.remove_prefix(kPrinted.size());
    if (text.empty()) return tolerance;
    if (text.substr(0, kMore.size()) != kMore) return std::nullopt;
    text.remove_prefix(kMore.size());
  }
  const std::optional<double> number = take_number(text);
  if (!number || text.empty() || text.front() != ' ') return std::nullopt;
  text.remove_prefix(1);
  if (text == "%") {
    if (!as_printed) return Tolerance{Kind::kRelative, *number / 100.0};
    tolerance.amount += *number / 100.0 * std::fabs(figure.value);
    if (std::isnan(figure.value)) return std::nullopt;
  } else {
    if (as_printed || text != (figure.unit == "%" ? "points" : figure.unit)) return std::nullopt;
    tolerance.amount = *number;
  }
  return tolerance;
}

}  // namespace

/// Walks the tree of one file; the first error ends it.
class PublishedReader {
 public:
  PublishedReader(std::string source, PublishedPaper& paper)
      : source_(std::move(source)), paper_(paper) {}

  void read(const toml::table& root) {
    check_keys(root, "", {"inputs", "sources", "figures", "tables", "sections"});
    each(root, "sources", [&](const toml::node& node, const std::string& key, const Path& path) {
      sources_[key] = new_source(node, path);
    });
    if (const toml::node* inputs = root.get("inputs")) read_inputs(*inputs);
    each(root, "figures", [&](const toml::node& node, const std::string& key, const Path& path) {
      paper_.figures_[key] = figure(table(node, path), path, {});
    });
    each(root, "tables", [&](const toml::node& node, const std::string& key, const Path& path) {
      paper_.tables_[key] = read_table(table(node, path), path);
    });
    each(root, "sections", [&](const toml::node& node, const std::string& key, const Path& path) {
      paper_.sections_[key] = section(table(node, path), path);
    });
  }

 private:
  using Path = std::string;
  /// What a figure does not say itself.
  struct Form {
    Published figure = {std::numeric_limits<double>::quiet_NaN(), "", ""};
    std::string tolerance = "none";
  };

  [[noreturn]] void fail(const toml::node& node, const Path& path, const std::string& found,
                         const std::string& expected) const {
    throw hw::InputError(fmt::format("{}{}: found {}, expected {}",
                                     hw::toml_place(source_, node.source().begin),
                                     hw::printable(path, 2 * hw::kShownBytes), found, expected));
  }
  [[noreturn]] void fail(const toml::node& node, const Path& path,
                         const std::string& expected) const {
    fail(node, path, hw::found_text(node), expected);
  }

  const toml::table& table(const toml::node& node, const Path& path) const {
    if (const toml::table* found = node.as_table()) return *found;
    fail(node, path, "a table");
  }
  const toml::array& array(const toml::node& node, const Path& path) const {
    if (const toml::array* found = node.as_array()) return *found;
    fail(node, path, "an array");
  }
  std::string text(const toml::node& node, const Path& path) const {
    const auto* found = node.as_string();
    if (found == nullptr || found->get().empty()) fail(node, path, "a text");
    for (const char c : found->get()) {
      if (static_cast<unsigned char>(c) < 0x20U) fail(node, path, "a text of one line");
    }
    return found->get();
  }
  std::string text(const toml::table& parent, const char* key, const Path& path) const {
    const toml::node* node = parent.get(key);
    if (node == nullptr) fail(parent, path, fmt::format("no {}", key), "one");
    return text(*node, path + "." + key);
  }
  double number(const toml::node& node, const Path& path) const {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value)) fail(node, path, "a number");
    return *value;
  }

  void check_keys(const toml::table& found, const Path& path, const Keys& known) const {
    for (auto&& [key, node] : found) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      fail(node, path.empty() ? "keys" : path,
           "'" + hw::printable(key.str(), hw::kShownBytes) + "'",
           fmt::format("one of {}", fmt::join(known, ", ")));
    }
  }

  template <typename Read>
  void each(const toml::table& root, const char* name, const Read& read) const {
    const toml::node* const node = root.get(name);
    if (node == nullptr) return;
    for (auto&& [key, entry] : table(*node, name)) {
      read(entry, std::string(key.str()), fmt::format("{}.{}", name, key.str()));
    }
  }

  Source new_source(const toml::node& node, const Path& path) const {
    const toml::table& found = table(node, path);
    check_keys(found, path, {"text", "class"});
    Source source(text(found, "text", path));
    const toml::node* const claim = found.get("class");
    if (claim == nullptr) return source;
    const std::string name = text(*claim, path + ".class");
    for (std::size_t i = 0; i < kClaims; ++i) {
      source.claim = static_cast<Claim>(i);
      if (claim_name(source.claim) == name) return source;
    }
    fail(*claim, path + ".class",
         "published, calibrated, follows, estimate, measured here or recollected");
  }

  /// A key of [sources], or a source that is used once.
  Source source(const toml::node& node, const Path& path) const {
    if (node.is_table()) return new_source(node, path);
    const auto found = sources_.find(text(node, path));
    if (found == sources_.end()) fail(node, path, "a key of [sources], or { text = ... }");
    return found->second;
  }

  /// `form` with what `found` says of it.
  Form form(const toml::table& found, const Path& path, Form form) const {
    if (const toml::node* node = found.get("source")) {
      form.figure.source = source(*node, path + ".source");
    }
    if (const toml::node* node = found.get("unit")) form.figure.unit = text(*node, path + ".unit");
    if (const toml::node* node = found.get("tolerance")) {
      form.tolerance = text(*node, path + ".tolerance");
    }
    if (const toml::node* node = found.get("decimals")) {
      const auto* value = node->as_integer();
      if (value == nullptr || value->get() < 0 || value->get() > kMaxDecimals) {
        fail(*node, path + ".decimals", fmt::format("an integer (0 to {})", kMaxDecimals));
      }
      form.figure.decimals = static_cast<int>(value->get());
    }
    return form;
  }

  Published finished(const toml::node& node, const Path& path, const Form& form) const {
    Published figure = form.figure;
    if (figure.unit.empty()) fail(node, path, "no unit", "one");
    if (figure.source.text.empty()) fail(node, path, "no source", "one");
    const auto tolerance = tolerance_of(form.tolerance, figure);
    if (!tolerance) fail(node, path + ".tolerance", hw::quoted_text(form.tolerance), kTolerance);
    figure.tolerance = *tolerance;
    return figure;
  }

  /// A figure; without a value one that the program computes.
  Published figure(const toml::table& found, const Path& path, const Form& usual) const {
    check_keys(found, path, {"value", "unit", "source", "tolerance", "decimals"});
    Form own = form(found, path, usual);
    if (const toml::node* value = found.get("value")) {
      own.figure.value = number(*value, path + ".value");
    }
    return finished(found, path, own);
  }

  /// A number, which is what the column says, a figure, or "": nothing was printed.
  Published cell(const toml::node& node, const Path& path, Form column) const {
    if (node.is_string() && node.ref<std::string>().empty()) {
      column.figure.source = {};
      return column.figure;
    }
    if (const toml::table* found = node.as_table()) {
      const Published result = figure(*found, path, column);
      if (std::isnan(result.value)) fail(node, path, "no value", "one");
      return result;
    }
    column.figure.value = number(node, path);
    return finished(node, path, column);
  }

  PublishedTable read_table(const toml::table& found, const Path& path) const {
    check_keys(found, path, {"columns", "rows", "unit", "source", "tolerance", "decimals"});
    const Form usual = form(found, path, {});
    std::vector<Form> forms;
    PublishedTable result{fmt::format("{}: {}", source_, hw::printable(path)), {}, {}};
    for (auto&& node : entries(found, "columns", path)) {
      const Path here = path + ".columns";
      forms.push_back(usual);
      if (const toml::table* column = node.as_table()) {
        check_keys(*column, here, {"name", "unit", "source", "tolerance", "decimals"});
        forms.back() = form(*column, here, usual);
        result.columns.push_back(text(*column, "name", here));
      } else {
        result.columns.push_back(text(node, here));
      }
    }
    for (auto&& node : entries(found, "rows", path)) {
      const toml::array& cells = array(node, path + ".rows");
      if (cells.size() != forms.size() + 1) {
        fail(node, path + ".rows", fmt::format("{} cells", cells.size()),
             fmt::format("a name and {} numbers", forms.size()));
      }
      PublishedTable::Row row{text(cells[0], path + ".rows"), {}};
      for (std::size_t i = 0; i < forms.size(); ++i) {
        row.cells.push_back(cell(cells[i + 1], path + "." + row.name, forms[i]));
      }
      result.rows.push_back(std::move(row));
    }
    return result;
  }

  const toml::array& entries(const toml::table& found, const char* key, const Path& path) const {
    static const toml::array none;
    const toml::node* const node = found.get(key);
    return node == nullptr ? none : array(*node, path + "." + key);
  }

  PublishedPaper::Section section(const toml::table& found, const Path& path) const {
    check_keys(found, path, {"title", "notes", "rows", "unit", "source", "tolerance", "decimals"});
    const Form usual = form(found, path, {});
    PublishedPaper::Section result{text(found, "title", path), {}, {}};
    for (auto&& note : entries(found, "notes", path)) {
      result.notes.push_back(text(note, path + ".notes"));
    }
    for (auto&& node : entries(found, "rows", path)) {
      const Path here = path + ".rows";
      const toml::table& row = table(node, here);
      check_keys(row, here, {"name", "metric", "figure", "value", "unit"});
      PublishedPaper::Row entry{text(row, "name", here), {}, {}, usual.figure};
      if (const toml::node* metric = row.get("metric")) entry.metric = text(*metric, here);
      if (const toml::node* value = row.get("value")) entry.value = text(*value, here);
      if (const toml::node* figure = row.get("figure")) {
        entry.figure = row_figure(*figure, here + ".figure", usual);
        if (std::isnan(entry.figure.value) == entry.value.empty()) {
          fail(node, here, "no value, or two",
               "one of the figure, or the metric that is its value");
        }
      } else {
        entry.figure.source = {};
        if (row.get("unit") != nullptr) entry.figure.unit = text(row, "unit", here);
        if (entry.figure.unit.empty()) fail(node, here, "neither figure nor unit", "one of them");
        if (entry.metric.empty()) fail(node, here, "neither figure nor metric", "one of them");
      }
      result.rows.push_back(std::move(entry));
    }
    return result;
  }

  /// A key of [figures], or a figure or number of its own.
  Published row_figure(const toml::node& node, const Path& path, const Form& usual) const {
    if (const toml::table* found = node.as_table()) return figure(*found, path, usual);
    if (!node.is_string()) return cell(node, path, usual);
    const auto found = paper_.figures_.find(text(node, path));
    if (found == paper_.figures_.end()) fail(node, path, "a key of [figures]");
    return found->second;
  }

  void read_inputs(const toml::node& inputs) {
    for (auto&& node : array(inputs, "inputs")) {
      const toml::table& input = table(node, "inputs");
      check_keys(input, "inputs", {"name", "text"});
      paper_.inputs_.emplace_back(text(input, "name", "inputs"), text(input, "text", "inputs"));
    }
  }

  const std::string source_;
  PublishedPaper& paper_;
  std::map<std::string, Source> sources_;
};

PublishedPaper PublishedPaper::parse(std::string_view text, const std::string& source_name) {
  PublishedPaper paper;
  paper.source_ = hw::printable(source_name);
  PublishedReader reader(paper.source_, paper);
  reader.read(
      hw::parse_toml(text, paper.source_, PublishedPaper::kMaxFile, PublishedPaper::kExpected));
  return paper;
}

}  // namespace systole::testbench
