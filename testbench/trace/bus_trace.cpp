#include "testbench/trace/bus_trace.h"

#include <fmt/compile.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "hw/description/core_system.h"
#include "hw/program/program.h"
#include "testbench/trace/trace_text.h"

namespace systole::testbench {
namespace {

using tlm_model::BusTransaction;

constexpr std::string_view kFirstLine = "# systole bus trace 1";
constexpr std::string_view kColumns = "asked,initiator,command,address,bytes,granted,answered";
constexpr std::string_view kEnd = "# end ";
constexpr std::string_view kGzip = "\x1f\x8b";
/// Of a compressed trace: what no run of this program fills.
constexpr std::size_t kMostBytes = std::size_t{8} << 30;
/// A transaction is at most a page of DRAM.
constexpr std::uint64_t kMostTransaction = std::uint64_t{1} << 20;
/// Decompressed at once.
constexpr std::size_t kBuffer = std::size_t{1} << 18;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// The contents of a file that may be compressed.
class Contents {
 public:
  explicit Contents(const std::string& path) : file_(path), text_(file_.bytes()) {
    if (text_.substr(0, kGzip.size()) == kGzip) inflate_all(path);
  }
  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  void inflate_all(const std::string& path) {
    z_stream stream{};
    if (::inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
    const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, ::inflateEnd);
    std::string_view left = text_;
    std::vector<char> piece(kBuffer);
    for (int status = Z_OK; status != Z_STREAM_END;) {
      if (stream.avail_in == 0) {
        if (left.empty()) throw hw::InputError(path + ": the compressed data are cut short");
        const std::size_t take = std::min(left.size(), kBuffer);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(left.data()));
        stream.avail_in = static_cast<uInt>(take);
        left.remove_prefix(take);
      }
      stream.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_out = static_cast<uInt>(piece.size());
      status = ::inflate(&stream, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        throw hw::InputError(path + ": is no gzip file, or damaged");
      }
      inflated_.append(piece.data(), piece.size() - stream.avail_out);
      if (inflated_.size() > kMostBytes) {
        throw hw::InputError(
            fmt::format("{}: more than {} GiB when it is decompressed", path, kMostBytes >> 30));
      }
    }
    text_ = inflated_;
  }

  hw::MappedFile file_;
  std::string inflated_;
  std::string_view text_;
};

/// Lines of a text, counted.
class Lines {
 public:
  Lines(std::string path, std::string_view text) : path_(std::move(path)), left_(text) {}

  /// The next line without its end; false: there is none.
  bool next(std::string_view& line) {
    if (left_.empty()) return false;
    const std::size_t end = left_.find('\n');
    line = left_.substr(0, end);
    left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + 1);
    if (ends_with(line, "\r")) line.remove_suffix(1);
    ++number_;
    return true;
  }
  [[noreturn]] void fail(std::string_view found, const std::string& expected) const {
    throw hw::InputError(fmt::format("{}:{}: found '{}', expected {}", path_, number_,
                                     hw::printable(found, 60), expected));
  }
  [[noreturn]] void fail_at_end(const std::string& what) const {
    throw hw::InputError(fmt::format("{}:{}: {}", path_, number_ + 1, what));
  }

 private:
  std::string path_;
  std::string_view left_;
  std::size_t number_ = 0;
};

/// Takes the part of `rest` before `separator`, or all of it.
std::string_view take(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

/// The next word of a line of words, which blanks and tabs separate.
std::string_view take_word(std::string_view& rest) {
  const std::size_t begin = std::min(rest.find_first_not_of(" \t"), rest.size());
  rest.remove_prefix(begin);
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end);
  return word;
}

/// Decimal, or hexadecimal after 0x.
std::optional<std::uint64_t> number_of(std::string_view text) {
  const bool hex = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  if (hex) text.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Reads a trace, checking each transaction.
class TraceReader {
 public:
  TraceReader(const std::string& path, std::string_view text, const hw::Machine& machine)
      : lines_(path, text), machine_(machine), dram_bytes_(std::uint64_t{machine.dram.mib} << 20) {}

  BusTrace read(TraceFormat format) {
    switch (format) {
      case TraceFormat::kSystole:
        read_own();
        break;
      case TraceFormat::kDramsys:
        begin_foreign();
        read_dramsys();
        break;
      case TraceFormat::kRamulator:
        begin_foreign();
        read_ramulator();
        break;
    }
    if (trace_.transactions.empty()) lines_.fail_at_end("expected at least one transaction");
    return std::move(trace_);
  }

 private:
  void begin_foreign() {
    trace_.initiators = {"trace"};
    last_asked_ = {0};
  }

  std::uint64_t number(std::string_view text, std::string_view line, const char* what) {
    const std::optional<std::uint64_t> found = number_of(text);
    if (!found) lines_.fail(line, what);
    return *found;
  }

  void add(const BusTransaction& transaction, std::string_view line) {
    if (transaction.bytes == 0 || transaction.bytes > kMostTransaction) {
      lines_.fail(line, fmt::format("1 to {} bytes", kMostTransaction));
    }
    const std::uint64_t offset = transaction.address - hw::kDramBase;
    const std::uint64_t in_registers = transaction.address - hw::kRegistersBase;
    const bool in_memory = offset < dram_bytes_ && transaction.bytes <= dram_bytes_ - offset;
    // The difference of an address below the registers is far beyond them.
    const bool at_registers = in_registers < hw::kAllRegisterBytes &&
                              transaction.bytes <= hw::kAllRegisterBytes - in_registers;
    if (!in_memory && !at_registers) {
      lines_.fail(line, fmt::format("an address in the {} MiB of dram.mib", machine_.dram.mib));
    }
    if (transaction.asked > kMostCycles || transaction.answered > kMostCycles) {
      lines_.fail(line, fmt::format("cycles up to {}", kMostCycles));
    }
    std::uint64_t& last = last_asked_[transaction.initiator];
    if (transaction.asked < last) {
      lines_.fail(line, fmt::format("a cycle of at least {}, that of the initiator's transaction "
                                    "before",
                                    last));
    }
    last = transaction.asked;
    trace_.transactions.push_back(transaction);
  }

  void read_own() {
    std::string_view line;
    if (!lines_.next(line) || line != kFirstLine) {
      lines_.fail(line, fmt::format("the line '{}'", kFirstLine));
    }
    bool columns = false;
    while (lines_.next(line)) {
      if (line.substr(0, kEnd.size()) == kEnd) return end_own(line);
      if (!columns) {
        columns = read_head(line);
      } else {
        read_row(line);
      }
    }
    lines_.fail_at_end(fmt::format("the trace is cut short: expected '{}' and a count", kEnd));
  }

  /// Whether it is the line with the columns.
  bool read_head(std::string_view line) {
    if (line == kColumns) {
      trace_.has_answers = true;
      return true;
    }
    std::string_view rest = line;
    if (take_word(rest) != "#") lines_.fail(line, fmt::format("the line '{}'", kColumns));
    const std::string_view key = take_word(rest), value = take_word(rest);
    if (key == "machine") trace_.machine = value;
    if (key == "clock_mhz") {
      const std::uint64_t mhz = number(value, line, "'# clock_mhz' and a number");
      if (mhz == 0 || mhz > 1'000'000) lines_.fail(line, "1 to 1000000 MHz");
      trace_.clock_mhz = static_cast<std::uint32_t>(mhz);
    }
    return false;
  }

  void read_row(std::string_view line) {
    std::array<std::string_view, 7> fields;
    std::string_view rest = line;
    for (std::string_view& field : fields) field = take(rest, ',');
    if (!rest.empty() || std::count(line.begin(), line.end(), ',') != 6) {
      lines_.fail(line, fmt::format("seven fields: {}", kColumns));
    }
    BusTransaction transaction;
    transaction.asked = number(fields[0], line, "a cycle as first field");
    transaction.initiator = initiator_of(fields[1], line);
    transaction.write = is_write(fields[2], "read", "write", line);
    transaction.address = number(fields[3], line, "an address as fourth field");
    transaction.bytes = bytes_of(fields[4], line);
    transaction.granted = number(fields[5], line, "the cycle of the grant as sixth field");
    transaction.answered = number(fields[6], line, "the cycle of the answer as seventh field");
    if (transaction.granted < transaction.asked || transaction.answered < transaction.granted) {
      lines_.fail(line, "asked, granted and answered in that order");
    }
    add(transaction, line);
  }

  void end_own(std::string_view line) {
    std::string_view rest = line.substr(kEnd.size());
    if (number_of(take_word(rest)) != trace_.transactions.size()) {
      lines_.fail(line,
                  fmt::format("'{}{}', as many as there are", kEnd, trace_.transactions.size()));
    }
    std::string_view more;
    if (lines_.next(more)) lines_.fail(more, "nothing after the end");
  }

  std::uint32_t bytes_of(std::string_view text, std::string_view line) {
    const std::uint64_t bytes = number(text, line, "a number of bytes");
    if (bytes > kMostTransaction) lines_.fail(line, fmt::format("1 to {} bytes", kMostTransaction));
    return static_cast<std::uint32_t>(bytes);
  }

  bool is_write(std::string_view text, const char* read, const char* write, std::string_view line) {
    if (text == write) return true;
    if (text != read) lines_.fail(line, fmt::format("'{}' or '{}'", read, write));
    return false;
  }

  std::uint32_t initiator_of(std::string_view name, std::string_view line) {
    // A trace has few, and long runs of each.
    for (std::size_t i = 0; i < trace_.initiators.size(); ++i) {
      if (trace_.initiators[i] == name) return static_cast<std::uint32_t>(i);
    }
    if (name.empty() || trace_.initiators.size() == kMostInitiators) {
      lines_.fail(line, fmt::format("names of at most {} initiators", kMostInitiators));
    }
    trace_.initiators.emplace_back(name);
    last_asked_.push_back(0);
    return static_cast<std::uint32_t>(trace_.initiators.size() - 1);
  }

  /// The next line with a transaction.
  bool next_row(std::string_view& line) {
    while (lines_.next(line)) {
      std::string_view rest = line;
      const std::string_view word = take_word(rest);
      if (!word.empty() && word.front() != '#') return true;
    }
    return false;
  }

  void read_dramsys() {
    std::string_view line;
    while (next_row(line)) {
      std::string_view rest = line;
      BusTransaction transaction;
      std::string_view word = take_word(rest);
      if (ends_with(word, ":")) word.remove_suffix(1);
      transaction.asked = number(word, line, "a cycle and a colon first");
      transaction.bytes = machine_.dma.request_bytes;
      word = take_word(rest);
      if (word.size() > 2 && word.front() == '(' && word.back() == ')') {
        transaction.bytes = bytes_of(word.substr(1, word.size() - 2), line);
        word = take_word(rest);
      }
      transaction.write = is_write(word, "read", "write", line);
      transaction.address = address_of(take_word(rest), line, true);
      add(transaction, line);  // what follows a write are its data
    }
  }

  void read_ramulator() {
    std::string_view line;
    while (next_row(line)) {
      std::string_view rest = line;
      BusTransaction transaction;
      transaction.asked = trace_.transactions.size();
      transaction.bytes = machine_.dma.request_bytes;
      transaction.write = is_write(take_word(rest), "LD", "ST", line);
      transaction.address = address_of(take_word(rest), line, false);
      if (!take_word(rest).empty()) lines_.fail(line, "a command and an address");
      add(transaction, line);
    }
  }

  /// An offset in the memory, of a trace that knows nothing else.
  std::uint64_t address_of(std::string_view text, std::string_view line, bool always_hex) {
    const bool prefixed = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
    const std::uint64_t offset = number(
        always_hex && !prefixed ? "0x" + std::string(text) : std::string(text), line, "an address");
    if (offset >= dram_bytes_) {
      lines_.fail(line, fmt::format("an address in the {} MiB of dram.mib", machine_.dram.mib));
    }
    return hw::kDramBase + offset;
  }

  static constexpr std::uint64_t kMostCycles = std::uint64_t{1} << 42;  ///< an hour at 1 GHz
  static constexpr std::size_t kMostInitiators = 256;

  Lines lines_;
  const hw::Machine& machine_;
  const std::uint64_t dram_bytes_;
  BusTrace trace_;
  std::vector<std::uint64_t> last_asked_;  ///< by initiator
};

}  // namespace

TraceFormat trace_format(const std::string& path) {
  std::string_view name = path;
  if (is_compressed(path)) name.remove_suffix(3);
  if (ends_with(name, ".csv")) return TraceFormat::kSystole;
  if (ends_with(name, ".stl")) return TraceFormat::kDramsys;
  if (ends_with(name, ".trace")) return TraceFormat::kRamulator;
  throw hw::InputError(fmt::format(
      "{}: a trace is named by its format, expected .csv, .stl (DRAMSys) or .trace (Ramulator), "
      "and .gz after that if it is compressed",
      path));
}

BusTrace read_bus_trace(const std::string& path, const hw::Machine& machine) {
  const TraceFormat format = trace_format(path);
  const Contents contents(path);
  return TraceReader(path, contents.text(), machine).read(format);
}

class BusTraceWriter::Impl {
 public:
  Impl(const std::string& path, const hw::Machine& machine)
      : format_(trace_format(path)), text_(path) {
    if (format_ == TraceFormat::kSystole) {
      text_.add("{}\n# machine {}\n# clock_mhz {}\n{}\n", kFirstLine, machine.name,
                machine.bus.clock_mhz, kColumns);
    } else if (format_ == TraceFormat::kDramsys) {  // Ramulator takes no comments
      text_.add("# machine {}, cycles of {} MHz: clkMhz of the player\n", machine.name,
                machine.bus.clock_mhz);
    }
  }

  void add(const BusTransaction& transaction, const std::string& initiator) {
    if (format_ == TraceFormat::kSystole) {
      text_.add(FMT_COMPILE("{},{},{},0x{:x},{},{},{}\n"), transaction.asked,
                name_of(transaction.initiator, initiator), transaction.write ? "write" : "read",
                transaction.address, transaction.bytes, transaction.granted, transaction.answered);
      ++count_;
    } else if (transaction.address < hw::kRegistersBase) {  // they know memory alone
      requests_.push_back({transaction.asked, transaction.address - hw::kDramBase,
                           transaction.bytes, transaction.write});
    }
  }

  void commit() {
    // An initiator may be ahead of others; the other tools take one sequence in order of time.
    std::stable_sort(requests_.begin(), requests_.end(),
                     [](const Request& x, const Request& y) { return x.asked < y.asked; });
    for (const Request& request : requests_) {
      if (format_ == TraceFormat::kDramsys) {
        text_.add(FMT_COMPILE("{}: ({}) {} 0x{:x}\n"), request.asked, request.bytes,
                  request.write ? "write" : "read", request.offset);
      } else {
        text_.add(FMT_COMPILE("{} 0x{:x}\n"), request.write ? "ST" : "LD", request.offset);
      }
    }
    if (format_ == TraceFormat::kSystole) text_.add("{}{}\n", kEnd, count_);
    text_.commit();
  }

 private:
  struct Request {
    std::uint64_t asked, offset;
    std::uint32_t bytes;
    bool write;
  };

  const std::string& name_of(std::uint32_t number, const std::string& initiator) {
    if (number >= names_.size()) names_.resize(number + std::size_t{1});
    if (names_[number].empty()) names_[number] = tlm_model::short_name(initiator);
    return names_[number];
  }

  const TraceFormat format_;
  TraceText text_;
  std::vector<std::string> names_;  ///< by number of the initiator
  std::uint64_t count_ = 0;
  std::vector<Request> requests_;  ///< of the other tools' formats
};

BusTraceWriter::BusTraceWriter(const std::string& path, const hw::Machine& machine)
    : impl_(path.empty() ? nullptr : std::make_unique<Impl>(path, machine)) {}
BusTraceWriter::~BusTraceWriter() = default;

void BusTraceWriter::observe(std::vector<tlm_model::BusObserver>& observers) {
  if (impl_ == nullptr) return;
  observers.emplace_back([this](const BusTransaction& transaction, const std::string& initiator) {
    impl_->add(transaction, initiator);
  });
}

void BusTraceWriter::commit() {
  if (impl_ != nullptr) impl_->commit();
}

}  // namespace systole::testbench
