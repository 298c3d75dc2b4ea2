#include "base/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/file_mapping.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/printable.h"
#include "base/round.h"

namespace systole::hw {
namespace {

[[noreturn]] void fail_to_map(const std::string& path, const std::string& why) {
  throw InputError(printable(path) + ": cannot read: " + why);
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  namespace fs = std::filesystem;
  namespace bip = boost::interprocess;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) fail_to_map(path, "no such file");
  if (error) fail_to_map(path, error.message());
  if (status.type() == fs::file_type::directory)
    fail_to_map(path, "is a directory, expected a file");
  if (status.type() != fs::file_type::regular) fail_to_map(path, "is not a regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) fail_to_map(path, error.message());
  if (size == 0) fail_to_map(path, "the file is empty");
  try {
    const bip::file_mapping file(path.c_str(), bip::read_only);
    auto region = std::make_shared<const bip::mapped_region>(file, bip::read_only);
    bytes_ = {static_cast<const char*>(region->get_address()), region->get_size()};
    owner_ = std::move(region);
    is_file_ = true;
  } catch (const bip::interprocess_exception& exception) {
    fail_to_map(path, exception.what());
  }
}

void MappedFile::let_go(const void* first, std::size_t bytes) const {
  if (!is_file_ || bytes == 0) return;
  // What is read brings its neighbours along, so many bytes of Linux's: they go with it.
  constexpr std::size_t kAround = std::size_t{64} << 10U;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const auto file = reinterpret_cast<std::uintptr_t>(bytes_.data());
  const std::size_t around = std::max(page, kAround);
  const std::uintptr_t begin = std::max(file / page * page, address / around * around);
  const std::uintptr_t end =
      std::min(round_up(file + bytes_.size(), page), round_up(address + bytes, around));
  // Advice alone: if it is not taken, nothing is wrong.
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile MappedFile::of_bytes(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  const std::string_view view = *owner;
  return {std::move(owner), view};
}

}  // namespace systole::hw
