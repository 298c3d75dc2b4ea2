#include "testbench/wave/ftr_file.h"

#include <algorithm>

namespace systole::testbench {
namespace {

/// Tags of the format: of the file, of chunks, and inside them.
constexpr std::uint64_t kSelfDescribed = 55799, kEpoch = 1;
constexpr std::uint64_t kInfoChunk = 6, kTextChunk = 8, kDirectoryChunk = 10, kBlockChunk = 12,
                        kRelationChunk = 14;
constexpr std::uint64_t kStreamTag = 16, kGeneratorTag = 17, kTimesTag = 6, kEndAttributeTag = 9;
/// Kinds of attributes, by their place in the format's list.
constexpr std::uint64_t kUnsignedKind = 3, kTextKind = 10;
constexpr unsigned kNegative = 1, kBytes = 2, kText = 3, kMap = 5;
/// Bytes from which on a chunk is put into the file: what the format's own writer takes.
constexpr std::size_t kChunkBytes = 1U << 16U;

}  // namespace

void FtrFile::Items::head(unsigned major, std::uint64_t value) {
  const auto put = [&](unsigned low, unsigned bytes) {
    bytes_ += static_cast<char>(major << 5U | low);
    for (unsigned i = bytes; i-- > 0;) bytes_ += static_cast<char>(value >> (8 * i));
  };
  if (value < 24) {
    put(static_cast<unsigned>(value), 0);
  } else if (value <= 0xff) {
    put(24, 1);
  } else if (value <= 0xffff) {
    put(25, 2);
  } else if (value <= 0xffffffff) {
    put(26, 4);
  } else {
    put(27, 8);
  }
}

void FtrFile::Items::text(std::string_view text) {
  head(kText, text.size());
  bytes_ += text;
}

void FtrFile::Items::bytes(const Items& items) {
  head(kBytes, items.bytes_.size());
  bytes_ += items.bytes_;
}

FtrFile::FtrFile(std::ostream& out) : out_(out) {
  Items time;
  time.array(2);
  time.head(kNegative, 12 - 1);  // CBOR's -1 - n: 10^-12 s
  time.tag(kEpoch);
  time.number(0);
  Items chunk;
  chunk.tag(kSelfDescribed);
  chunk.open_array();
  chunk.tag(kInfoChunk);
  chunk.bytes(time);
  put(chunk);
  texts_.emplace("", 0);
  new_texts_.push_back(&texts_.begin()->first);
}

FtrFile::Text FtrFile::text(const std::string& text) {
  const auto [found, is_new] = texts_.try_emplace(text, texts_.size());
  if (is_new) new_texts_.push_back(&found->first);
  return found->second;
}

FtrFile::Stream FtrFile::add_stream(const std::string& name, const std::string& kind) {
  directory_.tag(kStreamTag);
  directory_.array(3);
  directory_.number(++ids_);
  directory_.number(text(name));
  directory_.number(text(kind));
  return {ids_};
}

FtrFile::Generator FtrFile::add_generator(const std::string& name, Stream stream) {
  directory_.tag(kGeneratorTag);
  directory_.array(3);
  directory_.number(++ids_);
  directory_.number(text(name));
  directory_.number(stream.id);
  return {ids_, stream.id};
}

FtrFile::Transaction FtrFile::add(Generator generator, std::uint64_t begin, std::uint64_t end,
                                  const std::vector<Attribute>& attributes) {
  const auto [found, is_new] = blocks_.try_emplace(generator.stream, Block{{}, begin, end});
  Block& block = found->second;
  block.begin = std::min(block.begin, begin);
  block.end = std::max(block.end, end);
  Items& items = block.items;
  items.array(1 + attributes.size());
  items.tag(kTimesTag);
  items.array(4);
  for (const std::uint64_t value : {++transactions_, generator.id, begin, end}) {
    items.number(value);
  }
  for (const Attribute& attribute : attributes) {
    items.tag(kEndAttributeTag);
    items.array(3);
    items.number(attribute.name);
    items.number(attribute.is_text ? kTextKind : kUnsignedKind);
    items.number(attribute.value);
  }
  const Transaction added{transactions_, generator.stream};
  if (items.data().size() >= kChunkBytes) {
    flush(generator.stream, block);
    blocks_.erase(found);
  }
  return added;
}

void FtrFile::relate(Text name, Transaction from, Transaction to) {
  relations_.array(5);
  for (const std::uint64_t value : {name, from.id, to.id, from.stream, to.stream}) {
    relations_.number(value);
  }
  if (relations_.data().size() >= kChunkBytes) flush_relations();
}

void FtrFile::close() {
  for (auto& [stream, block] : blocks_) flush(stream, block);
  blocks_.clear();
  flush_relations();
  flush_directory();
  Items end;
  end.close_array();
  put(end);
}

void FtrFile::put(Items& items) {
  out_.write(items.data().data(), static_cast<std::streamsize>(items.data().size()));
  items.clear();
}

void FtrFile::flush_texts() {
  if (new_texts_.empty()) return;
  Items map;
  map.head(kMap, new_texts_.size());
  for (const std::string* text : new_texts_) {
    map.number(texts_.at(*text));
    map.text(*text);
  }
  new_texts_.clear();
  Items chunk;
  chunk.tag(kTextChunk);
  chunk.bytes(map);
  put(chunk);
}

void FtrFile::flush_directory() {
  flush_texts();
  if (directory_.data().empty()) return;
  Items list;
  list.open_array();
  Items chunk;
  chunk.tag(kDirectoryChunk);
  list.append(directory_);
  list.close_array();
  chunk.bytes(list);
  put(chunk);
  directory_.clear();
}

void FtrFile::flush(std::uint64_t stream, Block& block) {
  flush_directory();
  Items list;
  list.open_array();
  list.append(block.items);
  list.close_array();
  Items chunk;
  chunk.tag(kBlockChunk);
  chunk.array(4);
  for (const std::uint64_t value : {stream, block.begin, block.end}) chunk.number(value);
  chunk.bytes(list);
  put(chunk);
}

void FtrFile::flush_relations() {
  if (relations_.data().empty()) return;
  flush_directory();
  Items list;
  list.open_array();
  list.append(relations_);
  list.close_array();
  Items chunk;
  chunk.tag(kRelationChunk);
  chunk.bytes(list);
  put(chunk);
  relations_.clear();
}

}  // namespace systole::testbench
