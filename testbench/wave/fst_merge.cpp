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
#include "testbench/wave/fst_place.h"

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
      : slice_bytes_(slice_bytes),
        place_(path),
        writer_(fstWriterCreate(place_.place().c_str(), 1), [](void* fst) {
          if (fst != nullptr) fstWriterClose(fst);
        }) {
    if (!writer_) throw hw::InputError(hw::printable(path) + ": cannot be written");
    fstWriterSetPackType(writer_.get(), FST_WR_PT_LZ4);
    fstWriterSetVersion(writer_.get(), "Systole");
    fstWriterSetDate(writer_.get(), "");
    add({path, {}});
    for (const FstPart& part : parts) add(part);
    void* const whole = sources_.front().reader.get();
    fstWriterSetTimescale(writer_.get(), fstReaderGetTimescale(whole));
    begin_ = fstReaderGetStartTime(whole);
    end_ = fstReaderGetEndTime(whole);
  }

  void run() {
    values_.resize(next_handle_);
    latest_.resize(next_handle_, kNoChange);
    early_.resize(next_handle_);
    const std::uint64_t slices = std::max<std::uint64_t>(bytes_ / slice_bytes_, 1);
    const std::uint64_t length = (end_ - begin_) / slices + 1;
    for (slice_begin_ = begin_; slice_begin_ <= end_; slice_begin_ += length) {
      slice_end_ = std::min(end_, slice_begin_ + length - 1);
      read_slice();
      write_slice();
    }
    if (written_ != end_) fstWriterEmitTimeChange(writer_.get(), end_);
    writer_.reset();
    sources_.clear();
    place_.commit();
  }

 private:
  static constexpr std::size_t kNoChange = ~std::size_t{0};

  struct Source {
    FstHandle reader;
    std::vector<fstHandle> handles;  ///< in what is written, by handle
  };
  struct Change {
    std::uint64_t time;
    fstHandle handle;
    std::size_t text;  ///< where its digits are in `digits_`
    std::size_t length;
  };
  /// For the reader, which calls back with it.
  struct Reading {
    FstMerger* merger;
    const Source* source;
  };

  void add(const FstPart& part) {
    Source source{open_fst(part.path), {}};
    std::error_code none;
    bytes_ += std::filesystem::file_size(part.path, none);
    std::size_t depth = 0;
    for (std::size_t begin = 0; begin < part.scope.size(); ++depth) {
      const std::size_t end = std::min(part.scope.find('.', begin), part.scope.size());
      fstWriterSetScope(writer_.get(), FST_ST_VCD_MODULE,
                        part.scope.substr(begin, end - begin).c_str(), nullptr);
      begin = end + 1;
    }
    source.handles.resize(fstReaderGetMaxHandle(source.reader.get()) + 1, 0);
    while (const fstHier* entry = fstReaderIterateHier(source.reader.get())) {
      if (entry->htyp == FST_HT_SCOPE) {
        fstWriterSetScope(writer_.get(), static_cast<fstScopeType>(entry->u.scope.typ),
                          entry->u.scope.name, entry->u.scope.component);
      } else if (entry->htyp == FST_HT_UPSCOPE) {
        fstWriterSetUpscope(writer_.get());
      } else if (entry->htyp == FST_HT_VAR) {
        const auto& var = entry->u.var;
        fstHandle& handle = source.handles.at(var.handle);
        // A second name of a signal has the handle of the first.
        handle =
            fstWriterCreateVar(writer_.get(), static_cast<fstVarType>(var.typ),
                               static_cast<fstVarDir>(var.direction), var.length, var.name, handle);
        next_handle_ = std::max<std::size_t>(next_handle_, handle + 1);
      }
    }
    for (; depth > 0; --depth) fstWriterSetUpscope(writer_.get());
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
        of.merger->take(time, of.source->handles.at(handle), reinterpret_cast<const char*>(value));
      };
      fstReaderIterBlocks(reader, take, &reading, nullptr);
    }
  }

  void take(std::uint64_t time, fstHandle handle, const char* value) {
    // The reader gives all of a block that has a part of the slice.
    if (time > slice_end_) return;
    if (time < slice_begin_) {
      if (slice_begin_ == begin_) early_[handle] = value;
      return;
    }
    const std::size_t length = std::char_traits<char>::length(value);
    changes_.push_back({time, handle, digits_.size(), length});
    digits_.append(value, length + 1);
  }

  void write_slice() {
    for (std::size_t handle = 0; handle < early_.size(); ++handle) {
      if (early_[handle].empty()) continue;
      changes_.push_back(
          {begin_, static_cast<fstHandle>(handle), digits_.size(), early_[handle].size()});
      digits_.append(early_[handle].c_str(), early_[handle].size() + 1);
    }
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const Change& a, const Change& b) { return a.time < b.time; });
    for (std::size_t i = 0; i < changes_.size();) {
      const std::size_t first = i;
      // Of several changes at a time the last one counts.
      for (; i < changes_.size() && changes_[i].time == changes_[first].time; ++i) {
        latest_[changes_[i].handle] = i;
      }
      for (std::size_t each = first; each < i; ++each) {
        if (latest_[changes_[each].handle] == each) write(changes_[each]);
      }
    }
    early_.clear();
    changes_.clear();
    digits_.clear();
  }

  void write(const Change& change) {
    std::string& shown = values_[change.handle];
    if (shown.compare(0, shown.npos, digits_, change.text, change.length) == 0) return;
    shown.assign(digits_, change.text, change.length);
    if (written_ != change.time) fstWriterEmitTimeChange(writer_.get(), change.time);
    written_ = change.time;
    fstWriterEmitValueChange(writer_.get(), change.handle, digits_.data() + change.text);
  }

  const std::uint64_t slice_bytes_;
  FstPlace place_;
  FstHandle writer_;
  std::vector<Source> sources_;  ///< the first is what the others become parts of
  std::uint64_t bytes_ = 0;
  std::size_t next_handle_ = 1;
  std::uint64_t begin_ = 0, end_ = 0;
  std::uint64_t slice_begin_ = 0, slice_end_ = 0;
  std::vector<Change> changes_;  ///< of the slice
  std::string digits_;
  std::vector<std::string> early_;   ///< before all begins, by handle
  std::vector<std::string> values_;  ///< shown, by handle
  std::vector<std::size_t> latest_;  ///< change at the time in progress, by handle
  std::uint64_t written_ = ~std::uint64_t{0};
};

}  // namespace

void merge_fst(const std::string& path, const std::vector<FstPart>& parts,
               std::uint64_t slice_bytes) {
  FstMerger(path, parts, slice_bytes).run();
}

}  // namespace systole::testbench
