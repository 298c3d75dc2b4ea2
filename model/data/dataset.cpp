#include "model/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "model/format/pnm.h"
#include "model/format/safetensors.h"

namespace systole::model {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_dataset(const std::string& path, const std::string& what) {
  throw hw::InputError(hw::printable(path) + ": " + what);
}

/// require_format() with the file in the message.
void require_format_of(const std::string& path, std::size_t channels, std::size_t height,
                       std::size_t width, const PictureFormat& format) {
  try {
    require_format(channels, height, width, format);
  } catch (const hw::InputError& error) {
    fail_dataset(path, error.what());
  }
}

template <typename T>
void check_range(const Safetensors& file, const std::string& name, const std::vector<T>& values,
                 std::uint32_t count) {
  const auto offender = std::find_if(values.begin(), values.end(), [&](std::int64_t value) {
    return value < 0 || value >= count;
  });
  if (offender != values.end()) {
    fail_dataset(file.path(), fmt::format("tensor '{}': element {} is {}, expected 0..{}", name,
                                          offender - values.begin(), *offender, count - 1));
  }
}

Dataset from_safetensors(const std::string& path, const PictureFormat& format,
                         const std::string& split) {
  const Safetensors file = Safetensors::open(path);
  // Labels of another split would be silently wrong, so both names have the same prefix or none.
  const std::string prefix = file.has(split + "_images") ? split + "_" : "";
  const std::string images = prefix + "images";
  const std::string labels = prefix + "labels";
  if (!file.has(images)) {
    fail_dataset(path, fmt::format("no tensor '{}_images' or 'images'", hw::printable(split)));
  }
  std::vector<std::size_t> shape = file.tensor(images).shape;
  if ((shape.size() != 3 && shape.size() != 4) || std::count(shape.begin(), shape.end(), 0U) != 0) {
    fail_dataset(path,
                 fmt::format("tensor '{}': shape is {}, expected [count, channels, height, width], "
                             "none of them 0",
                             images, shape_text(shape)));
  }
  file.expect(images, {FileDtype::kU8}, shape);
  if (shape.size() == 3) shape.insert(shape.begin() + 1, 1);
  require_format_of(path, shape[1], shape[2], shape[3], format);
  Dataset data{shape[0], shape[1], shape[2], shape[3], file.copy<std::uint8_t>(images), {}};
  check_range(file, images, data.samples, format.levels);
  if (file.has(labels)) {
    file.expect(labels, kIndexDtypes, {data.count});
    const std::vector<std::int64_t> values = file.as_int64(labels);
    check_range(file, labels, values, format.classes);
    data.labels.assign(values.begin(), values.end());
  }
  return data;
}

void append_pnm(Dataset& data, std::string_view bytes, const std::string& path,
                const PictureFormat& format) {
  const Pnm picture = parse_pnm(bytes, path);
  require_format_of(path, picture.channels, picture.height, picture.width, format);
  const unsigned largest = format.levels - 1;
  for (const unsigned sample : picture.samples) {
    const unsigned scaled = (2 * largest * sample + picture.max_value) / (2 * picture.max_value);
    data.samples.push_back(static_cast<std::uint8_t>(scaled));
  }
  ++data.count;
}

Dataset empty_set(const PictureFormat& format) {
  return {0, format.channels, format.side, format.side, {}, {}};
}

Dataset from_directory(const std::string& path, const PictureFormat& format) {
  std::error_code error;
  const std::vector<std::string> files = pictures_in(path, error);
  if (error) fail_dataset(path, "cannot read the directory: " + error.message());
  if (files.empty()) fail_dataset(path, "the directory has no *.pgm or *.ppm file");
  Dataset data = empty_set(format);
  for (const std::string& file : files)
    append_pnm(data, hw::MappedFile(file).bytes(), file, format);
  return data;
}

std::string size_text(std::size_t channels, std::size_t height, std::size_t width) {
  return fmt::format("{} x {} x {}", channels, height, width);
}

}  // namespace

Image Dataset::image(std::size_t index) const {
  if (index >= count) throw std::out_of_range("Dataset::image: no such picture");
  const std::size_t size = channels * height * width;
  const auto begin = samples.begin() + static_cast<std::ptrdiff_t>(index * size);
  return {channels, height, width, {begin, begin + static_cast<std::ptrdiff_t>(size)}};
}

void require_format(std::size_t channels, std::size_t height, std::size_t width,
                    const PictureFormat& format) {
  if (channels == format.channels && height == format.side && width == format.side) return;
  throw hw::InputError("pictures of " + size_text(channels, height, width) +
                       " samples (channels, rows, columns), the model expects " +
                       size_text(format.channels, format.side, format.side));
}

std::vector<std::string> pictures_in(const std::string& directory, std::error_code& error) {
  std::vector<std::string> files;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path extension = entry->path().extension();
    if (extension == ".pgm" || extension == ".ppm") files.push_back(entry->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Dataset load_images(const std::string& path, const PictureFormat& format,
                    const std::string& split) {
  std::error_code error;  // a path that cannot be looked at is reported by hw::MappedFile
  if (fs::is_directory(path, error)) return from_directory(path, format);
  const hw::MappedFile file(path);
  if (!looks_like_pnm(file.bytes())) return from_safetensors(path, format, split);
  Dataset data = empty_set(format);
  append_pnm(data, file.bytes(), path, format);
  return data;
}

}  // namespace systole::model
