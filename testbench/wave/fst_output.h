#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "testbench/wave/fst_block.h"
#include "testbench/wave/fst_place.h"

namespace systole::testbench {

/// An FST file whose head and hierarchy are GTKWave's writer's, the blocks of changes ours.
class FstOutput {
 public:
  /// Throws InputError if `path` cannot be written or is no regular file.
  explicit FstOutput(const std::string& path);
  ~FstOutput();
  FstOutput(const FstOutput&) = delete;
  FstOutput& operator=(const FstOutput&) = delete;

  /// GTKWave's writer, for scopes, variables and comments; until begin().
  [[nodiscard]] void* writer() noexcept { return writer_; }
  /// Changes begin, at `time`, of variables with these widths in the order of their declaration.
  void begin(std::uint64_t time, const std::vector<unsigned>& widths);
  /// The next changes are at `time`, no earlier than the last.
  void stamp(std::uint64_t time);
  [[nodiscard]] FstBlock& changes() noexcept { return *changes_; }
  /// Bytes so far, without changes that are not compressed yet, at most 4 MiB.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Ends at `end` and puts the file in place. Throws InputError if that fails.
  void commit(std::uint64_t end);

 private:
  void keep_hierarchy();
  void write_block();

  FstPlace place_;
  void* writer_ = nullptr;
  std::ofstream out_;
  std::string after_changes_;
  std::unique_ptr<FstBlock> changes_;
  std::uint64_t begin_ = 0, bytes_ = 0, blocks_ = 0;
  std::uint64_t stamp_ = 0;  ///< last time in the file
};

}  // namespace systole::testbench
