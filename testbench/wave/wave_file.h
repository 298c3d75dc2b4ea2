#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace systole::testbench {

/// A signal of a waveform.
struct RecordedSignal {
  std::string name;  ///< dotted path
  unsigned width;    ///< bits
};

/// What a signal shows: a number, that it has none, or one beyond its width.
struct RecordedValue {
  enum class Kind : std::uint8_t { kNumber, kNone, kUnknown };
  Kind kind = Kind::kNumber;
  std::uint64_t bits = 0;  ///< kNumber
  bool operator==(const RecordedValue& other) const {
    return kind == other.kind && bits == other.bits;
  }
};

/// A file of changes, in the order of time, ps. It appears with commit(), or not at all.
class WaveFile {
 public:
  virtual ~WaveFile() = default;
  /// The recording begins, with these values.
  virtual void begin(std::uint64_t time, const std::vector<RecordedSignal>& signals,
                     const std::vector<RecordedValue>& values) = 0;
  virtual void change(std::uint64_t time, std::size_t signal, const RecordedValue& value) = 0;
  virtual void comment(const std::string& text) = 0;
  /// Bytes so far.
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  /// The recording ends. Throws InputError if the file cannot be put in place.
  virtual void commit(std::uint64_t end) = 0;
};

/// Endings of the names of waveforms.
constexpr std::string_view kFstEnding = ".fst", kVcdEnding = ".vcd";

/// A value change dump, text. In place of SystemC's own writer because this one notices a full
/// disk, is the same for the same run (no date), and needs a third of the bytes. Throws InputError
/// if `path` cannot be written.
[[nodiscard]] std::unique_ptr<WaveFile> make_vcd_file(const std::string& path);

/// GTKWave's own format. bytes() leaves out changes that are not compressed yet, at most 4 MiB.
/// Throws InputError if `path` cannot be written or is no regular file.
[[nodiscard]] std::unique_ptr<WaveFile> make_fst_file(const std::string& path);

/// What a hierarchy of scopes consists of, in the order in which a file declares it.
struct HierarchyVisitor {
  std::function<void(const std::string& scope)> open;
  std::function<void()> close;
  std::function<void(std::size_t signal, const std::string& name)> signal;
};
/// Visits the signals by their paths, sorted.
void visit_hierarchy(const std::vector<RecordedSignal>& signals, const HierarchyVisitor& visitor);

/// "name [31:0]", or the name alone of a single bit: how files name a variable.
[[nodiscard]] std::string ranged_name(const std::string& name, unsigned width);

}  // namespace systole::testbench
