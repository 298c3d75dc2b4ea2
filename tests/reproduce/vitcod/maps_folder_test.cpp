#include <gtest/gtest.h>

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
std::string banded_maps(std::size_t tokens) {
  std::vector<float> values;
  for (std::size_t q = 0; q < tokens; ++q) {
    float sum = 0;
    for (std::size_t k = 0; k < tokens; ++k) {
      values.push_back(1.0F / static_cast<float>(1 + (q > k ? q - k : k - q)));
      sum += values.back();
    }
    for (auto value = values.end() - static_cast<std::ptrdiff_t>(tokens); value != values.end();
         ++value) {
      *value /= sum;
    }
  }
  const std::string side = std::to_string(tokens);
  return npy_floats("(1, 1, " + side + ", " + side + ")", values);
}

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

}  // namespace
}  // namespace systole::testbench
