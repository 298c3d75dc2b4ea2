#include <gtkwave/fstapi.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "testbench/wave/fst_block.h"
#include "testbench/wave/fst_place.h"
#include "testbench/wave/wave_file.h"

namespace systole::testbench {
namespace {

/// Where the head of a file has what is known at its end; numbers of eight bytes.
constexpr std::size_t kHeadBytes = 330, kStartAt = 9, kEndAt = 17, kBlocksAt = 65;
constexpr int kPicoseconds = -12;

std::uint64_t number_at(const std::string& text, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    value = value << 8U | static_cast<std::uint8_t>(text.at(at + i));
  }
  return value;
}

/// Head and hierarchy are GTKWave's writer's, the blocks of changes ours.
class FstFile final : public WaveFile {
 public:
  explicit FstFile(const std::string& path) : place_(path) {}

  void begin(std::uint64_t time, const std::vector<RecordedSignal>& signals,
             const std::vector<RecordedValue>& values) override {
    write_hierarchy(signals);
    changes_ = std::make_unique<FstBlock>(widths_);
    begin_ = stamp_ = time;
    changes_->stamp(time);
    for (std::size_t i = 0; i < values.size(); ++i) changes_->change(place_of_[i], values[i]);
  }

  void change(std::uint64_t time, std::size_t signal, const RecordedValue& value) override {
    stamp(time);
    changes_->change(place_of_[signal], value);
  }

  /// Those before begin() alone: FST has them ahead of the signals.
  void comment(const std::string& text) override { comments_.push_back(text); }

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }

  void commit(std::uint64_t end) override {
    stamp(end);
    write_block();
    out_ << after_changes_;
    const auto put = [this](std::size_t at, std::uint64_t value) {
      out_.seekp(static_cast<std::streamoff>(at));
      out_ << fst_number(value);
    };
    put(kStartAt, begin_);
    put(kEndAt, end);
    put(kBlocksAt, blocks_);
    out_.close();
    if (!out_)
      throw hw::InputError(hw::printable(place_.path()) + ": cannot be written as a whole");
    place_.commit();
  }

 private:
  /// Bytes of changes before they are compressed. Chosen: little beside what a simulation needs.
  static constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;

  void write_hierarchy(const std::vector<RecordedSignal>& signals) {
    void* const fst = fstWriterCreate(place_.place().c_str(), 1);
    if (fst == nullptr) throw hw::InputError(hw::printable(place_.path()) + ": cannot be written");
    fstWriterSetPackType(fst, FST_WR_PT_LZ4);
    fstWriterSetTimescale(fst, kPicoseconds);
    fstWriterSetVersion(fst, "Systole");
    fstWriterSetDate(fst, "");  // the same run writes the same bytes
    for (const std::string& text : comments_) fstWriterSetComment(fst, text.c_str());
    place_of_.resize(signals.size());
    visit_hierarchy(signals, {[fst](const std::string& scope) {
                                fstWriterSetScope(fst, FST_ST_VCD_MODULE, scope.c_str(), nullptr);
                              },
                              [fst] { fstWriterSetUpscope(fst); },
                              [&](std::size_t signal, const std::string& name) {
                                const unsigned width = signals[signal].width;
                                place_of_[signal] = widths_.size();
                                widths_.push_back(width);
                                fstWriterCreateVar(fst, FST_VT_VCD_WIRE, FST_VD_IMPLICIT, width,
                                                   ranged_name(name, width).c_str(), 0);
                              }});
    fstWriterClose(fst);
    keep_hierarchy();
  }

  /// Of what GTKWave's writer has made, all but the changes: there are none yet.
  void keep_hierarchy() {
    std::string all;
    {
      std::ifstream in(place_.place(), std::ios::binary);
      all.assign(std::istreambuf_iterator<char>(in), {});
    }
    constexpr std::size_t kBlockHead = 9;
    for (std::size_t at = kHeadBytes; at + kBlockHead <= all.size();) {
      const auto kind = static_cast<std::uint8_t>(all[at]);
      const std::uint64_t length = 1 + number_at(all, at + 1);
      const bool is_hierarchy = kind == FST_BL_GEOM || kind == FST_BL_HIER ||
                                kind == FST_BL_HIER_LZ4 || kind == FST_BL_HIER_LZ4DUO;
      if (is_hierarchy) after_changes_.append(all, at, length);
      at += length;
    }
    all.resize(kHeadBytes);
    out_.open(place_.place(), std::ios::binary | std::ios::trunc);
    out_ << all;
    bytes_ = all.size() + after_changes_.size();
  }

  void stamp(std::uint64_t time) {
    if (time == stamp_) return;
    stamp_ = time;
    if (changes_->bytes() >= kPiece) write_block();
    changes_->stamp(time);
  }

  void write_block() {
    const std::string block = changes_->take();
    out_ << block;
    bytes_ += block.size();
    ++blocks_;
  }

  FstPlace place_;
  std::ofstream out_;
  std::string after_changes_;
  std::vector<unsigned> widths_;       ///< in the order of the hierarchy
  std::vector<std::size_t> place_of_;  ///< of a signal in that order
  std::vector<std::string> comments_;
  std::unique_ptr<FstBlock> changes_;
  std::uint64_t begin_ = 0, bytes_ = 0, blocks_ = 0;
  std::uint64_t stamp_ = 0;  ///< last time in the file
};

}  // namespace

std::unique_ptr<WaveFile> make_fst_file(const std::string& path) {
  return std::make_unique<FstFile>(path);
}

}  // namespace systole::testbench
