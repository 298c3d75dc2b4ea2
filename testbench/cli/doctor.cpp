#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/installation.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_presets.h"
#include "hw/kernel/gemm.h"
#include "model/model_files.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/common/version.h"
#include "testbench/common/text.h"
#include "testbench/common/tool.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

struct DoctorOptions {
  bool json = false;
};

/// One thing that the program may use.
struct Finding {
  std::string what;
  bool required = false;  ///< nothing works without it; else what `used_for` says does not
  bool found = false;
  std::string where;  ///< or what is wrong with it
  std::string used_for;
};

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Finding presets() {
  Finding finding{"machine presets", true, true, hw::machine_presets_directory(), "--machine NAME"};
  const std::vector<std::string> names = hw::machine_presets();
  std::string broken;
  for (const std::string& name : names) {
    try {
      static_cast<void>(hw::find_machine(name));
    } catch (const hw::InputError& error) {
      broken = error.what();
    }
  }
  finding.found = !names.empty() && broken.empty();
  if (!broken.empty()) finding.where = broken.substr(0, broken.find('\n'));
  return finding;
}

Finding models() {
  return {"models", true, !model::model_names().empty(), model::models_directory(), "--model NAME"};
}

Finding file(const std::string& what, const std::string& path, const std::string& used_for) {
  return {what, true, is_file(path), path, used_for};
}

/// A program that the shell would find.
Finding tool(const std::string& name, const std::string& used_for) {
  std::istringstream folders(environment_or("PATH", ""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = folder + "/" + name;
    if (is_file(path) && ::access(path.c_str(), X_OK) == 0) {
      return {name, false, true, path, used_for};
    }
  }
  return {name, false, false, "not in PATH", used_for};
}

/// A module of the Python that runs the program's Python parts.
Finding module(const std::string& name, const std::string& used_for) {
  const std::string python = python_interpreter();
  Finding finding{"Python: " + name, false, false, "not installed for " + python, used_for};
  try {
    const std::string code =
        "import importlib.util as u, sys; sys.exit(u.find_spec('" + name + "') is None)";
    finding.found = run_tool({python, "-c", code}, "") == 0;
    if (finding.found) finding.where = python;
  } catch (const hw::InputError&) {
    finding.where = python + " cannot be started";
  }
  return finding;
}

int run(const DoctorOptions& options) {
  const std::string page = hw::installation() + "/testbench/page/page.html";
  const std::vector<Finding> findings = {
      presets(),
      models(),
      file("pictures", default_data(), "systole run on a vision model"),
      file("published figures", data_file("published/survey.toml"), "systole reproduce"),
      file("report page", page, "--report"),
      tool("gnuplot", "--plots"),
      tool("dot", "systole model --svg"),
      tool("gtkwave", "looking at --wave"),
      tool("verilator", "systole rtl"),
      tool("c++", "systole rtl add"),
      module("numpy", "systole convert"),
      module("gguf", "systole convert, of GGUF"),
      module("onnx", "systole convert, of ONNX"),
      module("optuna", "systole sweep, searches"),
      module("distributed", "systole sweep on Dask"),
  };
  bool healthy = true;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  Table table("state | what | for | where");
  for (const Finding& finding : findings) {
    healthy = healthy && (finding.found || !finding.required);
    const char* const state = finding.found ? "ok" : finding.required ? "BROKEN" : "missing";
    table.add({state, finding.what, finding.used_for, finding.where});
    list.push_back({{"what", finding.what},
                    {"state", state},
                    {"used_for", finding.used_for},
                    {"where", finding.where}});
  }
  const std::string kernels = hw::gemm_backend_name(hw::default_gemm_backend());
  if (options.json) {
    print_json({{"healthy", healthy},
                {"installation", hw::installation()},
                {"matrix_kernels", kernels},
                {"findings", list}});
  } else {
    FactList facts;
    facts.add("systole", fmt::format("{}{}{}", kVersion, *kCommit == '\0' ? "" : ", ", kCommit));
    facts.add("comes with", hw::installation());
    facts.add("kernels", kernels + " for matrix products on this processor");
    facts.add("state", healthy ? "everything that is needed is there" : "parts of it are broken");
    print_text(facts.text() + "\n" + table.text());
  }
  return healthy ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_doctor_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App& command = *app.add_subcommand("doctor", "whether all that the program uses is there");
  command.add_flag("--json", options->json, "print as JSON");
  add_examples(command, {"systole doctor", "systole doctor --json"});
  set_action(command, action, options, run);
}

}  // namespace systole::testbench
