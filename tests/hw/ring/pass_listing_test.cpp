#include "hw/ring/pass_listing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "hw/ring/instruction_fields.h"
#include "hw/ring/pass_image.h"
#include "support/random/draws.h"

namespace systole::hw::dfx {
namespace {

/// Words of a line, as far as a comment.
std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Fields of a line by name; a flag has the value "1".
std::map<std::string, std::string> fields_of(const std::vector<std::string>& words) {
  std::map<std::string, std::string> fields;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const bool flag = equals == std::string::npos;
    fields[words[i].substr(0, equals)] = flag ? "1" : words[i].substr(equals + 1);
  }
  return fields;
}

/// The value that has this name, of those from 0 on.
template <typename Enum>
Enum named(const std::string& word, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::string name(name_of(static_cast<Enum>(i)));
    std::replace(name.begin(), name.end(), ' ', '_');
    if (name == word) return static_cast<Enum>(i);
  }
  throw std::invalid_argument(word);
}

/// Sets each field that the line names; what is left in it afterwards is no field.
class FieldReader {
 public:
  explicit FieldReader(std::map<std::string, std::string> fields) : fields_(std::move(fields)) {}

  template <typename Field>
  void operator()(const char* name, Field& field) {
    const auto found = fields_.find(name);
    if (found == fields_.end()) return;
    const std::string& value = found->second;
    if constexpr (std::is_same_v<Field, Phase>) {
      field = named<Phase>(value, kPhases);
    } else if constexpr (std::is_same_v<Field, Second>) {
      field = named<Second>(value, 5);
    } else if constexpr (std::is_same_v<Field, TableFunction>) {
      field = named<TableFunction>(value, kTableFunctions);
    } else if constexpr (std::is_same_v<Field, bool>) {
      field = value == "1";
    } else if constexpr (!std::is_same_v<Field, Opcode>) {
      field = static_cast<Field>(std::stoull(value, nullptr, 0));
    }
    fields_.erase(found);
  }
  [[nodiscard]] bool is_empty() const { return fields_.empty(); }

 private:
  std::map<std::string, std::string> fields_;
};

/// What a listing says.
Pass assemble(const std::string& listing) {
  Pass pass;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    const std::map<std::string, std::string> fields = fields_of(words);
    if (words[0] == "exchange") {
      EXPECT_EQ(words[1], std::to_string(pass.exchanges.size()));
      Exchange& exchange = pass.exchanges.emplace_back();
      exchange.base = static_cast<std::uint32_t>(std::stoul(fields.at("base")));
      exchange.sums = fields.count("sums") != 0;
      std::istringstream bounds(fields.at("first"));
      for (std::string bound; std::getline(bounds, bound, ',');) {
        exchange.first.push_back(static_cast<std::uint32_t>(std::stoul(bound)));
      }
      continue;
    }
    EXPECT_EQ(words[0], std::to_string(pass.instructions.size()));
    Instruction& instruction = pass.instructions.emplace_back();
    instruction.op = named<Opcode>(words[1], kOpcodes);
    FieldReader reader(fields);
    visit_fields(reader, instruction);
    EXPECT_TRUE(reader.is_empty()) << line;
  }
  return pass;
}

/// Each field is empty, or any value that it may have.
class FieldDraws {
 public:
  explicit FieldDraws(std::uint64_t seed) : random_(seed) {}

  template <typename Field>
  void operator()(const char*, Field& field) {
    if (random_() % 3 == 0) return;
    if constexpr (std::is_same_v<Field, Opcode>) {
      field = static_cast<Opcode>(random_() % kOpcodes);
    } else if constexpr (std::is_same_v<Field, Phase>) {
      field = static_cast<Phase>(random_() % kPhases);
    } else if constexpr (std::is_same_v<Field, Second>) {
      field = static_cast<Second>(random_() % 5);
    } else if constexpr (std::is_same_v<Field, TableFunction>) {
      field = static_cast<TableFunction>(random_() % kTableFunctions);
    } else if constexpr (std::is_same_v<Field, bool>) {
      field = random_() % 2 != 0;
    } else {
      field = static_cast<Field>(random_() >> random_() % 64);
    }
  }
  std::uint32_t number(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_() % below);
  }

 private:
  std::mt19937_64 random_;
};

TEST(PassListing, SaysEveryBitOfAPass) {
  const std::uint64_t count = systole::test::draws(2'000);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    FieldDraws draws(seed);
    const std::uint32_t cores = 1 + draws.number(5);
    Pass pass;
    pass.exchanges.resize(draws.number(3));
    for (Exchange& exchange : pass.exchanges) {
      exchange.base = draws.number(1U << 20);
      exchange.sums = draws.number(2) != 0;
      for (std::uint32_t i = 0; i <= cores; ++i) exchange.first.push_back(draws.number(1U << 16));
    }
    pass.instructions.resize(draws.number(6));
    for (Instruction& instruction : pass.instructions) visit_fields(draws, instruction);
    const std::string listing = disassemble(pass);
    const Pass read = assemble(listing);
    ASSERT_EQ(encode_pass(read, cores), encode_pass(pass, cores)) << listing;
    ASSERT_EQ(disassemble(read), listing);
  }
}

TEST(PassListing, IsALineForEach) {
  Pass pass;
  pass.exchanges = {{64, {0, 100, 200}, true}};
  Instruction& scores = pass.instructions.emplace_back();
  scores.op = Opcode::kMaskedMm;
  scores.phase = Phase::kLmHead;
  scores.constant = to_half(0.125);
  scores.weights = {4096, true, false, 1, 2, 3};
  Instruction& sum = pass.instructions.emplace_back();
  sum.second = Second::kScalar;
  sum.rows = 0;
  EXPECT_EQ(disassemble(pass),
            "exchange 0 base=64 sums first=0,100,200\n"
            "0 masked_mm phase=LM_head constant=0x3000 weights=0x1000 in_ddr k_tiles=1 slices=2 "
            "block=3 # constant 0.125\n"
            "1 add phase=embedding second=scalar rows=0\n");
}

// An encoded instruction is its fields, one after the other: each shows at its place and nowhere
// else.
TEST(PassListing, FieldsAreWhereTheEncodingHasThem) {
  const std::vector<InstructionField> fields = instruction_fields();
  const auto encoded = [](const Instruction& instruction) {
    Pass pass;
    pass.instructions = {instruction};
    std::vector<std::uint8_t> bytes = encode_pass(pass, 1);
    bytes.erase(bytes.begin(), bytes.begin() + kPassHeaderBytes);
    return bytes;
  };
  const std::vector<std::uint8_t> empty = encoded({});
  ASSERT_EQ(empty.size(), instruction_bytes());
  std::size_t number = 0, next = 0;
  Instruction instruction;
  visit_fields(
      [&](const char* name, auto& field) {
        ASSERT_EQ(fields[number].name, name);
        ASSERT_EQ(fields[number].offset, next);
        ASSERT_EQ(fields[number].bytes, sizeof field);
        next += sizeof field;
        const auto before = field;
        field = static_cast<std::decay_t<decltype(field)>>(before == decltype(before){} ? 1 : 0);
        const std::vector<std::uint8_t> bytes = encoded(instruction);
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          const bool within = i >= fields[number].offset && i < next;
          ASSERT_TRUE(within || bytes[i] == empty[i]) << name << " byte " << i;
        }
        EXPECT_NE(bytes, empty) << name;
        field = before;
        ++number;
      },
      instruction);
  EXPECT_EQ(number, fields.size());
  EXPECT_EQ(next, empty.size());
}

}  // namespace
}  // namespace systole::hw::dfx
