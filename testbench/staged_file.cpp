#include "testbench/staged_file.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "hw/atomic_file.h"
#include "hw/error.h"
#include "hw/printable.h"

namespace systole::testbench {

namespace fs = std::filesystem;

StagedFile::StagedFile(std::string path, const std::string& extension) : path_(std::move(path)) {
  const fs::path target(path_);
  if (target.extension() != extension) {
    throw hw::InputError(hw::printable(path_) + ": expected a file name that ends in " + extension);
  }
  const hw::AtomicFile probe(path_);  // throws if it could not be written
  const std::string name =
      "." + target.stem().string() + "." + std::to_string(::getpid()) + extension;
  staged_ = (target.parent_path() / name).string();
}

StagedFile::~StagedFile() {
  std::error_code ignored;
  fs::remove(staged_, ignored);
}

void StagedFile::commit() {
  std::error_code error;
  fs::rename(staged_, path_, error);
  if (error) throw hw::InputError(hw::printable(path_) + ": cannot be written: " + error.message());
}

}  // namespace systole::testbench
