#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/printable.h"
#include "fuzz/target.h"

#if defined(__SANITIZE_ADDRESS__)
#define SYSTOLE_COUNTS_MEMORY
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SYSTOLE_COUNTS_MEMORY
#endif
#endif
#if defined(SYSTOLE_COUNTS_MEMORY)
// As in <sanitizer/allocator_interface.h>, which g++ does not come with.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*,
                                                                           std::size_t),
                                                         void (*on_free)(const volatile void*));
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void* block);
#endif

namespace systole::fuzz {
namespace {

/// Bytes on the heap since a target began, and the most that there were.
struct HeapUse {
  bool counts = false;
  std::ptrdiff_t now = 0, peak = 0;
};
HeapUse heap;

#if defined(SYSTOLE_COUNTS_MEMORY)
void count_allocation(const volatile void* /*block*/, std::size_t bytes) {
  if (!heap.counts) return;
  heap.now += static_cast<std::ptrdiff_t>(bytes);
  heap.peak = std::max(heap.peak, heap.now);
}
void count_release(const volatile void* block) {
  if (!heap.counts || block == nullptr) return;
  heap.now -=
      static_cast<std::ptrdiff_t>(__sanitizer_get_allocated_size(const_cast<const void*>(block)));
}
const bool installed =
    __sanitizer_install_malloc_and_free_hooks(count_allocation, count_release) != 0;
#endif

[[noreturn]] void end_as_defect(const std::string& what) {
  std::fprintf(stderr, "systole fuzz: %s\n", what.c_str());
  std::abort();
}

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A line for each thing that is wrong, nothing that drives a terminal.
void check_message(const std::string& text) {
  if (text.empty()) end_as_defect("an InputError without a text");
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.empty()) end_as_defect("an empty line in a message: " + text);
    if (hw::printable(line) != line) {
      end_as_defect("a message with control characters: " + hw::printable(line));
    }
    begin = end + 1;
  }
}

/// Where files of this process are, removed at its end.
class Folder {
 public:
  Folder() {
    const std::filesystem::path memory = "/dev/shm";
    std::string pattern =
        (std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path()) /
        "systole-fuzz-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) end_as_defect("cannot make " + pattern);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace

Unmeasured::Unmeasured() { heap.counts = false; }
Unmeasured::~Unmeasured() { heap.counts = true; }

void require(bool holds, const char* what) {
  if (!holds) end_as_defect(std::string("does not hold: ") + what);
}

std::string file_with(const std::string& name, std::string_view bytes) {
  static const Folder folder;
  const std::string path = folder.path(name);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) end_as_defect("cannot write " + path);
  return path;
}

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {
      {"byte_pairs", read_byte_pairs},
      {"command", decode_command},
      {"config", read_config},
      {"cores", read_cores},
      {"deeploy", read_deeploy},
      {"json", read_json},
      {"machine", read_machine},
      {"manifest", read_manifest},
      {"mask", read_mask},
      {"mask_codec", decode_mask},
      {"network", read_network},
      {"npy", read_npy},
      {"picture", read_picture},
      {"program", decode_program},
      {"program_file", read_program_file},
      {"safetensors", read_safetensors},
      {"setting", set_machine_key},
      {"simulate", simulate_program},
      {"text", split_text, kTextFactor},
      {"token_ids", read_token_ids},
      {"tokeniser", read_tokeniser},
      {"trace", read_trace},
  };
  return all;
}

const Target* find_target(std::string_view name) {
  const auto found = std::find_if(targets().begin(), targets().end(),
                                  [&](const Target& target) { return target.name == name; });
  return found == targets().end() ? nullptr : &*found;
}

void run_target(const Target& target, std::string_view bytes) {
  heap = {true, 0, 0};
  const double began = cpu_seconds();
  try {
    target.run(bytes);
  } catch (const hw::InputError& error) {
    heap.counts = false;
    check_message(error.what());
  } catch (const std::exception& error) {
    end_as_defect(std::string(target.name) +
                  ": an exception that is no InputError: " + error.what());
  }
  heap.counts = false;
  if (cpu_seconds() - began > kMostSeconds) {
    end_as_defect(std::string(target.name) + ": took more than a second");
  }
  const std::size_t most = kMemoryFloor + target.memory_factor * bytes.size();
  if (heap.peak > static_cast<std::ptrdiff_t>(most)) {
    end_as_defect(std::string(target.name) + ": took " + std::to_string(heap.peak) +
                  " bytes of memory for an input of " + std::to_string(bytes.size()));
  }
}

}  // namespace systole::fuzz
