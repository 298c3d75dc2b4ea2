#include "hw/attention/mask_codec.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "base/error.h"

namespace systole::hw {
namespace {

constexpr std::size_t kAlignment = 8;
constexpr std::size_t kOneByteRows = 256;

std::size_t index_bytes(std::size_t queries) { return queries <= kOneByteRows ? 1 : 2; }
std::size_t pointer_bytes(std::size_t kept) {
  return kept <= std::numeric_limits<std::uint16_t>::max() ? 2 : 4;
}
std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class MaskWriter {
 public:
  explicit MaskWriter(std::vector<std::uint8_t>& out) : out_(out) {}

  void put(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      out_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  void put_bits(const std::vector<bool>& bits) {
    for (std::size_t first = 0; first < bits.size(); first += 8) {
      unsigned byte = 0;
      for (std::size_t i = first; i < bits.size() && i < first + 8; ++i) {
        byte |= (bits[i] ? 1U : 0U) << (i - first);
      }
      put(byte, 1);
    }
  }
  void align() { out_.resize(aligned(out_.size()), 0); }

 private:
  std::vector<std::uint8_t>& out_;
};

class MaskReader {
 public:
  explicit MaskReader(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError("byte " + std::to_string(at_) + ": " + what);
  }
  std::uint32_t get(std::size_t count) {
    if (count > bytes_.size() - at_) fail("the mask ends too early");
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) value |= std::uint32_t{bytes_[at_++]} << (8 * i);
    return value;
  }
  template <typename T>
  void get_list(std::size_t length, std::size_t bytes, std::vector<T>& list) {
    // A lying count ends at the end of the mask, not in memory.
    for (std::size_t i = 0; i < length; ++i) list.push_back(static_cast<T>(get(bytes)));
  }
  void get_bits(std::size_t length, std::vector<bool>& bits) {
    for (std::size_t first = 0; first < length; first += 8) {
      const std::uint32_t byte = get(1);
      for (std::size_t i = 0; i < 8; ++i) {
        const bool bit = (byte >> i & 1U) != 0;
        if (first + i < length) {
          bits.push_back(bit);
        } else if (bit) {
          fail("a bit after the last cell is set");
        }
      }
    }
  }
  void align() {
    while (at_ % kAlignment != 0) {
      if (get(1) != 0) fail("a byte between two heads is not 0");
    }
  }
  void finish() const {
    if (at_ != bytes_.size()) fail("bytes after the last head");
  }

 private:
  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_ = 0;
};

SparseHead read_head(MaskReader& in, std::size_t queries, std::size_t keys) {
  SparseHead head;
  head.queries = queries;
  head.keys = keys;
  const std::size_t global = in.get(4);
  const std::size_t kept = in.get(4);
  if (global > keys) in.fail("more global columns than keys");
  in.get_list(global, 2, head.dense_columns);
  in.get_list(keys - global, 2, head.sparse_columns);
  in.get_list(keys - global + 1, pointer_bytes(kept), head.column_pointers);
  in.get_list(kept, index_bytes(queries), head.row_indices);
  in.get_bits(head.dense_cells(), head.dense_keep);
  in.align();
  try {
    check_sparse_head(head);
  } catch (const std::invalid_argument& error) {
    in.fail(error.what());
  }
  return head;
}

}  // namespace

std::vector<std::uint8_t> encode_mask(const std::vector<SparseHead>& heads) {
  std::vector<std::uint8_t> bytes;
  MaskWriter out(bytes);
  for (const SparseHead& head : heads) {
    out.put(head.dense_columns.size(), 4);
    out.put(head.sparse_kept(), 4);
    for (const std::uint16_t key : head.dense_columns) out.put(key, 2);
    for (const std::uint16_t key : head.sparse_columns) out.put(key, 2);
    for (const std::uint32_t pointer : head.column_pointers) {
      out.put(pointer, pointer_bytes(head.sparse_kept()));
    }
    for (const std::uint16_t query : head.row_indices) out.put(query, index_bytes(head.queries));
    out.put_bits(head.dense_keep);
    out.align();
  }
  return bytes;
}

std::size_t mask_bytes(const SparseHead& head) {
  return aligned(8 + 2 * head.keys +
                 head.column_pointers.size() * pointer_bytes(head.sparse_kept()) +
                 head.sparse_kept() * index_bytes(head.queries) + (head.dense_cells() + 7) / 8);
}

std::vector<SparseHead> decode_mask(const std::vector<std::uint8_t>& bytes, std::size_t heads,
                                    std::size_t queries, std::size_t keys) {
  MaskReader in(bytes);
  std::vector<SparseHead> result;
  for (std::size_t i = 0; i < heads; ++i) result.push_back(read_head(in, queries, keys));
  in.finish();
  return result;
}

}  // namespace systole::hw
