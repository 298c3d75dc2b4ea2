#include "mapper/place/constant_image.h"

#include <cstring>
#include <utility>

#include "base/round.h"

namespace systole::mapper {

std::uint64_t ConstantImage::add_tile(const std::uint8_t* data, std::size_t row_bytes,
                                      std::uint32_t rows, std::uint32_t cols, std::uint32_t pitch,
                                      std::uint64_t alignment) {
  const std::uint64_t address = round_up(end_, alignment);
  const std::size_t bytes = std::size_t{rows} * pitch;
  end_ = address + bytes;
  if (data != nullptr && with_contents_) {
    std::vector<std::uint8_t> tile(bytes, 0);
    for (std::uint32_t row = 0; row < rows; ++row) {
      std::memcpy(&tile[std::size_t{row} * pitch], data + row * row_bytes, cols);
    }
    pieces_.push_back({address, std::move(tile)});
  }
  return address;
}

void ConstantImage::add_rows(std::uint64_t address, const std::vector<std::uint8_t>& data,
                             std::size_t row_bytes, std::uint32_t pitch) {
  if (!with_contents_) return;
  const std::size_t rows = data.size() / row_bytes;
  std::vector<std::uint8_t> padded(rows * pitch, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    std::memcpy(&padded[row * pitch], &data[row * row_bytes], row_bytes);
  }
  pieces_.push_back({address, std::move(padded)});
}

}  // namespace systole::mapper
