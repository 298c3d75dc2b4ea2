#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace systole::testbench {

/// Writes transactions in the format FTR (src/ftr/ftr_writer.h of github.com/Minres/LWTR4SC), which
/// SCViewer and Surfer read: CBOR (RFC 8949), an array of tagged chunks, here not compressed. Times
/// are in ps. The time of creation is 0, so that the same run gives the same bytes.
class FtrFile {
 public:
  /// A text of the dictionary, each of which is in the file once.
  using Text = std::uint64_t;
  struct Stream {
    std::uint64_t id;
  };
  struct Generator {
    std::uint64_t id, stream;
  };
  struct Transaction {
    std::uint64_t id, stream;
  };
  /// What is known of a transaction when it ends.
  struct Attribute {
    Text name;
    bool is_text;  ///< `value` is one of the dictionary, else a number
    std::uint64_t value;
  };

  /// `out` outlives the file, which begins at once. Errors stay in the stream.
  explicit FtrFile(std::ostream& out);

  [[nodiscard]] Text text(const std::string& text);
  /// Both before the transactions of the stream.
  [[nodiscard]] Stream add_stream(const std::string& name, const std::string& kind);
  [[nodiscard]] Generator add_generator(const std::string& name, Stream stream);

  /// From `begin` to `end`, in ps.
  Transaction add(Generator generator, std::uint64_t begin, std::uint64_t end,
                  const std::vector<Attribute>& attributes);
  /// From the cause to the effect, from the whole to the part.
  void relate(Text name, Transaction from, Transaction to);

  /// Ends the file; nothing may follow.
  void close();

 private:
  /// Items of CBOR.
  class Items {
   public:
    void head(unsigned major, std::uint64_t value);
    void number(std::uint64_t value) { head(0, value); }
    void array(std::size_t size) { head(4, size); }
    void tag(std::uint64_t tag) { head(6, tag); }
    void text(std::string_view text);
    void bytes(const Items& items);
    void append(const Items& items) { bytes_ += items.bytes_; }
    void open_array() { bytes_ += '\x9f'; }
    void close_array() { bytes_ += '\xff'; }
    [[nodiscard]] const std::string& data() const { return bytes_; }
    void clear() { bytes_.clear(); }

   private:
    std::string bytes_;
  };
  /// Transactions of a stream that are not in the file yet.
  struct Block {
    Items items;
    std::uint64_t begin, end;
  };

  void put(Items& items);
  void flush_texts();
  void flush_directory();
  void flush(std::uint64_t stream, Block& block);
  void flush_relations();

  std::ostream& out_;
  std::map<std::string, Text> texts_;
  std::vector<const std::string*> new_texts_;  ///< in `texts_`, not in the file yet
  Items directory_, relations_;
  std::map<std::uint64_t, Block> blocks_;  ///< by stream
  std::uint64_t ids_ = 0, transactions_ = 0;
};

}  // namespace systole::testbench
