#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Fuzz targets: everything that reads what a user supplies, each on bytes from libFuzzer or from
/// the committed corpus (docs/reliability.md).
namespace systole::fuzz {

inline constexpr std::size_t kMemoryFloor = std::size_t{1} << 20;  ///< bytes
inline constexpr std::size_t kMemoryFactor = 10;
/// Of a text: each of its words, which may have one byte, is a pointer and a length in a list that
/// doubles, and this twice.
inline constexpr std::size_t kTextFactor = 64;
inline constexpr double kMostSeconds = 1.0;

/// Reads `bytes` as one kind of input. hw::InputError means that they were refused; any other
/// exception is a defect.
struct Target {
  const char* name;
  void (*run)(std::string_view bytes);
  std::size_t memory_factor = kMemoryFactor;
};

/// All of them, by name.
[[nodiscard]] const std::vector<Target>& targets();

/// Null if there is no such target.
[[nodiscard]] const Target* find_target(std::string_view name);

/// Runs a target once. A defect ends the process with one line and SIGABRT: an exception other than
/// InputError, a message that is empty or not fit for a terminal, more than a second of CPU time,
/// and, under AddressSanitizer, more memory than kMemoryFloor plus its factor times the input.
void run_target(const Target& target, std::string_view bytes);

/// Memory that is allocated now belongs to no input: what a target makes on its first call.
class Unmeasured {
 public:
  Unmeasured();
  ~Unmeasured();
  Unmeasured(const Unmeasured&) = delete;
  Unmeasured& operator=(const Unmeasured&) = delete;
};

/// Ends the process as a defect unless `holds`.
void require(bool holds, const char* what);

/// The path of a file with these bytes, in a folder of this process that goes when it ends. A
/// second call with the same name replaces the file.
[[nodiscard]] std::string file_with(const std::string& name, std::string_view bytes);

// By file of this folder.
void read_machine(std::string_view bytes);
void read_cores(std::string_view bytes);
void set_machine_key(std::string_view bytes);
void read_manifest(std::string_view bytes);
void read_safetensors(std::string_view bytes);
void read_npy(std::string_view bytes);
void read_picture(std::string_view bytes);
void read_mask(std::string_view bytes);
void read_token_ids(std::string_view bytes);
void read_json(std::string_view bytes);
void read_network(std::string_view bytes);
void read_deeploy(std::string_view bytes);
void read_config(std::string_view bytes);
void read_tokeniser(std::string_view bytes);
void read_byte_pairs(std::string_view bytes);
void split_text(std::string_view bytes);
void decode_program(std::string_view bytes);
void decode_command(std::string_view bytes);
void decode_mask(std::string_view bytes);
void read_program_file(std::string_view bytes);
void read_trace(std::string_view bytes);
void simulate_program(std::string_view bytes);

}  // namespace systole::fuzz
