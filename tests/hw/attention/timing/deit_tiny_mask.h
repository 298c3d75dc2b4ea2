#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "hw/attention/timing/global_columns.h"
#include "tests/hw/attention/sparse_heads.h"

/// The mask of DeiT-Tiny at 95 % sparsity, as published by the authors of ViTCoD: 12 layers, 3
/// heads, 197 tokens, 64 features a head. The file is not part of this project.
namespace systole::hw {

inline constexpr std::size_t kTokens = 197;
inline constexpr std::size_t kHeads = 36;  ///< of all layers
inline constexpr std::size_t kDim = 64;
/// Kept cells above which the authors call a token global.
inline constexpr std::uint32_t kThreshold = 50;

/// Tests with the mask, which are skipped without it.
class DeitTinyMask : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("SYSTOLE_SHARED_DATA");
    if (folder == nullptr) {
      GTEST_SKIP() << "NOT TESTED: the DeiT-Tiny mask, SYSTOLE_SHARED_DATA is not set";
    }
    const std::string path = std::string(folder) + "/vitcod/deit_tiny_0.95_pruned.npy";
    std::ifstream file(path, std::ios::binary);
    if (!file) GTEST_SKIP() << "NOT TESTED: the DeiT-Tiny mask, cannot read " << path;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    constexpr std::size_t kCells = kTokens * kTokens;
    ASSERT_GT(text.size(), kHeads * kCells);
    // The elements, bytes of 1 for a pruned cell, end the file.
    std::size_t at = text.size() - kHeads * kCells;
    for (std::size_t head = 0; head < kHeads; ++head) {
      HeadMask mask{kTokens, kTokens, std::vector<std::uint8_t>(kCells)};
      for (auto& keep : mask.keep) keep = text[at++] == 0 ? 1 : 0;
      masks_.push_back(mask);
    }
  }

  [[nodiscard]] std::vector<SparseHead> split_by_threshold(std::uint32_t threshold) const {
    std::vector<SparseHead> heads;
    for (const HeadMask& mask : masks_) {
      const auto counts = column_kept(mask);
      std::vector<std::uint16_t> global;
      for (std::uint16_t key = 0; key < kTokens; ++key) {
        if (counts[key] > threshold) global.push_back(key);
      }
      heads.push_back(split(mask, global));
    }
    return heads;
  }

  [[nodiscard]] std::vector<SparseHead> split_by_cost() const {
    std::vector<SparseHead> heads;
    for (const HeadMask& mask : masks_) {
      heads.push_back(
          split(mask, best_global_columns(column_kept(mask), kTokens, kDim, engines()).keys));
    }
    return heads;
  }

  std::vector<HeadMask> masks_;
};

}  // namespace systole::hw
