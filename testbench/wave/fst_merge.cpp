#include "testbench/wave/fst_merge.h"

#include <gtkwave/fstapi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "testbench/wave/fst_output.h"

namespace systole::testbench {
namespace {

using FstHandle = std::unique_ptr<void, void (*)(void*)>;

FstHandle open_fst(const std::string& path) {
  FstHandle reader(fstReaderOpen(path.c_str()), [](void* fst) {
    if (fst != nullptr) fstReaderClose(fst);
  });
  if (!reader) throw hw::InputError(hw::printable(path) + ": no FST file, expected one");
  return reader;
}

/// All changes of some files, a slice of time after the other. A block of an FST has the changes of
/// a signal one after the other and knows their times by number, so only the times are merged.
class FstMerger {
 public:
  FstMerger(const std::string& path, const std::vector<FstPart>& parts, std::uint64_t slice_bytes)
      : slice_bytes_(slice_bytes), file_(path) {
    add({path, {}});
    for (const FstPart& part : parts) add(part);
    void* const whole = sources_.front().reader.get();
    begin_ = fstReaderGetStartTime(whole);
    end_ = fstReaderGetEndTime(whole);
  }

  void run() {
    file_.begin(begin_, widths_);
    const std::uint64_t slices = std::max<std::uint64_t>(bytes_ / slice_bytes_, 1);
    const std::uint64_t length = (end_ - begin_) / slices + 1;
    for (slice_begin_ = begin_; slice_begin_ <= end_; slice_begin_ += length) {
      slice_end_ = std::min(end_, slice_begin_ + length - 1);
      read_slice();
      write_slice();
    }
    sources_.clear();
    file_.commit(end_);
  }

 private:
  struct Source {
    FstHandle reader;
    std::string path;
    std::vector<std::size_t> signals;  ///< in what is written, by handle
    std::vector<std::uint64_t> times;  ///< of the slice, in their order
    std::vector<std::uint32_t> steps;  ///< of each in the block
  };
  struct Signal {
    std::size_t source = 0;
    std::string early;    ///< before all begins
    std::string changes;  ///< of the slice: the number of a time of its source, then the value
    std::string shown;    ///< packed
  };
  /// For the reader, which calls back with it.
  struct Reading {
    FstMerger* merger;
    Source* source;
  };

  void add(const FstPart& part) {
    Source source{open_fst(part.path), part.path, {}, {}, {}};
    void* const writer = file_.writer();
    std::error_code none;
    bytes_ += std::filesystem::file_size(part.path, none);
    std::size_t depth = 0;
    for (std::size_t begin = 0; begin < part.scope.size(); ++depth) {
      const std::size_t end = std::min(part.scope.find('.', begin), part.scope.size());
      fstWriterSetScope(writer, FST_ST_VCD_MODULE, part.scope.substr(begin, end - begin).c_str(),
                        nullptr);
      begin = end + 1;
    }
    // As GTKWave's writer counts, 0: none yet.
    std::vector<fstHandle> handles(fstReaderGetMaxHandle(source.reader.get()) + 1, 0);
    source.signals.resize(handles.size());
    while (const fstHier* entry = fstReaderIterateHier(source.reader.get())) {
      if (entry->htyp == FST_HT_SCOPE) {
        fstWriterSetScope(writer, static_cast<fstScopeType>(entry->u.scope.typ),
                          entry->u.scope.name, entry->u.scope.component);
      } else if (entry->htyp == FST_HT_UPSCOPE) {
        fstWriterSetUpscope(writer);
      } else if (entry->htyp == FST_HT_VAR) {
        const auto& var = entry->u.var;
        fstHandle& handle = handles.at(var.handle);
        if (handle == 0) {
          source.signals[var.handle] = widths_.size();
          widths_.push_back(var.length);
          signals_.push_back({sources_.size(), {}, {}, {}});
        }
        // A second name of a signal has the handle of the first.
        handle =
            fstWriterCreateVar(writer, static_cast<fstVarType>(var.typ),
                               static_cast<fstVarDir>(var.direction), var.length, var.name, handle);
      }
    }
    for (; depth > 0; --depth) fstWriterSetUpscope(writer);
    sources_.push_back(std::move(source));
  }

  void read_slice() {
    for (Source& source : sources_) {
      void* const reader = source.reader.get();
      source.times.clear();
      // The first slice has what came before it, for the values with which it begins.
      fstReaderSetLimitTimeRange(reader, slice_begin_ == begin_ ? 0 : slice_begin_, slice_end_);
      fstReaderSetFacProcessMaskAll(reader);
      Reading reading{this, &source};
      const auto take = [](void* data, std::uint64_t time, fstHandle handle,
                           const unsigned char* value) {
        const auto& of = *static_cast<Reading*>(data);
        of.merger->take(*of.source, time, of.source->signals.at(handle),
                        reinterpret_cast<const char*>(value));
      };
      fstReaderIterBlocks(reader, take, &reading, nullptr);
    }
  }

  void take(Source& source, std::uint64_t time, std::size_t index, const char* value) {
    // The reader gives all of a block that has a part of the slice.
    if (time > slice_end_) return;
    Signal& signal = signals_[index];
    if (time < slice_begin_) {
      if (slice_begin_ == begin_) signal.early = value;
      return;
    }
    if (source.times.empty() || time > source.times.back()) source.times.push_back(time);
    if (time < source.times.back()) {
      throw hw::InputError(hw::printable(source.path) + ": changes are not in the order of time");
    }
    put_number(static_cast<std::uint32_t>(source.times.size() - 1), signal.changes);
    pack_digits(value, widths_[index], signal.changes);
  }

  static void put_number(std::uint32_t number, std::string& to) {
    to.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  /// The times of all sources in the block, each once.
  void stamp_times() {
    std::vector<std::size_t> next(sources_.size(), 0);
    for (Source& source : sources_) source.steps.clear();
    for (;;) {
      std::uint64_t time = ~std::uint64_t{0};
      for (std::size_t i = 0; i < sources_.size(); ++i) {
        const std::vector<std::uint64_t>& times = sources_[i].times;
        if (next[i] < times.size()) time = std::min(time, times[next[i]]);
      }
      if (time == ~std::uint64_t{0}) return;
      file_.stamp(time);
      for (std::size_t i = 0; i < sources_.size(); ++i) {
        const std::vector<std::uint64_t>& times = sources_[i].times;
        if (next[i] == times.size() || times[next[i]] != time) continue;
        ++next[i];
        sources_[i].steps.push_back(static_cast<std::uint32_t>(file_.changes().step()));
      }
    }
  }

  void write_slice() {
    const std::uint64_t first_step = file_.changes().step();
    stamp_times();
    for (std::size_t index = 0; index < signals_.size(); ++index) {
      Signal& signal = signals_[index];
      if (!signal.early.empty()) {
        // Ahead of what the slice begins with.
        std::string packed;
        pack_digits(signal.early.c_str(), widths_[index], packed);
        const bool again = changes_at(signal, first_step);
        if (!again) write(index, first_step, packed.data());
        signal.early.clear();
      }
      write_changes(index);
      signal.changes.clear();
    }
  }

  /// Whether the first change of the signal in the slice is at this step of the block.
  [[nodiscard]] bool changes_at(const Signal& signal, std::uint64_t step) const {
    if (signal.changes.empty()) return false;
    return sources_[signal.source].steps[number_at(signal.changes, 0)] == step;
  }

  static std::uint32_t number_at(const std::string& changes, std::size_t at) {
    std::uint32_t number = 0;
    std::memcpy(&number, changes.data() + at, sizeof number);
    return number;
  }

  void write_changes(std::size_t index) {
    const Signal& signal = signals_[index];
    const std::vector<std::uint32_t>& steps = sources_[signal.source].steps;
    for (std::size_t at = 0; at < signal.changes.size();) {
      const std::uint32_t number = number_at(signal.changes, at);
      const char* const packed = signal.changes.data() + at + sizeof number;
      at += sizeof number + packed_bytes(packed, widths_[index]);
      // Of several changes at a time the last one counts.
      if (at < signal.changes.size() && number_at(signal.changes, at) == number) continue;
      write(index, steps[number], packed);
    }
  }

  void write(std::size_t index, std::uint64_t step, const char* packed) {
    std::string& shown = signals_[index].shown;
    const std::size_t bytes = packed_bytes(packed, widths_[index]);
    if (shown.compare(0, shown.npos, packed, bytes) == 0) return;
    shown.assign(packed, bytes);
    file_.changes().change_at(index, step, packed);
  }

  const std::uint64_t slice_bytes_;
  FstOutput file_;
  std::vector<Source> sources_;  ///< the first is what the others become parts of
  std::uint64_t bytes_ = 0;
  std::vector<unsigned> widths_;  ///< by signal
  std::vector<Signal> signals_;
  std::uint64_t begin_ = 0, end_ = 0;
  std::uint64_t slice_begin_ = 0, slice_end_ = 0;
};

}  // namespace

void merge_fst(const std::string& path, const std::vector<FstPart>& parts,
               std::uint64_t slice_bytes) {
  FstMerger(path, parts, slice_bytes).run();
}

}  // namespace systole::testbench
