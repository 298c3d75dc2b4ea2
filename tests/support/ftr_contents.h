#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace systole::test {

/// An item of CBOR (RFC 8949), preceded by its tag.
struct CborItem {
  unsigned major = 0;
  std::uint64_t value = 0, tag = 0;
  std::string bytes;            ///< of a byte or text string
  std::vector<CborItem> items;  ///< of an array; of a map, keys and values in turns
};

class CborReader {
 public:
  explicit CborReader(std::string bytes) : bytes_(std::move(bytes)) {}

  /// The only item of the bytes.
  CborItem read() {
    CborItem item = next();
    EXPECT_EQ(at_, bytes_.size()) << "bytes after the end";
    return item;
  }

 private:
  std::uint8_t byte() { return static_cast<std::uint8_t>(bytes_.at(at_++)); }

  CborItem next() {
    std::uint64_t tag = 0;
    for (;;) {
      const std::uint8_t head = byte();
      CborItem item;
      item.major = head >> 5U;
      item.tag = tag;
      const unsigned low = head & 31U;
      const bool open = low == 31;
      if (low > 27 && !open) throw std::runtime_error("CBOR: bad head");
      item.value = low < 24 ? low : 0;
      for (unsigned i = 0; low >= 24 && !open && i < 1U << (low - 24); ++i) {
        item.value = item.value << 8U | byte();
      }
      if (item.major == 6) {
        tag = item.value;
        continue;
      }
      if (item.major == 2 || item.major == 3) {
        if (item.value > bytes_.size() - at_) throw std::runtime_error("CBOR: cut");
        item.bytes = bytes_.substr(at_, item.value);
        at_ += item.value;
      }
      const std::uint64_t count = item.major == 4   ? item.value
                                  : item.major == 5 ? 2 * item.value
                                                    : 0;
      for (std::uint64_t i = 0; open ? !at_break() : i < count; ++i) item.items.push_back(next());
      return item;
    }
  }
  bool at_break() {
    if (static_cast<std::uint8_t>(bytes_.at(at_)) != 0xff) return false;
    ++at_;
    return true;
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

struct FtrTransaction {
  std::string stream, generator;
  std::uint64_t begin = 0, end = 0;
  std::map<std::string, std::string> attributes;
};

/// A reader made from the description of the format, not from the writer.
struct FtrContents {
  explicit FtrContents(const std::string& bytes) {
    const CborItem file = CborReader(bytes).read();
    EXPECT_EQ(file.tag, 55799U);
    for (const CborItem& chunk : file.items) take(chunk);
    for (const auto& [transaction, stream] : ends_) {
      EXPECT_EQ(transactions.at(transaction).stream, streams.at(stream));
    }
  }

  std::map<std::uint64_t, std::string> texts;
  std::map<std::uint64_t, std::pair<std::string, std::uint64_t>> generators;
  std::map<std::uint64_t, std::string> streams;
  std::map<std::uint64_t, FtrTransaction> transactions;
  using Relation = std::tuple<std::string, std::uint64_t, std::uint64_t>;
  std::vector<Relation> relations;

 private:
  void take(const CborItem& chunk) {
    const std::string& bytes = chunk.tag == 12 ? chunk.items.at(3).bytes : chunk.bytes;
    const CborItem content = CborReader(bytes).read();
    if (chunk.tag == 6) {
      EXPECT_EQ(content.items.at(0).major, 1U);
      EXPECT_EQ(content.items.at(0).value, 11U);  // -12
    } else if (chunk.tag == 8) {
      for (std::size_t i = 0; i < content.items.size(); i += 2) {
        texts[content.items[i].value] = content.items.at(i + 1).bytes;
      }
    } else if (chunk.tag == 10) {
      for (const CborItem& item : content.items) {
        const std::string name = texts.at(item.items.at(1).value);
        if (item.tag == 16) {
          streams[item.items[0].value] = name;
        } else {
          EXPECT_EQ(item.tag, 17U);
          EXPECT_EQ(streams.count(item.items.at(2).value), 1U);
          generators[item.items[0].value] = {name, item.items.at(2).value};
        }
      }
    } else if (chunk.tag == 12) {
      for (const CborItem& item : content.items) take_transaction(chunk, item);
    } else if (chunk.tag == 14) {
      for (const CborItem& item : content.items) {
        ASSERT_EQ(item.items.size(), 5U);
        const auto value = [&](std::size_t i) { return item.items[i].value; };
        relations.emplace_back(texts.at(value(0)), value(1), value(2));
        // Blocks of transactions may follow, so the streams are compared at the end.
        ends_.push_back({value(1), value(3)});
        ends_.push_back({value(2), value(4)});
      }
    } else {
      ADD_FAILURE() << "chunk with tag " << chunk.tag;
    }
  }

  void take_transaction(const CborItem& chunk, const CborItem& item) {
    const CborItem& times = item.items.at(0);
    EXPECT_EQ(times.tag, 6U);
    const auto& [generator, stream] = generators.at(times.items.at(1).value);
    EXPECT_EQ(stream, chunk.items[0].value);
    FtrTransaction transaction{
        streams.at(stream), generator, times.items.at(2).value, times.items.at(3).value, {}};
    EXPECT_GE(transaction.begin, chunk.items[1].value);
    EXPECT_LE(transaction.end, chunk.items[2].value);
    for (std::size_t i = 1; i < item.items.size(); ++i) {
      const CborItem& attribute = item.items[i];
      EXPECT_EQ(attribute.tag, 9U);
      const std::uint64_t value = attribute.items.at(2).value;
      const bool text = attribute.items[1].value == 10;
      EXPECT_TRUE(text || attribute.items[1].value == 3);
      transaction.attributes[texts.at(attribute.items[0].value)] =
          text ? texts.at(value) : std::to_string(value);
    }
    EXPECT_TRUE(transactions.emplace(times.items[0].value, std::move(transaction)).second);
  }

  std::vector<std::pair<std::uint64_t, std::uint64_t>> ends_;
};

inline std::uint64_t number(const FtrTransaction& transaction, const std::string& name) {
  return std::stoull(transaction.attributes.at(name));
}

}  // namespace systole::test
