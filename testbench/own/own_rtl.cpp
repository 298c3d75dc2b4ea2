#include "testbench/own/own_rtl.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "testbench/common/progress.h"
#include "testbench/common/tool.h"
#include "testbench/own/own_driver.h"
#include "testbench/rtl/engine/own_block.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

/// What `systole rtl add` is about, on a terminal, while it takes longer than a second.
class Steps {
 public:
  void begin(std::string step) { step_ = std::move(step); }
  void tick() {
    if (line_.due()) line_.draw(fmt::format("{}, {} s", step_, line_.seconds()));
  }

 private:
  StatusLine line_;
  std::string step_;
};

std::string model_class(const OwnManifest& manifest) { return "Vown_" + manifest.block; }

std::string verilator() { return environment_or("VERILATOR", "verilator"); }

/// Clang's Verilated code is faster than that of g++ (Makefile.verilator).
std::string compiler() {
  const bool has_clang = run_tool({"sh", "-c", "command -v clang++ >/dev/null"}, "") == 0;
  return environment_or("CXX", has_clang ? "clang++" : "c++");
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What `command` prints, without the end of the line.
std::string output_of(const std::string& place, const std::vector<std::string>& command,
                      const std::string& file) {
  std::vector<std::string> shell = {"sh", "-c", "out=$1; shift; \"$@\" >\"$out\"", "sh", file};
  shell.insert(shell.end(), command.begin(), command.end());
  if (run_tool(shell, "") != 0) {
    throw hw::InputError(fmt::format("{}: {} cannot be run, expected it in PATH", place,
                                     hw::printable(command.front())));
  }
  std::string text = text_of(file);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void run_or_fail(const std::string& place, const std::vector<std::string>& command,
                 const std::string& what, Steps& steps) {
  if (run_tool(command, "", {}, [&] { steps.tick(); }) == 0) return;
  throw hw::InputError(fmt::format("{}: {} found errors (above), expected {}", place,
                                   hw::printable(command.front()), what));
}

/// Ports from the header that Verilator writes: VL_IN8(&name,msb,lsb);
/// VL_OUTW(&name,msb,lsb,words).
std::vector<RtlPort> ports_in(const std::string& header) {
  static const std::regex kPort(R"(VL_(IN|OUT)(8|16|64|W)?\(&(\w+),(\d+),(\d+))");
  const std::string text = text_of(header);
  std::vector<RtlPort> ports;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), kPort);
       it != std::sregex_iterator(); ++it) {
    ports.push_back({(*it)[3], (*it)[1] == "OUT",
                     static_cast<unsigned>(std::stoul((*it)[4]) - std::stoul((*it)[5]) + 1)});
  }
  return ports;
}

const RtlPort* find_port(const std::vector<RtlPort>& ports, const std::string& name) {
  const auto port = std::find_if(ports.begin(), ports.end(),
                                 [&](const RtlPort& one) { return one.name == name; });
  return port == ports.end() ? nullptr : &*port;
}

std::string names_of(const std::vector<RtlPort>& ports) {
  std::vector<std::string> names;
  for (const RtlPort& port : ports) names.push_back(port.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Verilator's options for Systole's RTL, below the user's own.
std::vector<std::string> systole_rtl() {
  const std::string rtl = systole_rtl_folder();
  std::vector<std::string> options;
  std::vector<std::string> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(rtl)) {
    if (entry.is_directory()) folders.push_back("-I" + entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  options.insert(options.end(), folders.begin(), folders.end());
  options.push_back(rtl + "/common/lint.vlt");
  options.push_back(rtl + "/common/shared_code.vlt");
  options.push_back(rtl + "/common/systole_pkg.sv");
  return options;
}

/// Each port of ours has one of theirs, unless an adapter is in between.
void check_ports(const OwnManifest& manifest, const std::vector<RtlPort>& ours,
                 const std::vector<RtlPort>& theirs) {
  const std::string place = hw::printable(manifest.path()) + ": ";
  for (const auto& [name, their_name] : manifest.ports) {
    if (find_port(ours, name) == nullptr) {
      throw hw::InputError(place + fmt::format("ports: {} has no port {}, expected one of {}",
                                               manifest.block, name, names_of(ours)));
    }
    if (find_port(theirs, their_name) == nullptr) {
      throw hw::InputError(place + fmt::format("ports: {} has no port {}, expected one of {}",
                                               manifest.top, their_name, names_of(theirs)));
    }
  }
  if (!manifest.adapter.empty()) return;
  std::set<std::string> used;
  for (const RtlPort& port : ours) {
    const auto mapped = manifest.ports.find(port.name);
    const std::string name = mapped == manifest.ports.end() ? port.name : mapped->second;
    const RtlPort* const their = find_port(theirs, name);
    if (their == nullptr) {
      throw hw::InputError(place + fmt::format("{} has no port {}, expected it for {} of {}, an "
                                               "entry in [ports], or an adapter",
                                               manifest.top, name, port.name, manifest.block));
    }
    const auto shape = [](const RtlPort& one) {
      return fmt::format("an {} of {} bits", one.is_output ? "output" : "input", one.bits);
    };
    if (shape(port) != shape(*their)) {
      throw hw::InputError(place + fmt::format("port {} of {}: found {}, expected {}", name,
                                               manifest.top, shape(*their), shape(port)));
    }
    used.insert(name);
  }
  for (const RtlPort& port : theirs) {
    if (port.is_output || used.count(port.name) != 0) continue;
    throw hw::InputError(place + fmt::format("{} of {} is an input that {} does not have, expected "
                                             "an adapter that drives it",
                                             port.name, manifest.top, manifest.block));
  }
}

constexpr const char* kTrace =
    "  void trace(VerilatedFstC* file, int levels, int options = 0) {\n"
    "    top.trace(file, levels, options);\n"
    "  }\n";

/// The model under our names of its ports, and the block.
std::string glue(const OwnManifest& manifest, const std::string& program, bool checked,
                 const std::vector<RtlPort>& ours, const std::vector<RtlPort>& theirs) {
  const std::string model = model_class(manifest);
  std::string members;
  for (const RtlPort& port : ours) {
    const auto mapped = manifest.ports.find(port.name);
    const std::string name = mapped == manifest.ports.end() ? port.name : mapped->second;
    if (find_port(theirs, name) == nullptr) continue;  // the adapter's
    members += fmt::format("  decltype({0}::{1})& {2} = top.{1};\n", model, name, port.name);
  }
  const OwnDriver& driver = *find_own_driver(manifest.block);
  const auto with_sizes = [&](const char* text) {
    std::string filled = text;
    for (std::size_t i = 0; i < manifest.sizes.size(); ++i) {
      const std::string place = "{" + std::to_string(i) + "}";
      for (std::size_t at; (at = filled.find(place)) != std::string::npos;) {
        filled.replace(at, place.size(), std::to_string(manifest.sizes[i]));
      }
    }
    return filled;
  };
  const std::string adapter =
      manifest.adapter.empty()
          ? "using Model = OwnPorts;\n"
          : fmt::format("#include \"{}\"\nusing Model = {};\n",
                        fs::absolute(manifest.adapter).string(), manifest.adapter_class);
  return fmt::format(
      R"(// Written by systole rtl add.
#include <verilated.h>
#include <verilated_fst_c.h>
#include "{model}.h"
#include "{header}"
#include "testbench/rtl/engine/own_block.h"

/// The Verilated top under the names of the block's ports.
struct OwnPorts {{
  OwnPorts(VerilatedContext* context, const char* name) : top(context, name) {{}}
  {model} top;
{members}
  void eval() {{ top.eval(); }}
  void final() {{ top.final(); }}
  const char* modelName() const {{ return "{top}"; }}
{trace}}};
{adapter}
namespace {{
void* make([[maybe_unused]] const systole::testbench::OwnArguments& arguments,
           const systole::testbench::RtlOptions& options) {{
  using namespace systole::testbench;
  return static_cast<{interface}*>(new {unit}({arguments}));
}}
}}
extern "C" const systole::testbench::OwnBlock systole_own_block = {{
    R"text({program})text", VERILATOR_VERSION, "{block}", {{{{{sizes}}}}}, R"text({folder})text", {checked},
    make}};
)",
      fmt::arg("model", model), fmt::arg("header", driver.header), fmt::arg("members", members),
      fmt::arg("top", manifest.top), fmt::arg("adapter", adapter),
      fmt::arg("unit", with_sizes(driver.unit)), fmt::arg("interface", driver.interface),
      fmt::arg("arguments", with_sizes(driver.arguments)), fmt::arg("program", program),
      fmt::arg("block", manifest.block), fmt::arg("sizes", fmt::join(manifest.sizes, ", ")),
      fmt::arg("folder", manifest.folder), fmt::arg("checked", checked),
      fmt::arg("trace", checked ? kTrace : ""));
}

/// Writes what Verilator makes of a block of Systole's to a folder. Returns its ports.
std::vector<RtlPort> verilated_ports(const std::string& place, const std::string& block,
                                     const std::vector<std::uint32_t>& sizes,
                                     const std::string& folder, Steps& steps) {
  const OwnDriver& driver = *find_own_driver(block);
  const std::string rtl = systole_rtl_folder();
  std::vector<std::string> command = {verilator(),  "--cc",         "--prefix",
                                      "Vreference", "--top-module", "systole_" + block,
                                      "--Mdir",     folder};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    command.push_back(fmt::format("-G{}={}", driver.sizes[i].parameter, sizes[i]));
  }
  if (driver.reference != nullptr) command.emplace_back(driver.reference);
  for (const std::string& option : systole_rtl()) command.push_back(option);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(rtl)) {
    if (entry.path().filename() == "systole_" + block + ".sv") {
      command.push_back(entry.path().string());
    }
  }
  steps.begin("ports of systole_" + block);
  run_or_fail(place, command, "Systole's own " + block + " in that size", steps);
  return ports_in(folder + "/Vreference.h");
}

/// What the library may have been built from: also what sources include, or what Verilator finds.
std::vector<std::string> files_below(const OwnManifest& manifest) {
  static const std::set<std::string> kKinds = {".sv", ".svh", ".v", ".vh", ".vlt", ".h", ".hpp"};
  std::vector<std::string> files = manifest.files();
  std::vector<std::string> folders = manifest.include;
  folders.push_back(manifest.folder);
  for (const std::string& folder : folders) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file() && kKinds.count(entry.path().extension().string()) != 0) {
        files.push_back(entry.path().string());
      }
    }
  }
  return files;
}

/// A folder that goes when this does.
class WorkFolder {
 public:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {
    remove();
    std::error_code error;
    fs::create_directories(path_, error);
    if (error) throw hw::InputError(hw::printable(path_) + ": cannot be made: " + error.message());
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() { remove(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void remove() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  std::string path_;
};

}  // namespace

std::vector<RtlPort> block_ports(const std::string& block,
                                 const std::vector<std::uint32_t>& sizes) {
  Steps steps;
  const WorkFolder work(
      (fs::temp_directory_path() / fmt::format("systole-ports-{}", static_cast<long>(::getpid())))
          .string());
  return verilated_ports(block, block, sizes, work.path(), steps);
}

OwnManifest add_own_rtl(const std::string& folder, const std::string& program, bool checked) {
  std::error_code error;
  const std::string full = fs::weakly_canonical(folder, error).string();
  const OwnManifest manifest = read_manifest(error ? folder : full);
  const std::string place = hw::printable(manifest.path());
  Steps steps;
  const WorkFolder work(manifest.build_folder() + "/work");
  const std::string version =
      output_of(place, {verilator(), "--version"}, work.path() + "/version");
  if (version.find(
          std::string(VERILATOR_VERSION).substr(0, std::string(VERILATOR_VERSION).find(' '))) ==
      std::string::npos) {
    throw hw::InputError(fmt::format("{}: found {}, expected Verilator {}, which built the program",
                                     place, hw::printable(version), VERILATOR_VERSION));
  }
  const std::string root =
      output_of(place, {verilator(), "--getenv", "VERILATOR_ROOT"}, work.path() + "/root");

  const std::vector<RtlPort> ours =
      verilated_ports(place, manifest.block, manifest.sizes, work.path() + "/ours", steps);
  const std::string theirs_folder = work.path() + "/theirs";
  const std::string unknown = checked ? "unique" : "fast";
  std::vector<std::string> command = {
      verilator(),    "--cc",       "-O3",        "--x-assign", unknown,
      "--x-initial",  unknown,      "-Wno-fatal", "--prefix",   model_class(manifest),
      "--top-module", manifest.top, "--Mdir",     theirs_folder};
  if (checked) command.insert(command.end(), {"--assert", "--trace-fst"});
  // Verilator 5.006 forgets to declare the index of some loops over 64 words.
  command.emplace_back("-fno-reloop");
  for (const auto& [name, value] : manifest.parameters) {
    command.push_back(fmt::format("-G{}={}", name, value));
  }
  for (const std::string& include : manifest.include) command.push_back("-I" + include);
  command.push_back("-I" + manifest.folder);
  for (const std::string& option : systole_rtl()) command.push_back(option);
  command.insert(command.end(), manifest.sources.begin(), manifest.sources.end());
  steps.begin("verilating " + manifest.top);
  run_or_fail(place, command, "SystemVerilog with the module " + manifest.top, steps);
  const std::vector<RtlPort> theirs = ports_in(theirs_folder + "/" + model_class(manifest) + ".h");
  check_ports(manifest, ours, theirs);

  // One file for all, like the makefile that Verilator writes. What declares and writes traces
  // comes last and is not optimised, which would take most of the time.
  std::string all, traces =
                       "#ifdef __clang__\n#pragma clang optimize off\n#else\n#pragma GCC "
                       "optimize(\"O0\")\n#endif\n";
  std::vector<std::string> sources;
  for (const fs::directory_entry& entry : fs::directory_iterator(theirs_folder)) {
    if (entry.path().extension() == ".cpp") sources.push_back(entry.path().filename().string());
  }
  std::sort(sources.begin(), sources.end());
  for (const std::string& source : sources) {
    const bool traced = source.find("__Trace__") != std::string::npos;
    (traced ? traces : all) += "#include \"" + source + "\"\n";
  }
  std::ofstream(theirs_folder + "/own_all.cc") << all << traces;
  std::ofstream(theirs_folder + "/own_glue.cc") << glue(manifest, program, checked, ours, theirs);
  const std::string built = manifest.build_folder() + "/built.so";
  steps.begin("compiling " + manifest.top);
  run_or_fail(place,
              {compiler(), "-std=c++17", "-O2", "-fPIC", "-shared", "-w", "-DVM_TRACE=1",
               "-DVM_TRACE_FST=1", "-DVM_TRACE_VCD=0", "-I" + theirs_folder,
               "-I" + installed_folder("testbench/rtl/engine/own_block.h"),
               "-I" + root + "/include", "-I" + root + "/include/vltstd",
               theirs_folder + "/own_all.cc", theirs_folder + "/own_glue.cc", "-o", built},
              "ports and an adapter that fit", steps);
  fs::rename(built, manifest.library(), error);
  if (error) {
    throw hw::InputError(hw::printable(manifest.library()) +
                         ": cannot be written: " + error.message());
  }
  return manifest;
}

const OwnBlock& load_own_rtl(const std::string& folder, const std::string& block,
                             const std::string& program) {
  std::error_code error;
  const std::string full = fs::weakly_canonical(folder, error).string();
  const OwnManifest manifest = read_manifest(error ? folder : full);
  const std::string place = hw::printable(manifest.folder) + ": ";
  if (find_own_driver(manifest.block)->machine != block) {
    throw hw::InputError(fmt::format("--rtl {}={}: {} is of {}, expected {}", block,
                                     hw::printable(folder), kManifest, manifest.block, block));
  }
  const std::string again = fmt::format(", expected: systole rtl add {}", hw::printable(folder));
  const std::string library = manifest.library();
  if (!fs::is_regular_file(library, error)) {
    throw hw::InputError(place + "has not been built" + again);
  }
  for (const std::string& file : files_below(manifest)) {
    if (fs::last_write_time(file, error) > fs::last_write_time(library, error)) {
      throw hw::InputError(hw::printable(file) + ": changed after its library was built" + again);
    }
  }
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    throw hw::InputError(place + "cannot be loaded: " + hw::printable(::dlerror()) + again);
  }
  const auto* const own = static_cast<const OwnBlock*>(::dlsym(handle, kOwnBlockSymbol));
  if (own == nullptr || own->program != program ||
      std::string(own->verilator) != VERILATOR_VERSION) {
    throw hw::InputError(place + "was built for another version of the program" + again);
  }
  return *own;
}

}  // namespace systole::testbench
