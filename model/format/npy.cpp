#include "model/format/npy.h"

#include <fmt/format.h>

#include <cstring>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/printable.h"
#include "model/format/float_formats.h"

namespace systole::model {
namespace {

/// The value of one element. The bytes have no alignment.
double element(FileDtype dtype, const char* bytes) {
  const auto as = [bytes](auto value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (dtype) {
    case FileDtype::kBool:
    case FileDtype::kU8:
      return as(std::uint8_t{});
    case FileDtype::kI8:
      return as(std::int8_t{});
    case FileDtype::kF16:
      return static_cast<double>(f16_to_float(as(std::uint16_t{})));
    case FileDtype::kF32:
      return static_cast<double>(as(float{}));
    case FileDtype::kF64:
      return as(double{});
    default:
      throw std::logic_error("an element type that .npy files of Systole do not have");
  }
}

void write(const std::string& path, FileDtype dtype, const std::vector<std::size_t>& shape,
           const char* bytes, std::size_t size) {
  if (tensor_bytes(dtype, shape) != size) {
    throw std::invalid_argument("npy: the values do not fill the shape " + shape_text(shape));
  }
  hw::write_file_atomically(path, [&](std::ostream& out) {
    out << npy_header_text(dtype, shape);
    out.write(bytes, static_cast<std::streamsize>(size));
  });
}

}  // namespace

Npy Npy::open(const std::string& path) { return {path, hw::MappedFile(path)}; }

Npy::Npy(std::string path, hw::MappedFile file)
    : path_(std::move(path)),
      file_(std::move(file)),
      header_(parse_npy_header(file_.bytes(), path_)) {}

std::size_t Npy::element_count() const {
  return (file_.bytes().size() - header_.data_begin) / dtype_bytes(header_.dtype);
}

std::vector<double> Npy::numbers(std::size_t begin, std::size_t count) const {
  if (begin > element_count() || count > element_count() - begin) {
    throw std::out_of_range("npy: no such elements");
  }
  const std::size_t step = dtype_bytes(header_.dtype);
  const char* at = file_.bytes().data() + header_.data_begin + begin * step;
  std::vector<double> values(count);
  for (double& value : values) {
    value = element(header_.dtype, at);
    at += step;
  }
  return values;
}

std::vector<std::uint8_t> Npy::flags() const {
  if (header_.dtype != FileDtype::kBool) {
    throw hw::InputError(fmt::format("{}: elements are {}, expected bool", hw::printable(path_),
                                     dtype_name(header_.dtype)));
  }
  const std::string_view bytes = file_.bytes().substr(header_.data_begin);
  std::vector<std::uint8_t> flags(bytes.begin(), bytes.end());
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] > 1) {
      throw hw::InputError(fmt::format("{}: element {}: byte {} as bool, expected 0 or 1",
                                       hw::printable(path_), i, flags[i]));
    }
  }
  return flags;
}

void write_npy(const std::string& path, const std::vector<std::size_t>& shape,
               const std::vector<std::uint8_t>& values) {
  std::vector<char> bytes(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) bytes[i] = values[i] != 0 ? '\1' : '\0';
  write(path, FileDtype::kBool, shape, bytes.data(), bytes.size());
}

void write_npy(const std::string& path, const std::vector<std::size_t>& shape,
               const std::vector<float>& values) {
  std::vector<char> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  write(path, FileDtype::kF32, shape, bytes.data(), bytes.size());
}

}  // namespace systole::model
