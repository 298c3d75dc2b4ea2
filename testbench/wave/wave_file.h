#pragma once

#include <cstdint>
#include <memory>
#include <string>
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

/// A value change dump, text. In place of SystemC's own writer because this one notices a full
/// disk, is the same for the same run (no date), and needs a third of the bytes. Throws InputError
/// if `path` cannot be written.
[[nodiscard]] std::unique_ptr<WaveFile> make_vcd_file(const std::string& path);

}  // namespace systole::testbench
