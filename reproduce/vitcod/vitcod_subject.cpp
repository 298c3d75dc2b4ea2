#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/printable.h"
#include "model/format/npy.h"
#include "model/mask/sparsify.h"
#include "reproduce/vitcod/vitcod.h"
#include "testbench/attention/head_split.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

constexpr int kSweep[] = {60, 70, 80, 90, 95};
constexpr int kDefaultPercent = 90;
/// Of the embedded model.
constexpr std::size_t kEmbeddedDim = 16;
/// Of most vision transformers.
constexpr std::int64_t kUsualDim = 64, kMaxDim = 4096;
/// The mask of DeiT-Tiny at 95 % that ViTCoD's authors published.
constexpr model::AttentionShape kDeitTiny{12, 3, 197, 197};
constexpr std::size_t kDeitTinyKept = 74399;
/// Below every theta of a mask: each row keeps as few entries as the rule lets it.
constexpr double kLeastTheta = 0x1p-20;

bool reachable(const model::RankedMaps& maps, int percent, bool cls) {
  const double least = static_cast<double>(maps.kept_count(kLeastTheta, cls));
  return least <= (1.0 - percent / 100.0) * static_cast<double>(maps.shape().cells());
}

/// With the published margin; without where that puts the sparsity out of reach.
std::vector<VitcodSubject::Point> sweep_of(const model::Npy& file, bool cls) {
  const model::RankedMaps published(file), bare(file, 0);
  std::vector<VitcodSubject::Point> sweep;
  for (const int percent : kSweep) {
    for (const model::RankedMaps* const maps : {&published, &bare}) {
      if (!reachable(*maps, percent, cls)) continue;
      const double theta = model::find_theta(*maps, percent / 100.0, cls);
      sweep.push_back({percent, maps->mask(theta, cls)});
      break;
    }
  }
  return sweep;
}

std::string name_of(const std::string& file) {
  return hw::printable(std::filesystem::path(file).filename().string());
}

std::vector<VitcodSubject::FolderMaps> folder_of(const std::vector<std::string>& files, bool cls) {
  std::vector<std::string> stems;
  for (const std::string& file : files)
    stems.push_back(std::filesystem::path(file).stem().string());
  // Sorted: what the first and the last have in common, all of them have.
  const auto [first, last] = std::mismatch(stems.front().begin(), stems.front().end(),
                                           stems.back().begin(), stems.back().end());
  const auto common = last == stems.back().end() || first == stems.front().end()
                          ? std::ptrdiff_t{0}
                          : first - stems.front().begin();
  std::vector<VitcodSubject::FolderMaps> folder;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const model::Npy maps = model::Npy::open(files[i]);
    folder.push_back({hw::printable(stems[i].substr(static_cast<std::size_t>(common))),
                      model::attention_shape(maps), sweep_of(maps, cls)});
  }
  return folder;
}

/// What --maps names: a file, the first of a folder, or the embedded maps.
std::string maps_file(const VitcodOptions& options, const std::vector<std::string>& files) {
  if (options.maps.empty()) return data_file("data/vit65_attention.npy");
  std::error_code error;
  if (!std::filesystem::is_directory(options.maps, error)) return options.maps;
  if (files.empty()) {
    throw hw::InputError(hw::printable(options.maps) +
                         ": a folder without .npy files, expected average attention maps");
  }
  return files.front();
}

std::size_t file_dim(const VitcodOptions& options) {
  const std::int64_t dim = options.dim.value_or(kUsualDim);
  if (dim < 1 || dim > kMaxDim) {
    throw hw::InputError(fmt::format("--dim: found {}, expected 1 to {}", dim, kMaxDim));
  }
  return static_cast<std::size_t>(dim);
}

}  // namespace

std::vector<std::string> maps_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".npy") files.push_back(entry->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

const VitcodSubject::Point* VitcodSubject::at(int percent) const {
  const auto found = std::find_if(sweep.begin(), sweep.end(),
                                  [&](const Point& point) { return point.percent == percent; });
  return found == sweep.end() ? nullptr : &*found;
}

VitcodSubject load_vitcod_subject(const VitcodOptions& options, const hw::Machine& machine) {
  const bool own_maps = !options.maps.empty(), own_mask = !options.mask.empty();
  if (options.dim && !own_maps && !own_mask) {
    throw hw::InputError(
        "--dim: the embedded maps have their own, expected --mask or --maps with it");
  }
  VitcodSubject subject;
  subject.machine = machine;
  subject.own_mask = own_mask;
  const std::size_t dim = file_dim(options);
  const std::vector<std::string> files = maps_in(options.maps);
  const std::string file = maps_file(options, files);
  const model::Npy maps = model::Npy::open(file);
  subject.maps_name = own_maps ? name_of(file) : "vit65's attention maps";
  if (!files.empty()) subject.folder = folder_of(files, options.cls);
  subject.maps_shape = model::attention_shape(maps);
  subject.maps_dim = own_maps ? dim : kEmbeddedDim;
  subject.embedded_maps = !own_maps;
  subject.maps = maps.numbers(0, maps.element_count());
  subject.sweep = sweep_of(maps, own_maps ? options.cls : true);
  if (own_mask) {
    subject.mask = model::load_mask(model::Npy::open(options.mask));
    require_full_rows(subject.mask, options.mask);
    if (subject.mask.kept_count() == 0) {
      throw hw::InputError(hw::printable(options.mask) + ": keeps no cell, expected one at least");
    }
    subject.mask_dim = dim;
    subject.deit_tiny = subject.mask.shape() == kDeitTiny &&
                        subject.mask.kept_count() == kDeitTinyKept && dim == kUsualDim;
    subject.mask_name =
        subject.deit_tiny ? "the authors' mask of DeiT-Tiny, 95 %" : name_of(options.mask);
  } else {
    const VitcodSubject::Point* const point = subject.at(kDefaultPercent);
    if (point == nullptr) {
      throw hw::InputError(fmt::format("{}: cannot be pruned by {} %, expected a mask with --mask",
                                       hw::printable(file), kDefaultPercent));
    }
    subject.mask = point->mask;
    subject.mask_dim = subject.maps_dim;
    subject.mask_name = fmt::format("{} at {} %", subject.maps_name, kDefaultPercent);
  }
  return subject;
}

model::AttentionMask dense_mask(const model::AttentionShape& shape) {
  model::AttentionMask mask(shape);
  for (std::size_t cell = 0; cell < shape.cells(); ++cell) mask.keep(cell);
  return mask;
}

}  // namespace systole::testbench
