#include "mapper/place/constant_image.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/round.h"

namespace systole::mapper {
namespace {

ConstantImage::Bytes padded_rows(const std::uint8_t* from, std::size_t row_bytes, std::size_t rows,
                                 std::size_t cols, std::size_t pitch) {
  ConstantImage::Bytes tile(rows * pitch, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    std::memcpy(&tile[row * pitch], from + row * row_bytes, cols);
  }
  return tile;
}

}  // namespace

class ConstantImage::Source {
 public:
  /// `data` has another tile, which is not made yet.
  void expect(const hw::SharedVector<std::uint8_t>& data) { ++left_[data.identity()]; }

  Bytes make(const hw::SharedVector<std::uint8_t>& data, const Tile& tile) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (held_ == nullptr || of_ != data.identity()) {
      held_ = nullptr;  // first: two at a time are not wanted
      held_ = data.hold();
      of_ = data.identity();
    }
    Bytes made = tile(held_.get());
    data.let_go();
    std::size_t& left = left_[of_];
    if (left > 0 && --left == 0) held_ = nullptr;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, std::size_t> left_;  ///< tiles by data
  const void* of_ = nullptr;
  std::shared_ptr<const std::uint8_t> held_;
};

ConstantImage::ConstantImage(std::uint64_t begin, bool with_contents)
    : end_(begin), with_contents_(with_contents), source_(std::make_shared<Source>()) {}

std::uint64_t ConstantImage::add_tile(const std::uint8_t* data, std::size_t row_bytes,
                                      std::uint32_t rows, std::uint32_t cols, std::uint32_t pitch,
                                      std::uint64_t alignment) {
  const std::uint64_t address = round_up(end_, alignment);
  end_ = address + std::size_t{rows} * pitch;
  if (data != nullptr && with_contents_) {
    pieces_.push_back({tensors_++, {address, padded_rows(data, row_bytes, rows, cols, pitch)}});
  }
  return address;
}

std::uint64_t ConstantImage::add_tile(const hw::SharedVector<std::uint8_t>& data, std::size_t bytes,
                                      Tile tile) {
  const std::uint64_t address = round_up(end_, kDramRowAlignment);
  end_ = address + bytes;
  add(address, data, bytes, std::move(tile));
  return address;
}

void ConstantImage::add_rows(std::uint64_t address, const hw::SharedVector<std::uint8_t>& data,
                             std::size_t row_bytes, std::uint32_t pitch) {
  const std::size_t rows = data.size() / row_bytes;
  add(address, data, rows * pitch, [row_bytes, rows, pitch](const std::uint8_t* from) {
    return padded_rows(from, row_bytes, rows, row_bytes, pitch);
  });
}

void ConstantImage::add(std::uint64_t address, const hw::SharedVector<std::uint8_t>& data,
                        std::size_t bytes, Tile tile) {
  if (data.empty() || !with_contents_) return;
  const auto [known, is_new] = known_.try_emplace(data.identity(), tensors_);
  if (is_new) ++tensors_;
  source_->expect(data);
  const auto make = [source = source_, data, tile = std::move(tile)] {
    return source->make(data, tile);
  };
  pieces_.push_back(
      {known->second, {address, hw::SharedVector<std::uint8_t>::deferred(bytes, make)}});
}

hw::MemoryImage ConstantImage::take() && {
  std::stable_sort(pieces_.begin(), pieces_.end(),
                   [](const Piece& a, const Piece& b) { return a.tensor < b.tensor; });
  hw::MemoryImage image;
  image.reserve(pieces_.size());
  for (Piece& each : pieces_) image.push_back(std::move(each.piece));
  return image;
}

}  // namespace systole::mapper
