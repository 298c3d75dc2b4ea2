#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/installation.h"
#include "base/printable.h"
#include "model/network/network_document.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/common/tool.h"

namespace systole::testbench {
namespace {

struct ConvertOptions {
  std::string source, out, name;
};

void list_files(const ConvertOptions& options, CommandFiles& files) {
  files.reads("source", options.source);
  std::error_code ignored;  // no folder, or one that cannot be read: the converter says so
  for (std::filesystem::directory_iterator entry(options.source, ignored), end; entry != end;
       entry.increment(ignored)) {
    if (entry->is_regular_file(ignored)) files.reads("source", entry->path().string());
  }
  files.writes("out", options.out);
}

int run(const ConvertOptions& options) {
  if (!std::filesystem::exists(options.source)) {
    throw hw::InputError(hw::printable(options.source) + ": missing, expected a file or a folder");
  }
  const std::string python = python_interpreter();
  std::string path = environment_or("SYSTOLE_PYTHON_DIR", (hw::installation() + "/python").c_str());
  const std::string before = environment_or("PYTHONPATH", "");
  if (!before.empty()) path += ":" + before;
  std::vector<std::string> command = {python, "-m", "systole_convert"};
  if (!options.name.empty()) command.insert(command.end(), {"--name", options.name});
  command.insert(command.end(), {"--", options.source, options.out});
  const int code = run_tool(command, "", {"PYTHONPATH=" + path});
  if (code == kExitBadInput) return code;  // the converter has said why
  if (code != 0) {
    throw hw::InputError(fmt::format("{} -m systole_convert: failed with exit code {}",
                                     hw::printable(python), code));
  }
  std::string text = hw::printable(options.out) + ": a network file\n";
  try {
    const model::NetworkFile checked(model::Safetensors::open(options.out));
  } catch (const hw::InputError& error) {
    text += std::string("not for systole run: ") + error.what() + "\n";
  }
  print_text(text);
  return kExitOk;
}

}  // namespace

void add_convert_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App& command =
      *app.add_subcommand("convert", "make a network file of Hugging Face, GGUF, ONNX");
  command.add_option("source", options->source, "folder with config.json, GGUF or ONNX file")
      ->type_name("FOLDER|FILE")
      ->required();
  command.add_option("out", options->out, "the network file")
      ->type_name("OUT.safetensors")
      ->required();
  command.add_option("--name", options->name, "name in reports; default: the source's")
      ->type_name("NAME");
  add_examples(command, {"systole convert all-MiniLM-L6-v2 minilm.safetensors",
                         "systole convert model.onnx network.safetensors",
                         "systole model network.safetensors --svg network.svg"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench
