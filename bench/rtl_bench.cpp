/// Speed of the Verilated RTL: clock rate of each block, the matrix products of one BERT-Base layer
/// on the 16 x 16 array, the whole core alone and on the bus, and a whole network with every block
/// as RTL next to the model alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <systemc>
#include <vector>

#include "bench/rtl_core.h"
#include "bench/rtl_layer.h"
#include "bench/rtl_rates.h"
#include "bench/rtl_system.h"

namespace systole::bench {
namespace {

using nlohmann::ordered_json;

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

std::string cell(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:.4f}", value.get<double>()) : value.dump();
}

/// Names as column titles; text to the left, numbers to the right.
void print_table(const std::string& title, const ordered_json& lines) {
  fmt::print("{}\n", title);
  std::string titles;
  std::vector<std::string> rows(lines.size());
  for (const auto& [name, unused] : lines.front().items()) {
    std::size_t width = name.size();
    for (const ordered_json& line : lines) width = std::max(width, cell(line.at(name)).size());
    const bool is_text = lines.front().at(name).is_string();
    const auto append = [&](std::string& row, const std::string& text) {
      if (!row.empty()) row += "  ";
      row += is_text ? fmt::format("{:<{}}", text, width) : fmt::format("{:>{}}", text, width);
    };
    append(titles, name);
    for (std::size_t i = 0; i < rows.size(); ++i) append(rows[i], cell(lines[i].at(name)));
  }
  fmt::print("{}\n", titles);
  for (const std::string& row : rows) fmt::print("{}\n", row);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  bool json = false;
  CLI::App app("Speed of the Verilated RTL, block by block and in the whole system.", "rtl_bench");
  app.add_flag("--json", json, "print a JSON document");
  try {
    app.parse(argc, argv);
    const ordered_json rates = measure_rates();
    if (!json) print_table("CPU time of one thread", rates);
    const LayerResult layer = run_layer();
    if (!json) {
      print_table("\nOne BERT-Base layer of length 128 on systolic_array 16x16", layer.lines);
      fmt::print("wall_s {:.3f}, operands and hw::gemm() included\n", layer.wall);
    }
    const ordered_json core = CoreLayer().measure();
    if (!json) print_table("\nA layer of 8 tokens in the whole core", core);
    SystemComparison comparison;
    const ordered_json system = comparison.measure();
    if (json) {
      const ordered_json document{
          {"blocks", rates},
          {"layer", {{"products", layer.lines}, {"wall_s", layer.wall}}},
          {"core", core},
          {"system", {{"model", kSystemModel}, {"machine", kSystemMachine}, {"runs", system}}}};
      fmt::print("{}\n", document.dump(2));
    } else {
      print_table(fmt::format("\n{} on machine {}, wall time of the simulation", kSystemModel,
                              kSystemMachine),
                  system);
    }
    return layer.exact && comparison.equal() ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rtl_bench: {}\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace systole::bench

int sc_main(int argc, char* argv[]) { return systole::bench::run(argc, argv); }
