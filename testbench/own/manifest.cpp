#include "testbench/own/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string_view>

#include "base/error.h"
#include "base/installation.h"
#include "base/printable.h"
#include "hw/description/toml_text.h"
#include "testbench/own/own_driver.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxBytes = 1 << 20;

class ManifestReader {
 public:
  explicit ManifestReader(const std::string& folder)
      : path_(folder + "/" + kManifest),
        root_(hw::parse_toml(hw::read_toml(path_, kMaxBytes, "a manifest"), hw::printable(path_),
                             kMaxBytes, "a manifest")) {
    manifest_.folder = folder;
  }

  OwnManifest read() {
    read_block();
    manifest_.top = identifier(required(root_, "top"));
    manifest_.sources = paths("sources", true);
    if (manifest_.sources.empty()) fail(required(root_, "sources"), "expected a file at least");
    manifest_.include = paths("include", false);
    for (const auto& [name, node] : table("parameters")) {
      check_name(name);
      const auto* value = node.as_integer();
      if (value == nullptr) wrong(node, "an integer");
      manifest_.parameters[std::string(name.str())] = value->get();
    }
    if (manifest_.top == "systole_" + manifest_.block) add_sizes();
    for (const auto& [name, node] : table("ports")) {
      check_name(name);
      manifest_.ports[std::string(name.str())] = identifier(node);
    }
    if (root_.contains("adapter")) {
      const toml::table& adapter = table("adapter");
      only(adapter, {"header", "class"});
      manifest_.adapter = path(required(adapter, "header"), true);
      manifest_.adapter_class = identifier(required(adapter, "class"));
    }
    return manifest_;
  }

 private:
  void read_block() {
    const toml::node& node = required(root_, "block");
    const std::vector<std::string> blocks = own_blocks();
    manifest_.block = text(node);
    if (std::find(blocks.begin(), blocks.end(), manifest_.block) == blocks.end()) {
      wrong(node, fmt::format("one of {}", fmt::join(blocks, ", ")));
    }
    const OwnDriver& driver = *find_own_driver(manifest_.block);
    std::vector<std::string_view> keys = {"block",      "top",   "sources", "include",
                                          "parameters", "ports", "adapter"};
    for (const OwnSizeKey& size : driver.sizes) keys.emplace_back(size.name);
    only(root_, keys);
    for (const OwnSizeKey& size : driver.sizes) {
      const toml::node& size_node = required(root_, size.name);
      const auto* value = size_node.as_integer();
      if (value == nullptr || value->get() < size.least || value->get() > size.most) {
        wrong(size_node, size.least == size.most ? fmt::format("{}", size.least)
                                                 : fmt::format("{} to {}", size.least, size.most));
      }
      manifest_.sizes.push_back(static_cast<std::uint32_t>(value->get()));
    }
    if (manifest_.block == "systolic_array" && manifest_.sizes[0] != manifest_.sizes[1]) {
      wrong(required(root_, "cols"), fmt::format("{}, as many as rows", manifest_.sizes[0]));
    }
  }

  /// Systole's own module has a parameter for each size.
  void add_sizes() {
    const std::vector<OwnSizeKey>& sizes = find_own_driver(manifest_.block)->sizes;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      manifest_.parameters.emplace(sizes[i].parameter, manifest_.sizes[i]);
    }
  }

  [[noreturn]] void fail(const toml::node& node, const std::string& text) const {
    throw hw::InputError(hw::toml_place(hw::printable(path_), node.source().begin) + text);
  }
  [[noreturn]] void wrong(const toml::node& node, const std::string& expected) const {
    fail(node, "found " + hw::found_text(node) + ", expected " + expected);
  }

  void only(const toml::table& table, const std::vector<std::string_view>& keys) const {
    for (const auto& [key, node] : table) {
      if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
      throw hw::InputError(hw::toml_place(hw::printable(path_), key.source().begin) +
                           hw::printable(std::string(key.str())) +
                           fmt::format(": unknown key, expected one of {}", fmt::join(keys, ", ")));
    }
  }
  const toml::node& required(const toml::table& table, std::string_view key) const {
    if (const toml::node* node = table.get(key)) return *node;
    throw hw::InputError(hw::toml_place(hw::printable(path_), table.source().begin) +
                         fmt::format("{} is missing", key));
  }
  const toml::table& table(std::string_view key) const {
    static const toml::table kNone;
    const toml::node* node = root_.get(key);
    if (node == nullptr) return kNone;
    if (node->as_table() == nullptr) wrong(*node, "a table");
    return *node->as_table();
  }
  std::string text(const toml::node& node) const {
    if (node.as_string() == nullptr) wrong(node, "a text");
    return node.as_string()->get();
  }
  // Names go into C++ that is compiled.
  static bool is_name(const std::string& text) {
    static const std::regex kName("[A-Za-z_][A-Za-z0-9_]*");
    return std::regex_match(text, kName);
  }
  std::string identifier(const toml::node& node) const {
    const std::string name = text(node);
    if (!is_name(name)) wrong(node, "a name of letters, digits and _");
    return name;
  }
  void check_name(const toml::key& key) const {
    const std::string name(key.str());
    if (is_name(name)) return;
    throw hw::InputError(hw::toml_place(hw::printable(path_), key.source().begin) +
                         hw::printable(name) + ": expected a name of letters, digits and _");
  }
  std::string path(const toml::node& node, bool is_file) const {
    const std::string found = (fs::path(manifest_.folder) / text(node)).string();
    std::error_code error;
    if (is_file ? fs::is_regular_file(found, error) : fs::is_directory(found, error)) return found;
    const std::string ours = (fs::path(systole_rtl_folder()) / text(node)).string();
    if (is_file && fs::is_regular_file(ours, error)) return ours;
    wrong(node, is_file ? "a file below that of the manifest, or below rtl/ of Systole"
                        : "a folder below that of the manifest");
  }
  std::vector<std::string> paths(std::string_view key, bool is_file) const {
    std::vector<std::string> found;
    const toml::node* node = root_.get(key);
    if (node == nullptr && !is_file) return found;
    const toml::array* array = required(root_, key).as_array();
    if (array == nullptr) wrong(*node, "a list");
    for (const toml::node& one : *array) found.push_back(path(one, is_file));
    return found;
  }

  std::string path_;
  toml::table root_;
  OwnManifest manifest_;
};

}  // namespace

std::vector<std::string> OwnManifest::files() const {
  std::vector<std::string> files = sources;
  files.push_back(path());
  if (!adapter.empty()) files.push_back(adapter);
  return files;
}

std::string installed_folder(const std::string& file) {
  for (const std::string& folder : {hw::installation() + "/include", hw::installation()}) {
    std::error_code error;
    if (fs::is_regular_file(folder + "/" + file, error)) return folder;
  }
  throw hw::InputError(hw::printable(hw::installation()) + ": " + file +
                       " is missing, expected an installation with what users' RTL needs");
}

std::string systole_rtl_folder() { return installed_folder("rtl/common/systole_pkg.sv") + "/rtl"; }

OwnManifest read_manifest(const std::string& folder) { return ManifestReader(folder).read(); }

}  // namespace systole::testbench
