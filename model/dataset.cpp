#include "model/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "hw/error.h"
#include "hw/printable.h"
#include "model/mapped_file.h"
#include "model/pgm.h"
#include "model/safetensors.h"

namespace systole::model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPgmSide = 8;
constexpr std::uint8_t kMaxLabel = 9;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw hw::InputError(hw::printable(path) + ": " + what);
}

void check_range(const Safetensors& file, const std::string& name,
                 const std::vector<std::uint8_t>& values, int max) {
  const auto offender =
      std::find_if(values.begin(), values.end(), [&](std::uint8_t value) { return value > max; });
  if (offender != values.end()) {
    fail(file.path(), fmt::format("tensor '{}': element {} is {}, expected 0..{}", name,
                                  offender - values.begin(), *offender, max));
  }
}

Dataset from_safetensors(const std::string& path, const std::string& split) {
  const Safetensors file = Safetensors::open(path);
  // Labels of another split would be silently wrong, so both names have the same prefix or none.
  const std::string prefix = file.has(split + "_images") ? split + "_" : "";
  const std::string images = prefix + "images";
  const std::string labels = prefix + "labels";
  if (!file.has(images)) {
    fail(path, fmt::format("no tensor '{}_images' or 'images'", hw::printable(split)));
  }
  const std::vector<std::size_t> shape = file.tensor(images).shape;
  if (shape.size() != 3 || std::count(shape.begin(), shape.end(), 0U) != 0) {
    fail(path, fmt::format("tensor '{}': shape is {}, expected [count, height, width], none of "
                           "them 0",
                           images, shape_text(shape)));
  }
  file.expect(images, {FileDtype::kU8}, shape);
  Dataset data{shape[0], shape[1], shape[2], file.copy<std::uint8_t>(images), {}};
  check_range(file, images, data.pixels, kMaxPixel);
  if (file.has(labels)) {
    file.expect(labels, {FileDtype::kU8}, {data.count});
    data.labels = file.copy<std::uint8_t>(labels);
    check_range(file, labels, data.labels, kMaxLabel);
  }
  return data;
}

/// Adds an 8 x 8 picture to `data`.
void append_pgm(Dataset& data, std::string_view bytes, const std::string& path) {
  const Pgm picture = parse_pgm(bytes, path);
  if (picture.height != kPgmSide || picture.width != kPgmSide) {
    fail(path, fmt::format("the picture has {} x {} pixels, expected {} x {}", picture.height,
                           picture.width, kPgmSide, kPgmSide));
  }
  for (const unsigned sample : picture.samples) {
    const unsigned scaled = (2 * kMaxPixel * sample + picture.max_value) / (2 * picture.max_value);
    data.pixels.push_back(static_cast<std::uint8_t>(scaled));
  }
  ++data.count;
}

Dataset from_directory(const std::string& path) {
  std::error_code error;
  std::vector<std::string> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".pgm") files.push_back(entry->path().string());
  }
  if (error) fail(path, "cannot read the directory: " + error.message());
  if (files.empty()) fail(path, "the directory has no *.pgm file");
  std::sort(files.begin(), files.end());
  Dataset data{0, kPgmSide, kPgmSide, {}, {}};
  for (const std::string& file : files) append_pgm(data, MappedFile(file).bytes(), file);
  return data;
}

}  // namespace

Image Dataset::image(std::size_t index) const {
  if (index >= count) throw std::out_of_range("Dataset::image: no such picture");
  const auto begin = pixels.begin() + static_cast<std::ptrdiff_t>(index * height * width);
  return {height, width, {begin, begin + static_cast<std::ptrdiff_t>(height * width)}};
}

Dataset load_images(const std::string& path, const std::string& split) {
  std::error_code error;  // a path that cannot be looked at is reported by MappedFile
  if (fs::is_directory(path, error)) return from_directory(path);
  const MappedFile file(path);
  if (!looks_like_pgm(file.bytes())) return from_safetensors(path, split);
  Dataset data{0, kPgmSide, kPgmSide, {}, {}};
  append_pgm(data, file.bytes(), path);
  return data;
}

}  // namespace systole::model
