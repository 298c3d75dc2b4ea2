#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "reproduce/vitcod/vitcod.h"
#include "support/npy_bytes.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

/// Each query attends mostly to the key of its own number, and least to those far from it.
std::string banded_maps(std::size_t queries, std::size_t keys) {
  std::vector<float> values;
  for (std::size_t q = 0; q < queries; ++q) {
    float sum = 0;
    for (std::size_t k = 0; k < keys; ++k) {
      values.push_back(1.0F / static_cast<float>(1 + (q > k ? q - k : k - q)));
      sum += values.back();
    }
    for (auto value = values.end() - static_cast<std::ptrdiff_t>(keys); value != values.end();
         ++value) {
      *value /= sum;
    }
  }
  const std::string shape = std::to_string(queries) + ", " + std::to_string(keys);
  return npy_floats("(1, 1, " + shape + ")", values);
}
std::string banded_maps(std::size_t tokens) { return banded_maps(tokens, tokens); }

VitcodSubject subject_of(const std::string& maps) {
  VitcodOptions options;
  options.maps = maps;
  options.dim = 16;
  return load_vitcod_subject(options, hw::find_machine("vitcod"));
}

TEST(MapsFolder, HasEveryFileByNameAsItIsAlone) {
  const TempDirectory directory;
  directory.write("net_stage2.npy", banded_maps(24));
  directory.write("net_stage1.npy", banded_maps(40));
  directory.write("readme.txt", "not maps");
  const VitcodSubject subject = subject_of(directory.path());
  ASSERT_EQ(subject.folder.size(), 2U);
  EXPECT_EQ(subject.folder[0].name, "1") << "without what all names begin with";
  EXPECT_EQ(subject.folder[1].name, "2");
  EXPECT_EQ(subject.folder[0].shape.queries, 40U);
  EXPECT_EQ(subject.folder[1].shape.queries, 24U);
  EXPECT_EQ(subject.maps_name, "net_stage1.npy");
  for (const VitcodSubject::FolderMaps& file : subject.folder) {
    const VitcodSubject alone = subject_of(directory.path("net_stage" + file.name + ".npy"));
    EXPECT_TRUE(alone.folder.empty());
    ASSERT_EQ(file.sweep.size(), alone.sweep.size());
    ASSERT_FALSE(file.sweep.empty());
    for (std::size_t i = 0; i < file.sweep.size(); ++i) {
      EXPECT_EQ(file.sweep[i].percent, alone.sweep[i].percent);
      EXPECT_EQ(file.sweep[i].mask.kept_count(), alone.sweep[i].mask.kept_count());
    }
  }
}

TEST(MapsFolder, OfOneFileKeepsItsName) {
  const TempDirectory directory;
  directory.write("only.npy", banded_maps(40));
  const VitcodSubject subject = subject_of(directory.path());
  ASSERT_EQ(subject.folder.size(), 1U);
  EXPECT_EQ(subject.folder[0].name, "only");
}

/// Rows of the table of rivals, ours taking a hundred cycles of everything.
std::vector<std::string> rival_rows(const VitcodSubject& subject) {
  const VitcodRuns::Json hundred{{"cycles", 100.0}};
  VitcodRuns runs;
  runs.dense = runs.reordered = runs.sweep_dense = hundred;
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    runs.sweep_reordered.push_back(hundred);
    runs.sweep_rivals.push_back(sweep_rivals(subject, i));
  }
  std::vector<std::string> names;
  for (const ResultRow& row : baseline_section(subject, runs).rows) {
    EXPECT_GT(row.ours, 0.0) << row.name;
    names.push_back(row.name);
  }
  return names;
}

// Tokens that are pruned are queries and keys at once: SpAtten has no maps that are not square.
TEST(MapsFolder, LeavesSpAttenOutOfMapsThatAreNotSquare) {
  const TempDirectory directory;
  directory.write("square.npy", banded_maps(40));
  directory.write("wide.npy", banded_maps(16, 49));
  const auto count = [](const std::vector<std::string>& names, const std::string& of) {
    return std::count_if(names.begin(), names.end(), [&](const std::string& name) {
      return name.rfind("maps", 0) == 0 && name.find(of) != std::string::npos;
    });
  };
  const auto square = rival_rows(subject_of(directory.path("square.npy")));
  const auto wide = rival_rows(subject_of(directory.path("wide.npy")));
  EXPECT_GT(count(square, "Sanger"), 1);
  EXPECT_EQ(count(square, "SpAtten"), count(square, "Sanger"));
  EXPECT_GT(count(wide, "Sanger"), 1);
  EXPECT_EQ(count(wide, "SpAtten"), 0);
}

}  // namespace
}  // namespace systole::testbench
