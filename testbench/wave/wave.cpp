#include "testbench/wave/wave.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <systemc>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "testbench/wave/gtkw.h"
#include "tlm/common/time.h"

namespace systole::testbench {
namespace {

constexpr const char* kViewEnding = ".gtkw";

std::string stem_of(const WaveOptions& options) {
  const std::string ending = std::filesystem::path(options.path).extension().string();
  if (ending != kFstEnding && ending != kVcdEnding) {
    throw hw::InputError(hw::printable(options.path) + ": expected a file name that ends in " +
                         std::string(kFstEnding) + " or " + std::string(kVcdEnding));
  }
  if (options.from_cycle >= options.to_cycle) {
    throw hw::InputError("waveform from cycle " + std::to_string(options.from_cycle) + " to " +
                         std::to_string(options.to_cycle) + ": expected a later end");
  }
  return options.path.substr(0, options.path.size() - ending.size());
}

std::unique_ptr<WaveFile> make_file(const std::string& path) {
  return std::filesystem::path(path).extension() == kFstEnding ? make_fst_file(path)
                                                               : make_vcd_file(path);
}

WaveRecorder::Limits limits_of(const WaveOptions& options, std::uint32_t core_mhz) {
  WaveRecorder::Limits limits;
  const tlm_model::Clock clock(core_mhz);
  limits.from_ps = clock.edge_ps(options.from_cycle);
  if (options.to_cycle != WaveOptions{}.to_cycle) limits.to_ps = clock.edge_ps(options.to_cycle);
  limits.max_bytes = options.max_bytes;
  return limits;
}

std::string table_path(const std::string& stem, const std::string& core, const WaveTable& table) {
  return stem + (core.empty() || !table.of_a_program ? "" : "." + core) + table.suffix;
}

bool is_of_a_program(WaveText text) {
  return std::any_of(wave_tables().begin(), wave_tables().end(), [text](const WaveTable& table) {
    return table.text == text && table.of_a_program;
  });
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
      recorder_(std::make_unique<WaveRecorder>(
          make_file(options.path), limits_,
          [this] {
            for (auto* module : sampled_) module->sample();
          },
          [this] {
            std::uint64_t settled = tlm_model::to_ps(sc_core::sc_time_stamp());
            for (auto* module : watched_) settled = std::min(settled, module->settled_ps());
            return settled;
          })),
      view_(stem_ + kViewEnding) {
  add_modules(sc_core::sc_get_top_level_objects());
  add_tables();
}

void Wave::add_tables() {
  std::set<WaveText> wanted;
  for (const RecordedSignal& signal : recorder_->signals()) {
    const std::string path = path_below_top(signal.name);
    for (const WaveCore& core : cores_) {
      const WaveSignal* const known = find_wave_signal(path_of_only_core(core.name, path));
      if (known != nullptr) wanted.insert(known->text);
    }
  }
  for (const WaveTable& table : wave_tables()) {
    if (wanted.count(table.text) == 0) continue;
    for (std::size_t i = 0; i < (table.of_a_program ? cores_.size() : 1); ++i) {
      const std::string path = table_path(stem_, cores_[i].name, table);
      tables_.push_back({table.text, path, std::make_unique<hw::AtomicFile>(path), i});
    }
  }
}

// Modules only: sc_signal::trace() is deprecated and would name every signal twice.
void Wave::add_modules(const std::vector<sc_core::sc_object*>& objects) {
  for (sc_core::sc_object* object : objects) {
    if (auto* module = dynamic_cast<sc_core::sc_module*>(object)) {
      module->trace(recorder_.get());
      if (auto* sampled = dynamic_cast<tlm_model::Sampled*>(module)) sampled_.push_back(sampled);
      if (auto* watched = dynamic_cast<tlm_model::Watched*>(module)) {
        watched->watch(*recorder_);
        watched_.push_back(watched);
      }
    }
    add_modules(object->get_child_objects());
  }
}

void Wave::open_on_first_operator(const std::vector<tlm_model::CommandTrace>& traces,
                                  std::uint32_t clock_mhz) {
  if (traces.empty()) return;
  std::uint64_t from = traces.front().dispatched, to = 0;
  for (const tlm_model::CommandTrace& trace : traces) {
    if (trace.op != traces.front().op) continue;
    from = std::min(from, trace.dispatched);
    to = std::max(to, trace.completed);
  }
  const tlm_model::Clock clock(clock_mhz);
  open_from_ps_ = clock.edge_ps(from);
  open_to_ps_ = clock.edge_ps(to);
}

void Wave::end_inference() {
  const std::uint64_t now = tlm_model::to_ps(sc_core::sc_time_stamp());
  if (now <= limits_.from_ps) return;
  ++inferences_;
  if (first_end_ps_ == 0) first_end_ps_ = now;
  if (inferences_ == options_.inferences) recorder_->stop();
}

std::vector<std::string> Wave::files(const std::string& wave,
                                     const std::vector<std::string>& cores) {
  const std::string stem = std::filesystem::path(wave).replace_extension().string();
  std::vector<std::string> files{wave, stem + kViewEnding};
  const auto add = [&](const std::string& core) {
    for (const WaveTable& table : wave_tables()) files.push_back(table_path(stem, core, table));
  };
  if (cores.empty()) add("");
  for (const std::string& core : cores) add(core);
  return files;
}

void Wave::write() {
  recorder_->commit();
  GtkwView view;
  view.wave = absolute(options_.path);
  view.self = absolute(stem_ + kViewEnding);
  view.from_ps = recorder_->begin_ps();
  view.to_ps = first_end_ps_ > view.from_ps ? std::min(first_end_ps_, recorder_->end_ps())
                                            : recorder_->end_ps();
  if (open_from_ps_ < open_to_ps_ && open_from_ps_ >= view.from_ps &&
      open_to_ps_ <= recorder_->end_ps()) {
    const std::uint64_t margin = (open_to_ps_ - open_from_ps_) / 20;
    view.from_ps = open_from_ps_ - std::min(open_from_ps_ - view.from_ps, margin);
    view.to_ps = open_to_ps_ + margin;
  }
  for (const WaveCore& core : cores_) view.cores.push_back({core.name, {}});
  const hw::Program none;
  for (const Table& table : tables_) {
    const hw::Program* const program = cores_[table.core].program;
    table.file->stream() << wave_table(table.text, program == nullptr ? none : *program,
                                       recorder_->initiators());
    table.file->commit();
    const bool shared = table.core == 0 && !is_of_a_program(table.text);
    for (std::size_t i = 0; i < view.cores.size(); ++i) {
      if (shared || i == table.core) view.cores[i].tables[table.text] = absolute(table.path);
    }
  }
  view_.stream() << gtkw_text(view, recorder_->signals());
  view_.commit();
}

}  // namespace systole::testbench
