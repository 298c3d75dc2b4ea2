#include "testbench/wave/fst_output.h"

#include <gtkwave/fstapi.h>

#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace systole::testbench {
namespace {

/// Where the head of a file has what is known at its end; numbers of eight bytes.
constexpr std::size_t kHeadBytes = 330, kStartAt = 9, kEndAt = 17, kBlocksAt = 65;
constexpr int kPicoseconds = -12;
/// Bytes of changes before they are compressed. Chosen: little beside what a simulation needs.
constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;

std::uint64_t number_at(const std::string& text, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    value = value << 8U | static_cast<std::uint8_t>(text.at(at + i));
  }
  return value;
}

}  // namespace

FstOutput::FstOutput(const std::string& path)
    : place_(path), writer_(fstWriterCreate(place_.place().c_str(), 1)) {
  if (writer_ == nullptr) throw hw::InputError(hw::printable(path) + ": cannot be written");
  fstWriterSetPackType(writer_, FST_WR_PT_LZ4);
  fstWriterSetTimescale(writer_, kPicoseconds);
  fstWriterSetVersion(writer_, "Systole");
  fstWriterSetDate(writer_, "");  // the same run writes the same bytes
}

FstOutput::~FstOutput() {
  if (writer_ != nullptr) fstWriterClose(writer_);
}

void FstOutput::begin(std::uint64_t time, const std::vector<unsigned>& widths) {
  fstWriterClose(std::exchange(writer_, nullptr));
  keep_hierarchy();
  changes_ = std::make_unique<FstBlock>(widths);
  begin_ = stamp_ = time;
  changes_->stamp(time);
}

/// Of what GTKWave's writer has made, all but the changes: there are none yet.
void FstOutput::keep_hierarchy() {
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

void FstOutput::stamp(std::uint64_t time) {
  if (time == stamp_) return;
  stamp_ = time;
  if (changes_->bytes() >= kPiece) write_block();
  changes_->stamp(time);
}

void FstOutput::write_block() {
  const std::string block = changes_->take();
  out_ << block;
  bytes_ += block.size();
  ++blocks_;
}

void FstOutput::commit(std::uint64_t end) {
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
  if (!out_) throw hw::InputError(hw::printable(place_.path()) + ": cannot be written as a whole");
  place_.commit();
}

}  // namespace systole::testbench
