#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"
#include "support/random/draws.h"
#include "tests/model/format/hostile_file.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string length_field(std::uint64_t length) {
  return {reinterpret_cast<const char*>(&length), sizeof length};
}

/// A file with that header and `data_bytes` bytes of data.
std::string file_with(const std::string& header, std::size_t data_bytes = 0) {
  return length_field(header.size()) + header + std::string(data_bytes, 'd');
}

/// A file with a tensor 't' of those fields, and four bytes of data.
std::string tensor_with(const std::string& fields) {
  return file_with("{\"t\":{" + fields + "}}", 4);
}

std::string tensor_of_shape(const std::string& shape) {
  return tensor_with(R"("dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,4])");
}

std::string tensor_of_offsets(const std::string& offsets) {
  return tensor_with(R"("dtype":"F32","shape":[1],"data_offsets":)" + offsets);
}

/// Two tensors of four bytes each in `data_bytes` bytes of data, 'a' at 0.
std::string second_tensor_at(const std::string& offsets, std::size_t data_bytes) {
  return file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                   R"("b":{"dtype":"F32","shape":[1],"data_offsets":)" +
                       offsets + "}}",
                   data_bytes);
}

std::string nested(std::size_t depth) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += R"({"a":)";
  return text;
}

std::vector<HostileFile> hostile_tensors() {
  const std::string good = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  const std::string tensor = "{" + good + "}";
  return {
      {"empty", "", "the file is empty"},
      {"seven bytes", std::string(7, '\0'), "7 bytes, expected at least the 8"},
      {"zero length", length_field(0) + "{}", "header length is 0"},
      {"length beyond file", length_field(3) + "{}", "more than the 2 bytes that follow"},
      {"huge length", length_field(~std::uint64_t{0}) + "{}", "above 100000000"},
      {"length just above cap", length_field(100'000'001) + "{}", "above 100000000"},
      {"a zip file", "PK\x03\x04 is a zip file", "above 100000000"},
      {"not JSON", file_with("{nonsense}"), "header byte 3: not valid JSON: syntax error"},
      {"unfinished JSON", file_with("{\"t\":{"), "not valid JSON"},
      {"JSON array", file_with("[1, 2]"), "header byte 1: expected '{'"},
      {"JSON number", file_with("12345678"), "header byte 1: expected '{'"},
      {"leading blank", file_with(" {}"), "header byte 1: expected '{'"},
      {"two objects", file_with("{}{}"), "header byte 3: not valid JSON"},
      {"hidden behind a zero", file_with(std::string("{}\0junk", 7)), "byte 3: a zero byte"},
      {"comment", file_with("{/* */}"), "not valid JSON"},
      {"trailing comma", file_with("{\"t\":" + tensor + ",}", 4), "not valid JSON"},
      {"bad UTF-8 in a name", file_with("{\"\xC3\x28\":" + tensor + "}", 4), "ill-formed UTF-8"},
      {"overlong UTF-8", file_with("{\"\xC0\xAF\":" + tensor + "}", 4), "ill-formed UTF-8"},
      {"lone surrogate", file_with(R"({"\ud800":)" + tensor + "}", 4), "surrogate"},
      {"endless number", file_with(R"({"t":{"shape":[)" + std::string(100'000, '9')),
       "number overflow"},
      {"number overflow", tensor_of_shape("[1e999]"), "not valid JSON"},
      {"deep objects", file_with(nested(1'000'000)), "unknown key 'a'"},
      {"deep arrays", file_with("{\"t\":" + std::string(1'000'000, '[')), "an array"},
      {"deep in a shape", tensor_of_shape(std::string(1'000'000, '[')),
       "'shape' contains an array"},
      {"duplicate tensor", file_with("{\"t\":" + tensor + ",\"t\":" + tensor + "}", 4),
       "header: duplicate key 't'"},
      {"duplicate field", tensor_with(good + R"(,"shape":[1])"), "duplicate key 'shape'"},
      {"duplicate dtype", tensor_with(good + R"(,"dtype":"F32")"), "duplicate key 'dtype'"},
      {"duplicate offsets", tensor_with(good + R"(,"data_offsets":[0,4])"),
       "duplicate key 'data_offsets'"},
      {"duplicate metadata key", file_with(R"({"__metadata__":{"k":"1","k":"2"}})"),
       "metadata: duplicate key 'k'"},
      {"duplicate metadata", file_with(R"({"__metadata__":{},"__metadata__":{}})"),
       "duplicate key '__metadata__'"},
      {"no dtype", tensor_with(R"("shape":[1],"data_offsets":[0,4])"), "'dtype' is missing"},
      {"no shape", tensor_with(R"("dtype":"F32","data_offsets":[0,4])"), "'shape' is missing"},
      {"no offsets", tensor_with(R"("dtype":"F32","shape":[1])"), "'data_offsets' is missing"},
      {"no fields", tensor_with(""), "tensor 't': 'dtype' is missing"},
      {"unknown field", tensor_with(good + R"(,"strides":[1])"), "unknown key 'strides'"},
      {"entry is null", file_with(R"({"t":null})"), "the entry is null"},
      {"entry is an array", file_with(R"({"t":[]})"), "the entry is an array"},
      {"entry is a string", file_with(R"({"t":"F32"})"), "the entry is a string"},
      {"dtype is a number", tensor_with(R"("dtype":32)"), "'dtype' is a number, expected a string"},
      {"dtype is an object", tensor_with(R"("dtype":{})"), "'dtype' is an object"},
      {"unknown dtype", tensor_with(R"("dtype":"F8_E4M3")"), "unsupported dtype 'F8_E4M3'"},
      {"dtype in lower case", tensor_with(R"("dtype":"f32")"), "unsupported dtype 'f32'"},
      {"shape is a number", tensor_of_shape("1"), "'shape' is a number, expected an array"},
      {"shape is null", tensor_of_shape("null"), "'shape' is null"},
      {"shape of strings", tensor_of_shape(R"(["1"])"), "'shape' contains a string"},
      {"shape of booleans", tensor_of_shape("[true]"), "'shape' contains a boolean"},
      {"negative extent", tensor_of_shape("[-1]"), "a negative number"},
      {"fractional extent", tensor_of_shape("[1.5]"), "fractional or too large"},
      {"float extent", tensor_of_shape("[1.0]"), "fractional or too large"},
      {"extent above 64 bits", tensor_of_shape("[18446744073709551616]"), "too large"},
      {"product overflow", tensor_of_shape("[4294967296, 4294967296]"), "] is too large"},
      {"product wraps to the size", tensor_of_shape("[4611686018427387905]"), "] is too large"},
      {"nine dimensions", tensor_of_shape("[1,1,1,1,1,1,1,1,1]"), "more than 8 numbers"},
      {"offsets are a string", tensor_of_offsets("\"0,4\""), "'data_offsets' is a string"},
      {"one offset", tensor_of_offsets("[4]"), "must have two numbers"},
      {"three offsets", tensor_of_offsets("[0,2,4]"), "more than 2 numbers"},
      {"negative offset", tensor_of_offsets("[-4,0]"), "a negative number"},
      {"fractional offset", tensor_of_offsets("[0,4.5]"), "fractional or too large"},
      {"reversed offsets", tensor_of_offsets("[4,0]"), "reversed: begin 4 > end 0"},
      {"size mismatch", tensor_of_offsets("[0,3]"), "take 4 bytes, 'data_offsets' span 3"},
      {"beyond the file", tensor_of_offsets("[4,8]"), "data end at 8, beyond the 4 data bytes"},
      {"offset near 2^64", tensor_of_offsets("[18446744073709551611,18446744073709551615]"),
       "beyond the 4 data bytes"},
      {"overlap", second_tensor_at("[2,6]", 6), "tensor 'b': data overlap another"},
      {"same data twice", second_tensor_at("[0,4]", 4), "data overlap another"},
      {"hole", second_tensor_at("[5,9]", 9), "hole of 1 bytes before them"},
      {"truncated data", second_tensor_at("[4,8]", 7), "beyond the 7 data bytes"},
      {"trailing bytes", second_tensor_at("[4,8]", 10), "data: 2 trailing bytes"},
      {"data without tensors", file_with("{}", 1), "data: 1 trailing bytes"},
      {"empty name", file_with("{\"\":" + tensor + "}", 4), "the name is empty"},
      {"control characters", file_with(R"({"a\u0007\n":)" + tensor + "}", 4), "'a\\x07\\x0a'"},
      {"raw control character", file_with("{\"a\x07\":" + tensor + "}", 4), "not valid JSON"},
      {"terminal control", file_with(R"({"\u009b2J":)" + tensor + "}", 4), "control characters"},
      {"metadata is a list", file_with(R"({"__metadata__":[]})"), "the entry is an array"},
      {"metadata of numbers", file_with(R"({"__metadata__":{"k":1}})"), "key 'k' has a number"},
      {"metadata of objects", file_with(R"({"__metadata__":{"k":{}}})"), "key 'k' has an object"},
      {"metadata of null", file_with(R"({"__metadata__":{"k":null}})"), "key 'k' has null"},
  };
}

TEST(SafetensorsHostile, EveryBadFileIsRefusedWithOneClearLine) {
  const TempDirectory directory;
  for (const HostileFile& file : hostile_tensors()) {
    const std::string path = directory.write("hostile.safetensors", file.bytes);
    const std::string error = input_error_of([&] { Safetensors::open(path); });
    EXPECT_THAT(error, AllOf(StartsWith(path + ": "), HasSubstr(file.hint), Not(HasSubstr("\n"))))
        << file.name;
    EXPECT_LT(error.size(), path.size() + 300) << file.name;
  }
}

TEST(SafetensorsHostile, PathsThatAreNoFilesAreRefused) {
  const TempDirectory directory;
  const auto error_of = [](const std::string& path) {
    return input_error_of([&] { Safetensors::open(path); });
  };
  const std::string pipe = directory.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of(directory.path("none")),
            directory.path("none") + ": cannot read: no such file");
  EXPECT_THAT(error_of(directory.path()), HasSubstr("is a directory"));
  EXPECT_THAT(error_of(pipe), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of("/dev/zero"), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of(""), HasSubstr("no such file"));
  EXPECT_THAT(error_of(std::string(5000, 'n')), HasSubstr("File name too long"));
  EXPECT_THAT(error_of("two\nlines"), AllOf(HasSubstr("two\\x0alines"), Not(HasSubstr("\n"))));
}

TEST(SafetensorsHostile, EveryTruncationIsRefused) {
  const TempDirectory directory;
  const std::string bytes = second_tensor_at("[4,8]", 8);
  EXPECT_NO_THROW(Safetensors::open(directory.write("whole", bytes)));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::string path = directory.write("cut", bytes.substr(0, length));
    EXPECT_THROW(Safetensors::open(path), hw::InputError) << length;
  }
}

/// Reads all that is in the file and writes it to `path`.
void copy_through_library(const Safetensors& file, const std::string& path) {
  std::vector<TensorData> tensors;
  for (const std::string& name : file.names()) {
    const TensorView& view = file.tensor(name);
    tensors.push_back({name, view.dtype, view.shape, {view.data, view.data + view.bytes}});
  }
  write_safetensors(path, tensors, file.metadata());
}

/// Damages `bytes` in one of the ways in which files get damaged.
std::string damaged(std::string bytes, std::size_t header_end, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return random() % limit; };
  const char interesting[] = "{}[]\",:-.0123456789eE\\u\0\xFF";
  switch (below(5)) {
    case 0:
      bytes.resize(below(bytes.size()));
      break;
    case 1:
      bytes.erase(below(header_end), 1 + below(4));
      break;
    case 2:
      bytes.insert(below(header_end), 1, interesting[below(sizeof interesting)]);
      break;
    case 3:
      bytes[below(bytes.size())] ^= static_cast<char>(1U << below(8));
      break;
    default:
      for (std::size_t i = 1 + below(3); i > 0; --i) {
        bytes[below(header_end)] = interesting[below(sizeof interesting)];
      }
  }
  return bytes;
}

TEST(SafetensorsHostile, DamagedFilesAreRefusedOrValid) {
  constexpr int kRounds = test::draws(500);  // script/fuzz draws millions
  const TempDirectory directory;
  const std::string original = directory.path("original");
  write_safetensors(original,
                    {make_tensor("f", FileDtype::kF16, {3}, std::vector<std::uint16_t>{1, 2, 3}),
                     make_tensor("i", FileDtype::kI8, {2, 2}, std::vector<std::int8_t>{1, 2, 3, 4}),
                     make_tensor("s", FileDtype::kI32, {}, std::vector<std::int32_t>{1 << 30})},
                    {{"note", "text"}});
  const std::string bytes = read_file(original);
  const std::size_t header_end = bytes.size() - 14;
  std::mt19937 random(20240917);
  int refused = 0;
  int accepted = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string path = directory.write("damaged", damaged(bytes, header_end, random));
    const std::string error = input_error_of([&] {
      const Safetensors file = Safetensors::open(path);
      copy_through_library(file, directory.path("copy"));
      const Safetensors copy = Safetensors::open(directory.path("copy"));
      EXPECT_EQ(copy.names(), file.names()) << round;
      EXPECT_EQ(copy.metadata(), file.metadata()) << round;
      for (const std::string& name : file.names()) {
        EXPECT_EQ(shape_text(copy.tensor(name).shape), shape_text(file.tensor(name).shape));
      }
      ++accepted;
    });
    if (error == "no error") continue;
    ++refused;
    EXPECT_THAT(error, AllOf(StartsWith(path + ": "), Not(HasSubstr("\n")))) << round;
  }
  EXPECT_EQ(refused + accepted, kRounds);
  EXPECT_GT(refused, kRounds / 2);
  EXPECT_GT(accepted, kRounds / 100);
}

}  // namespace
}  // namespace systole::model
