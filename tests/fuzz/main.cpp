#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <systemc>
#include <vector>

#include "fuzz/target.h"

// One program for both uses. Linked with libFuzzer, its main() calls the functions below on the
// target that the environment variable SYSTOLE_FUZZ_TARGET names. Without it, main() is that of
// SystemC, which calls sc_main(): the committed corpus as a regression test.

namespace fs = std::filesystem;
using systole::fuzz::Target;

namespace {

const Target* chosen = nullptr;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The same with a part repeated in its place up to kGrown bytes.
std::string grown(const std::string& bytes, std::mt19937& random) {
  constexpr std::size_t kGrown = std::size_t{1} << 18, kLongest = 80;
  const std::size_t begin = random() % std::max<std::size_t>(bytes.size(), 1);
  const std::string part = bytes.substr(begin, 1 + random() % kLongest);
  if (part.empty()) return bytes;
  std::string result = bytes.substr(0, begin);
  while (result.size() < kGrown) result += part;
  return result + bytes.substr(begin);
}

/// Runs every file of `corpus`/TARGET on its target, and `more` times what it grows to. Returns how
/// many files there are.
std::size_t replay(const Target& target, const fs::path& corpus, int more) {
  const std::vector<fs::path> files = files_in(corpus / target.name);
  std::mt19937 random(1);
  for (const fs::path& file : files) {
    // After a defect the last line names the file.
    std::cerr << file.string() << '\r' << std::flush;
    const std::string bytes = contents(file);
    systole::fuzz::run_target(target, bytes);
    for (int i = 0; i < more; ++i) {
      const std::string input = grown(bytes, random);
      if (const char* const kept = std::getenv("SYSTOLE_FUZZ_GROWN")) {
        std::ofstream(kept, std::ios::binary) << input;  // for a look at a defect
      }
      systole::fuzz::run_target(target, input);
    }
  }
  return files.size();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* const name = std::getenv("SYSTOLE_FUZZ_TARGET");
  chosen = systole::fuzz::find_target(name == nullptr ? "" : name);
  if (chosen != nullptr) return 0;
  std::cerr << "SYSTOLE_FUZZ_TARGET: no such target\n";
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  systole::fuzz::run_target(*chosen, {reinterpret_cast<const char*>(data), size});
  return 0;
}

/// fuzz_tests CORPUS [TARGET...]: replays. The environment variable SYSTOLE_FUZZ_MORE says how many
/// times each file grows, one by default.
int sc_main(int argc, char* argv[]) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    std::cerr << "usage: fuzz_tests CORPUS [TARGET...]\n";
    return 2;
  }
  const char* const more = std::getenv("SYSTOLE_FUZZ_MORE");
  bool complete = true;
  for (const Target& target : systole::fuzz::targets()) {
    if (words.size() > 1 && std::find(words.begin() + 1, words.end(), target.name) == words.end()) {
      continue;
    }
    const std::size_t files = replay(target, words.front(), more == nullptr ? 1 : std::stoi(more));
    std::cerr << target.name << ": " << files << " files\033[K\n";
    complete &= files != 0;  // a corpus that went missing tests nothing
  }
  return complete ? 0 : 1;
}
