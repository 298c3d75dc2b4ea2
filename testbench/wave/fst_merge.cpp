#include "testbench/wave/fst_merge.h"

#include <gtkwave/fstapi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>

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

/// All changes of some files in the order of time, a slice of it after the other.
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
    values_.resize(widths_.size());
    latest_.resize(widths_.size(), kNoChange);
    early_.resize(widths_.size());
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
  static constexpr std::size_t kNoChange = ~std::size_t{0};

  struct Source {
    FstHandle reader;
    std::vector<std::size_t> variables;  ///< in what is written, by handle
    std::vector<fstHandle> handles;      ///< the same as GTKWave's writer counts, 0: none yet
  };
  struct Change {
    std::uint64_t time;
    std::size_t variable;
    std::size_t text;  ///< where its digits are in `digits_`
    std::size_t length;
  };
  /// For the reader, which calls back with it.
  struct Reading {
    FstMerger* merger;
    const Source* source;
  };

  void add(const FstPart& part) {
    Source source{open_fst(part.path), {}, {}};
    void* const writer = file_.writer();
    std::error_code none;
    bytes_ += std::filesystem::file_size(part.path, none);
    std::size_t depth = 0;
    for (std::size_t begin = 0; begin < part.scope.size(); ++depth) {
      const std::size_t end = std::min(part.scope.find('.', begin), part.scope.size());
      fstWriterSetScope(writer, FST_ST_VCD_MODULE,
                        part.scope.substr(begin, end - begin).c_str(), nullptr);
      begin = end + 1;
    }
    source.handles.resize(fstReaderGetMaxHandle(source.reader.get()) + 1, 0);
    source.variables.resize(source.handles.size());
    while (const fstHier* entry = fstReaderIterateHier(source.reader.get())) {
      if (entry->htyp == FST_HT_SCOPE) {
        fstWriterSetScope(writer, static_cast<fstScopeType>(entry->u.scope.typ),
                          entry->u.scope.name, entry->u.scope.component);
      } else if (entry->htyp == FST_HT_UPSCOPE) {
        fstWriterSetUpscope(writer);
      } else if (entry->htyp == FST_HT_VAR) {
        const auto& var = entry->u.var;
        fstHandle& handle = source.handles.at(var.handle);
        if (handle == 0) {
          source.variables[var.handle] = widths_.size();
          widths_.push_back(var.length);
        }
        // A second name of a signal has the handle of the first.
        handle = fstWriterCreateVar(writer, static_cast<fstVarType>(var.typ),
                                    static_cast<fstVarDir>(var.direction), var.length, var.name,
                                    handle);
      }
    }
    for (; depth > 0; --depth) fstWriterSetUpscope(writer);
    sources_.push_back(std::move(source));
  }

  void read_slice() {
    for (const Source& source : sources_) {
      void* const reader = source.reader.get();
      // The first slice has what came before it, for the values with which it begins.
      fstReaderSetLimitTimeRange(reader, slice_begin_ == begin_ ? 0 : slice_begin_, slice_end_);
      fstReaderSetFacProcessMaskAll(reader);
      Reading reading{this, &source};
      const auto take = [](void* data, std::uint64_t time, fstHandle handle,
                           const unsigned char* value) {
        const auto& of = *static_cast<Reading*>(data);
        of.merger->take(time, of.source->variables.at(handle),
                        reinterpret_cast<const char*>(value));
      };
      fstReaderIterBlocks(reader, take, &reading, nullptr);
    }
  }

  void take(std::uint64_t time, std::size_t variable, const char* value) {
    // The reader gives all of a block that has a part of the slice.
    if (time > slice_end_) return;
    if (time < slice_begin_) {
      if (slice_begin_ == begin_) early_[variable] = value;
      return;
    }
    const std::size_t length = std::char_traits<char>::length(value);
    changes_.push_back({time, variable, digits_.size(), length});
    digits_.append(value, length + 1);
  }

  void write_slice() {
    for (std::size_t variable = 0; variable < early_.size(); ++variable) {
      const std::string& value = early_[variable];
      if (value.empty()) continue;
      changes_.push_back({begin_, variable, digits_.size(), value.size()});
      digits_.append(value.c_str(), value.size() + 1);
    }
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const Change& a, const Change& b) { return a.time < b.time; });
    for (std::size_t i = 0; i < changes_.size();) {
      const std::size_t first = i;
      // Of several changes at a time the last one counts.
      for (; i < changes_.size() && changes_[i].time == changes_[first].time; ++i) {
        latest_[changes_[i].variable] = i;
      }
      for (std::size_t each = first; each < i; ++each) {
        if (latest_[changes_[each].variable] == each) write(changes_[each]);
      }
    }
    early_.clear();
    changes_.clear();
    digits_.clear();
  }

  void write(const Change& change) {
    std::string& shown = values_[change.variable];
    if (shown.compare(0, shown.npos, digits_, change.text, change.length) == 0) return;
    shown.assign(digits_, change.text, change.length);
    file_.stamp(change.time);
    file_.changes().change(change.variable, digits_.data() + change.text);
  }

  const std::uint64_t slice_bytes_;
  FstOutput file_;
  std::vector<Source> sources_;  ///< the first is what the others become parts of
  std::uint64_t bytes_ = 0;
  std::vector<unsigned> widths_;  ///< by variable
  std::uint64_t begin_ = 0, end_ = 0;
  std::uint64_t slice_begin_ = 0, slice_end_ = 0;
  std::vector<Change> changes_;  ///< of the slice
  std::string digits_;
  std::vector<std::string> early_;   ///< before all begins, by variable
  std::vector<std::string> values_;  ///< shown, by variable
  std::vector<std::size_t> latest_;  ///< change at the time in progress, by handle
};

}  // namespace

void merge_fst(const std::string& path, const std::vector<FstPart>& parts,
               std::uint64_t slice_bytes) {
  FstMerger(path, parts, slice_bytes).run();
}

}  // namespace systole::testbench
