#include "testbench/wave/wave.h"

#include <algorithm>
#include <filesystem>
#include <systemc>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "testbench/wave/gtkw.h"
#include "tlm/common/time.h"

namespace systole::testbench {
namespace {

constexpr char kExtension[] = ".vcd";
constexpr const char* kViewEnding = ".gtkw";

std::string stem_of(const WaveOptions& options) {
  const std::filesystem::path path(options.path);
  if (path.extension() != kExtension) {
    throw hw::InputError(hw::printable(options.path) + ": expected a file name that ends in " +
                         kExtension);
  }
  if (options.from_cycle >= options.to_cycle) {
    throw hw::InputError("waveform from cycle " + std::to_string(options.from_cycle) + " to " +
                         std::to_string(options.to_cycle) + ": expected a later end");
  }
  return options.path.substr(0, options.path.size() - (sizeof kExtension - 1));
}

VcdFile::Limits limits_of(const WaveOptions& options, std::uint32_t core_mhz) {
  VcdFile::Limits limits;
  const tlm_model::Clock clock(core_mhz);
  limits.from_ps = clock.edge_ps(options.from_cycle);
  if (options.to_cycle != WaveOptions{}.to_cycle) limits.to_ps = clock.edge_ps(options.to_cycle);
  limits.max_bytes = options.max_bytes;
  return limits;
}

std::string table_path(const std::string& stem, const std::string& core, const WaveTable& table) {
  return stem + (core.empty() ? "" : "." + core) + table.suffix;
}

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).string(); }

}  // namespace

Wave::Wave(const WaveOptions& options, const hw::Program& program, std::uint32_t core_mhz)
    : Wave(options, std::vector<WaveCore>{{"", &program}}, core_mhz) {}

Wave::Wave(const WaveOptions& options, std::vector<WaveCore> cores, std::uint32_t core_mhz)
    : options_(options),
      cores_(std::move(cores)),
      stem_(stem_of(options)),
      limits_(limits_of(options, core_mhz)),
      vcd_(std::make_unique<VcdFile>(options.path, limits_,
                                     [this] {
                                       for (auto* module : sampled_) module->sample();
                                     })),
      view_(stem_ + kViewEnding) {
  for (const WaveCore& core : cores_) {
    auto& tables = tables_.emplace_back();
    for (const WaveTable& table : wave_tables()) {
      tables[table.text] = std::make_unique<hw::AtomicFile>(table_path(stem_, core.name, table));
    }
  }
  add_modules(sc_core::sc_get_top_level_objects());
}

// Modules only: sc_signal::trace() is deprecated and would name every signal twice.
void Wave::add_modules(const std::vector<sc_core::sc_object*>& objects) {
  for (sc_core::sc_object* object : objects) {
    if (auto* module = dynamic_cast<sc_core::sc_module*>(object)) {
      module->trace(vcd_.get());
      if (auto* sampled = dynamic_cast<tlm_model::Sampled*>(module)) sampled_.push_back(sampled);
    }
    add_modules(object->get_child_objects());
  }
}

void Wave::end_inference() {
  const std::uint64_t now = tlm_model::to_ps(sc_core::sc_time_stamp());
  if (now <= limits_.from_ps) return;
  ++inferences_;
  if (first_end_ps_ == 0) first_end_ps_ = now;
  if (inferences_ == options_.inferences) vcd_->stop();
}

std::vector<std::string> Wave::files(const std::string& vcd,
                                     const std::vector<std::string>& cores) {
  const std::string stem = std::filesystem::path(vcd).replace_extension().string();
  std::vector<std::string> files{vcd, stem + kViewEnding};
  const auto add = [&](const std::string& core) {
    for (const WaveTable& table : wave_tables()) files.push_back(table_path(stem, core, table));
  };
  if (cores.empty()) add("");
  for (const std::string& core : cores) add(core);
  return files;
}

void Wave::write() {
  vcd_->commit();
  GtkwView view;
  view.wave = absolute(options_.path);
  view.self = absolute(stem_ + kViewEnding);
  view.from_ps = vcd_->begin_ps();
  view.to_ps =
      first_end_ps_ > view.from_ps ? std::min(first_end_ps_, vcd_->end_ps()) : vcd_->end_ps();
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    GtkwView::Core& core = view.cores.emplace_back();
    core.name = cores_[i].name;
    for (const WaveTable& table : wave_tables()) {
      core.tables[table.text] = absolute(table_path(stem_, core.name, table));
      tables_[i][table.text]->stream() << wave_table(table.text, *cores_[i].program);
      tables_[i][table.text]->commit();
    }
  }
  view_.stream() << gtkw_text(view, vcd_->signals());
  view_.commit();
}

}  // namespace systole::testbench
