#include "base/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "base/file_identity.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::hw {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

unsigned mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

/// Sets the umask for the life of the object.
class ScopedUmask {
 public:
  explicit ScopedUmask(mode_t mask) : previous_(::umask(mask)) {}
  ~ScopedUmask() { ::umask(previous_); }
  ScopedUmask(const ScopedUmask&) = delete;
  ScopedUmask& operator=(const ScopedUmask&) = delete;

 private:
  mode_t previous_;
};

std::string error_of_writing(const std::string& path) {
  return input_error_of([&] { write_file_atomically(path, "x"); });
}

TEST(AtomicFile, RefusesAPathWhoseTemporaryFileHasATooLongOne) {
  const TempDirectory directory;
  std::string path = directory.path("");
  while (path.size() < 4090) path += "./";
  EXPECT_THAT(error_of_writing(path + "x"), HasSubstr("cannot write: File name too long"));
  EXPECT_THAT(directory.names(), IsEmpty());
}

TEST(AtomicFile, CreatesAndReplacesAFile) {
  const TempDirectory directory;
  const std::string path = directory.path("out.json");
  const std::string bytes("zero \0 and \n stay", 17);
  write_file_atomically(path, bytes);
  EXPECT_EQ(read_file(path), bytes);
  write_file_atomically(path, "");
  EXPECT_EQ(read_file(path), "");
  const std::string large(300'001, 'x');  // several buffers
  write_file_atomically(path, [&](std::ostream& out) { out << large << 1234567; });
  EXPECT_EQ(read_file(path), large + "1234567");
  EXPECT_THAT(directory.names(), ElementsAre("out.json"));
}

TEST(AtomicFile, TargetIsUntouchedUntilCommit) {
  const TempDirectory directory;
  const std::string path = directory.write("out", "old");
  AtomicFile file(path);
  file.stream() << "new" << std::flush;
  EXPECT_EQ(read_file(path), "old");
  file.commit();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_THROW(file.commit(), std::logic_error);
}

TEST(AtomicFile, WithoutCommitNothingIsLeft) {
  const TempDirectory directory;
  {
    AtomicFile file(directory.path("out"));
    file.stream() << "half" << std::flush;
    EXPECT_EQ(directory.names().size(), 1U) << "the temporary file is in the same directory";
  }
  EXPECT_THAT(directory.names(), IsEmpty());
}

TEST(AtomicFile, ExceptionOfTheProducerPassesAndLeavesTheOldFile) {
  const TempDirectory directory;
  const std::string path = directory.write("out", "old");
  const auto producer = [](std::ostream& out) {
    out << "half" << std::flush;
    throw std::range_error("producer");
  };
  EXPECT_THROW(write_file_atomically(path, producer), std::range_error);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_THAT(directory.names(), ElementsAre("out"));
}

TEST(AtomicFile, FailedStreamIsNotCommitted) {
  const TempDirectory directory;
  const std::string path = directory.path("out");
  const auto producer = [](std::ostream& out) { out.setstate(std::ios::failbit); };
  EXPECT_THAT(input_error_of([&] { write_file_atomically(path, producer); }),
              HasSubstr("could not be produced"));
  EXPECT_THAT(directory.names(), IsEmpty());
}

TEST(AtomicFile, FullDiskLeavesTheOldFile) {
  const TempDirectory directory;
  const std::string path = directory.write("out", "old");
  const std::string large(1'000'000, 'x');
  std::string error;
  {
    const ScopedFileSizeLimit limit(100'000);
    error = input_error_of([&] { write_file_atomically(path, large); });
  }
  EXPECT_THAT(error, StartsWith(path + ": cannot write: File too large"));
  EXPECT_EQ(read_file(path), "old");
  EXPECT_THAT(directory.names(), ElementsAre("out"));
}

TEST(AtomicFile, NewFileHasMode644LessTheUmask) {
  const TempDirectory directory;
  {
    const ScopedUmask mask(0027);
    write_file_atomically(directory.path("group"), "x");
  }
  {
    const ScopedUmask mask(0000);
    write_file_atomically(directory.path("open"), "x");
  }
  EXPECT_EQ(mode_of(directory.path("group")), 0640U);
  EXPECT_EQ(mode_of(directory.path("open")), 0644U);
}

TEST(AtomicFile, ReplacedFileKeepsItsMode) {
  const TempDirectory directory;
  const std::string path = directory.write("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  write_file_atomically(path, "y");
  EXPECT_EQ(mode_of(path), 0600U);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  write_file_atomically(path, "z");
  EXPECT_EQ(mode_of(path), 0666U) << "also where the umask would take bits away";
}

TEST(AtomicFile, FollowsSymbolicLinks) {
  const TempDirectory directory;
  fs::create_directory(directory.path("sub"));
  const std::string target = directory.write("sub/target", "old");
  fs::create_symlink("sub/target", directory.path("link"));
  fs::create_symlink("link", directory.path("link to link"));
  fs::create_symlink("sub/new", directory.path("dangling"));
  write_file_atomically(directory.path("link to link"), "through");
  EXPECT_EQ(read_file(target), "through");
  EXPECT_TRUE(fs::is_symlink(directory.path("link")));
  write_file_atomically(directory.path("dangling"), "made");
  EXPECT_EQ(read_file(directory.path("sub/new")), "made");
  fs::create_symlink("loop", directory.path("loop"));
  EXPECT_THAT(error_of_writing(directory.path("loop")), HasSubstr("levels of symbolic links"));
}

TEST(AtomicFile, WorksInTheCurrentDirectory) {
  const TempDirectory directory;
  const fs::path previous = fs::current_path();
  fs::current_path(directory.path());
  const std::string error = error_of_writing("plain");
  fs::current_path(previous);
  EXPECT_EQ(error, "no error");
  EXPECT_EQ(read_file(directory.path("plain")), "x");
}

TEST(AtomicFile, NamesAsLongAsTheFileSystemAllowsWork) {
  const TempDirectory directory;
  const std::string path = directory.path(std::string(255, 'n'));
  write_file_atomically(path, "x");
  EXPECT_EQ(read_file(path), "x");
  EXPECT_THAT(error_of_writing(path + "n"), HasSubstr("File name too long"));
}

TEST(AtomicFile, DeviceIsWrittenDirectlyAndStaysADevice) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(error_of_writing("/dev/full"), HasSubstr("/dev/full: cannot write: No space left"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(AtomicFile, PipeIsWrittenDirectly) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  write_file_atomically("/dev/fd/" + std::to_string(ends[1]), "through the pipe");
  char received[64] = {};
  const ssize_t length = ::read(ends[0], received, sizeof received);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(std::string(received, static_cast<std::size_t>(length)), "through the pipe");
}

TEST(AtomicFile, StandardOutputKeepsItsPlaceAlsoWhenItIsAFile) {
  const TempDirectory directory;
  const std::string path = directory.path("log");
  std::fflush(stdout);
  const int saved = ::dup(STDOUT_FILENO);
  const int log = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  ::dup2(log, STDOUT_FILENO);
  std::printf("before ");  // still in the buffer of stdout when the file is written
  const std::string error = error_of_writing("/dev/stdout") + error_of_writing(path);
  std::printf(" after");
  std::fflush(stdout);
  ::dup2(saved, STDOUT_FILENO);
  ::close(saved);
  ::close(log);
  EXPECT_EQ(error, "no errorno error");
  EXPECT_EQ(read_file(path), "before xx after");
}

TEST(AtomicFile, BadTargetsAreOneClearLine) {
  const TempDirectory directory;
  const std::string file = directory.write("file", "old");
  const std::string missing = directory.path("missing/out");
  EXPECT_THAT(error_of_writing(missing), StartsWith(missing + ": cannot write: directory '"));
  EXPECT_THAT(error_of_writing(missing), HasSubstr("No such file or directory"));
  EXPECT_THAT(error_of_writing(directory.path()), HasSubstr("Is a directory"));
  EXPECT_THAT(error_of_writing(directory.path("new/")), HasSubstr("names a directory"));
  EXPECT_THAT(error_of_writing(file + "/out"), HasSubstr("Not a directory"));
  EXPECT_THAT(error_of_writing(""), HasSubstr("the file name is empty"));
  EXPECT_THAT(error_of_writing("/proc/systole"), HasSubstr("/proc/systole: cannot write"));
  EXPECT_THAT(error_of_writing("/proc/version"), HasSubstr("/proc/version: cannot write"));
  EXPECT_THAT(error_of_writing("no\nsuch/out"), Not(HasSubstr("\n")));
  EXPECT_EQ(read_file(file), "old");
  EXPECT_THAT(directory.names(), ElementsAre("file"));
}

TEST(AtomicFile, WriteProtectedFileStaysProtected) {
  if (::geteuid() == 0) GTEST_SKIP() << "nothing is write-protected for root";
  const TempDirectory directory;
  const std::string path = directory.write("protected", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  EXPECT_THAT(error_of_writing(path), HasSubstr("Permission denied"));
  EXPECT_EQ(read_file(path), "old");
}

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
