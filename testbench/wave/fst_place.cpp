#include "testbench/wave/fst_place.h"

#include <gtkwave/fstapi.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/printable.h"

namespace systole::testbench {
namespace {

const std::string& regular(const std::string& path) {
  const auto status = std::filesystem::status(path);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_directory(status)) {
    throw hw::InputError(hw::printable(path) + ": no regular file, expected one for an FST");
  }
  return path;
}

}  // namespace

FstPlace::FstPlace(const std::string& path)
    : path_(regular(path)),
      file_(path_),
      place_(file_.place_to_write()),
      hierarchy_(place_ + ".hier"),
      remembered_hierarchy_(hierarchy_) {}

FstPlace::~FstPlace() { ::unlink(hierarchy_.c_str()); }

void FstPlace::commit() {
  void* const reader = fstReaderOpen(place_.c_str());
  if (reader == nullptr) {
    throw hw::InputError(hw::printable(path_) + ": cannot be written as a whole");
  }
  fstReaderClose(reader);
  file_.commit();
}

}  // namespace systole::testbench
