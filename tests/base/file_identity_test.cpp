#include "base/file_identity.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/temp_directory.h"

namespace systole::hw {
namespace {

namespace fs = std::filesystem;

class FileIdentityTest : public testing::Test {
 protected:
  FileIdentityTest() {
    fs::create_directory(path("folder"));
    fs::create_directory_symlink("folder", path("there"));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_.path(name); }
  [[nodiscard]] bool same(const std::string& a, const std::string& b) const {
    return FileIdentity::of(path(a)) == FileIdentity::of(path(b));
  }
  TempDirectory directory_;
};

TEST_F(FileIdentityTest, OneFileHasManyNames) {
  directory_.write("folder/file", "x");
  directory_.write("folder/other", "x");
  fs::create_symlink("folder/file", path("link"));
  fs::create_hard_link(path("folder/file"), path("hard"));
  for (const char* name :
       {"./folder/file", "folder/../folder/file", "there/file", "link", "hard"}) {
    EXPECT_TRUE(same("folder/file", name)) << name;
    EXPECT_FALSE(same("folder/other", name)) << name;
  }
}

TEST_F(FileIdentityTest, SoHasOneThatDoesNotExistYet) {
  fs::create_symlink("folder/file", path("link"));
  for (const char* name : {"./folder/file", "folder/../folder/file", "there/file", "link"}) {
    EXPECT_TRUE(same("folder/file", name)) << name;
    EXPECT_FALSE(same("folder/other", name)) << name;
    EXPECT_FALSE(same("file", name)) << name;
  }
  EXPECT_TRUE(same("no/folder", "./no/folder"));
  EXPECT_FALSE(same("no/folder", "no/other"));
}

TEST_F(FileIdentityTest, ALoopOfLinksIsItself) {
  fs::create_symlink("loop", path("loop"));
  EXPECT_TRUE(same("loop", "./loop"));
  EXPECT_FALSE(same("loop", "folder"));
}

}  // namespace
}  // namespace systole::hw
