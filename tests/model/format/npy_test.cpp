#include "model/format/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/model/format/hostile_file.h"
#include "tests/support/input_error.h"
#include "tests/support/npy_bytes.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

using Shape = std::vector<std::size_t>;

/// Two floats, 1 and -2.
const std::string kFloats("\0\0\x80\x3F\0\0\0\xC0", 8);

std::vector<double> all(const Npy& array) { return array.numbers(0, array.element_count()); }

Npy open(const TempDirectory& directory, const std::string& bytes) {
  return Npy::open(directory.write("a.npy", bytes));
}

TEST(Npy, ReadsEveryElementTypeExactly) {
  const TempDirectory directory;
  const auto read = [&](const std::string& type, const std::string& data) {
    return all(open(directory, npy_of(npy_header(type, "(2,)"), data)));
  };
  EXPECT_THAT(read("|b1", std::string("\0\1", 2)), ElementsAre(0, 1));
  EXPECT_THAT(read("<b1", std::string("\0\1", 2)), ElementsAre(0, 1));
  EXPECT_THAT(read("|u1", "\x80\xFF"), ElementsAre(128, 255));
  EXPECT_THAT(read("|i1", "\x80\xFF"), ElementsAre(-128, -1));
  EXPECT_THAT(read("<f2", std::string("\0\x3C\1\0", 4)), ElementsAre(1, 0x1p-24));
  EXPECT_THAT(read("<f4", kFloats), ElementsAre(1, -2));
  EXPECT_THAT(read("<f8", std::string("\1\0\0\0\0\0\xF0\x3F\0\0\0\0\0\0\xF0\x7F", 16)),
              ElementsAre(1 + 0x1p-52, std::numeric_limits<double>::infinity()));
}

TEST(Npy, ReadsEveryFormOfTheHeader) {
  const TempDirectory directory;
  const std::string usual = npy_header("<f4", "(2,)");
  for (const std::string& header :
       {usual, std::string("{\"shape\":(2 ,),\"fortran_order\":False,\"descr\":\"<f4\"}"),
        std::string("{ 'fortran_order' : False , 'descr':'<f4','shape':( 1 , 2 , ) ,}  \t\n ")}) {
    EXPECT_THAT(all(open(directory, npy_of(header, kFloats))), ElementsAre(1, -2)) << header;
  }
  for (const char version : {'\2', '\3'}) {
    std::string bytes("\x93NUMPY", 6);
    bytes += version;
    bytes += std::string("\0", 1) + static_cast<char>(usual.size()) + std::string(3, '\0');
    EXPECT_THAT(all(open(directory, bytes + usual + kFloats)), ElementsAre(1, -2));
  }
}

TEST(Npy, ReadsShapesOfEveryRank) {
  const TempDirectory directory;
  const auto shape = [&](const std::string& text, std::size_t bytes) {
    return open(directory, npy_mask(text, std::string(bytes, '\0'))).shape();
  };
  EXPECT_THAT(shape("()", 1), IsEmpty());
  EXPECT_THAT(shape("(0,)", 0), ElementsAre(0));
  EXPECT_THAT(shape("(3,)", 3), ElementsAre(3));
  EXPECT_THAT(shape("(2, 3, 1, 2)", 12), ElementsAre(2, 3, 1, 2));
  EXPECT_EQ(shape("(" + std::string(32 * 3, ' ') +
                      "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                      "1,1,1,1,1,1,1,1,1)",
                  1)
                .size(),
            32U);
}

TEST(Npy, ReadsAnyRangeOfElementsAndNoneBeyond) {
  const TempDirectory directory;
  const Npy array = open(directory, npy_of(npy_header("<f4", "(2, 1)"), kFloats));
  EXPECT_EQ(array.element_count(), 2U);
  EXPECT_THAT(array.numbers(1, 1), ElementsAre(-2));
  EXPECT_THAT(array.numbers(2, 0), IsEmpty());
  EXPECT_THROW((void)array.numbers(1, 2), std::out_of_range);
  EXPECT_THROW((void)array.numbers(3, 0), std::out_of_range);
  EXPECT_THROW((void)array.numbers(1, std::numeric_limits<std::size_t>::max()), std::out_of_range);
}

TEST(Npy, FlagsAreBoolAndNothingElse) {
  const TempDirectory directory;
  EXPECT_THAT(open(directory, npy_mask("(3,)", std::string("\1\0\1", 3))).flags(),
              ElementsAre(1, 0, 1));
  const Npy two = open(directory, npy_mask("(3,)", std::string("\1\0\2", 3)));
  EXPECT_EQ(input_error_of([&] { (void)two.flags(); }),
            two.path() + ": element 2: byte 2 as bool, expected 0 or 1");
  const Npy bytes = open(directory, npy_of(npy_header("|u1", "(1,)"), "\1"));
  EXPECT_EQ(input_error_of([&] { (void)bytes.flags(); }),
            bytes.path() + ": elements are U8, expected bool");
}

TEST(Npy, WritesWhatItReads) {
  const TempDirectory directory;
  const std::string path = directory.path("b.npy");
  const std::vector<std::uint8_t> flags{0, 1, 7, 0, 0, 1};
  for (const Shape& shape : {Shape{6}, Shape{2, 3}, Shape{1, 6, 1, 1}}) {
    write_npy(path, shape, flags);
    const Npy read = Npy::open(path);
    EXPECT_EQ(read.shape(), shape);
    EXPECT_THAT(read.flags(), ElementsAre(0, 1, 1, 0, 0, 1));
  }
  write_npy(path, {}, std::vector<float>{0.1F});
  EXPECT_THAT(all(Npy::open(path)), ElementsAre(static_cast<double>(0.1F)));
  write_npy(path, {0, 3}, std::vector<float>{});
  EXPECT_EQ(Npy::open(path).shape(), (Shape{0, 3}));
  EXPECT_THROW(write_npy(path, {5}, flags), std::invalid_argument);
  EXPECT_THROW(write_npy(path, {7}, std::vector<float>(6)), std::invalid_argument);
  EXPECT_THROW(write_npy(path, Shape(33, 1), std::vector<float>(1)), std::invalid_argument);
  EXPECT_EQ(Npy::open(path).shape(), (Shape{0, 3}));
}

TEST(Npy, WritesTheBytesThatNumPyWrites) {
  const TempDirectory directory;
  const std::string path = directory.path("b.npy");
  write_npy(path, {1, 2}, std::vector<float>{1, -2});
  std::string expected("\x93NUMPY\x01\0\x76\0", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
  expected.resize(127, ' ');
  EXPECT_EQ(read_file(path), expected + "\n" + kFloats);
}

/// A file of two floats whose header has `entries` between its braces.
std::string with_entries(const std::string& entries) {
  return npy_of("{" + entries + "}\n", kFloats);
}

std::string of_type(const std::string& type) {
  return with_entries("'descr': " + type + ", 'fortran_order': False, 'shape': (2,)");
}

std::string of_shape(const std::string& shape) {
  return with_entries("'descr': '<f4', 'fortran_order': False, 'shape': " + shape);
}

std::vector<HostileFile> hostile_arrays() {
  const std::string good = "'descr': '<f4', 'fortran_order': False, 'shape': (2,)";
  const std::string format_2("\x93NUMPY\x02\0\xFF\xFF\xFF\xFF", 12);
  return {
      {"empty", "", "the file is empty"},
      {"wrong magic", "\x93NUMPZ" + npy_of(good).substr(6), "is no NumPy file"},
      {"a zip of arrays", "PK\x03\x04 is an .npz file", "is no NumPy file"},
      {"magic alone", "\x93NUMPY", "format is unknown"},
      {"half a version", "\x93NUMPY\x01", "format is unknown"},
      {"version 0.0", std::string("\x93NUMPY\0\0\0\0", 10), "format is unknown"},
      {"version 4.0", std::string("\x93NUMPY\x04\0\0\0\0\0", 12), "version 1.0, 2.0 or 3.0"},
      {"version 1.1", "\x93NUMPY\x01\x01\x02{}", "format is unknown"},
      {"no length", std::string("\x93NUMPY\x01\0", 8), "ends before its length"},
      {"half a length", std::string("\x93NUMPY\x02\0\1\0\0", 11), "ends before its length"},
      {"length beyond file", std::string("\x93NUMPY\x01\0\x03\0{}", 12), "the file has only 2"},
      {"huge length", format_2 + "{}", "4294967295 bytes, the file has only 2"},
      {"length of zero", npy_of("", kFloats), "byte 10: expected '{'"},
      {"a list", npy_of("[1, 2]"), "byte 10: expected '{'"},
      {"a call", npy_of("dict(descr='<f4')"), "expected '{'"},
      {"NUL bytes", npy_of(std::string(64, '\0')), "expected '{'"},
      {"no end", npy_of("{" + good), "expected ',' or '}'"},
      {"text after", npy_of("{" + good + "} x", kFloats), "expected only blanks"},
      {"no entries", with_entries(""), "key 'descr' is missing"},
      {"no order", with_entries("'descr': '<f4', 'shape': (2,)"), "'fortran_order' is missing"},
      {"no shape", with_entries("'descr': '<f4', 'fortran_order': False"), "'shape' is missing"},
      {"twice", with_entries(good + ", 'shape': (2,)"), "key 'shape' comes twice"},
      {"unknown key", with_entries(good + ", 'strides': (4,)"), "key 'strides', expected descr"},
      {"control characters", with_entries("'\x1b[31m\n': 1"), "key '\\x1b[31m\\x0a'"},
      {"long key", with_entries("'" + std::string(5000, 'k') + "': 1"), "expected descr"},
      {"bare key", with_entries("descr: '<f4'"), "expected a key in quotes"},
      {"open quote", with_entries("'descr: (2,)"), "found no end"},
      {"no colon", with_entries("'descr' '<f4'"), "expected ':'"},
      {"no comma", with_entries("'descr': '<f4' 'shape': (2,)"), "expected ',' or '}'"},
      {"two commas", with_entries("'descr': '<f4',, 'shape': (2,)"), "expected a key"},
      {"big-endian", of_type("'>f4'"), "element type '>f4' is big-endian, expected little-endian"},
      {"objects", of_type("'|O'"), "element type '|O', expected bool (|b1)"},
      {"strings", of_type("'<U8'"), "element type '<U8'"},
      {"complex", of_type("'<c8'"), "element type '<c8'"},
      {"wide integers", of_type("'<i8'"), "element type '<i8'"},
      {"no order of bytes", of_type("'f4'"), "element type 'f4'"},
      {"empty type", of_type("''"), "element type ''"},
      {"fields", of_type("[('x', '<f4')]"), "elements have fields"},
      {"type without quotes", of_type("4"), "expected an element type in quotes"},
      {"Fortran order", with_entries("'descr': '<f4', 'fortran_order': True, 'shape': (2,)"),
       "fortran_order is True, expected False"},
      {"order 0", with_entries("'descr': '<f4', 'fortran_order': 0, 'shape': (2,)"),
       "expected True or False"},
      {"shape is a number", of_shape("2"), "expected '(' to begin the shape"},
      {"shape is a list", of_shape("[2]"), "expected '('"},
      {"no comma in a rank of 1", of_shape("(2)"), "expected ',' after the only dimension"},
      {"negative", of_shape("(-2,)"), "expected a decimal number"},
      {"fraction", of_shape("(2.0,)"), "expected ',' after the only dimension"},
      {"hexadecimal", of_shape("(0x2, 1)"), "expected ',' after the only dimension"},
      {"comma alone", of_shape("(,)"), "expected a decimal number"},
      {"open shape", npy_of("{'shape': (2,"), "expected a decimal number"},
      {"above 64 bits", of_shape("(18446744073709551616,)"), "dimension is out of range"},
      {"overflow", of_shape("(4294967296, 4294967296)"), "4294967296] is out of range"},
      {"product wraps to the size", of_shape("(4611686018427387906,)"), "] is out of range"},
      {"zero beside an overflow", of_shape("(0, 4294967296, 4294967296)"),
       "8 bytes of elements, expected 0"},
      {"33 dimensions",
       of_shape("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                "1,2)"),
       "at most 32 dimensions"},
      {"shape too small", of_shape("(1,)"), "8 bytes of elements, expected 4 for [1]"},
      {"shape too large", of_shape("(2, 2)"), "8 bytes of elements, expected 16 for [2, 2]"},
      {"trailing byte", npy_of("{" + good + "}", kFloats + "x"), "9 bytes of elements, expected 8"},
      {"truncated", npy_of("{" + good + "}", kFloats.substr(1)), "7 bytes of elements, expected 8"},
      {"no elements", npy_of("{" + good + "}"), "0 bytes of elements, expected 8"},
  };
}

TEST(NpyHostile, EveryBadFileIsRefusedWithOneClearLine) {
  const TempDirectory directory;
  for (const HostileFile& file : hostile_arrays()) {
    const std::string path = directory.write("hostile.npy", file.bytes);
    const std::string error = input_error_of([&] { Npy::open(path); });
    EXPECT_THAT(error, AllOf(StartsWith(path + ": "), HasSubstr(file.hint), Not(HasSubstr("\n"))))
        << file.name;
    EXPECT_LT(error.size(), path.size() + 200) << file.name;
  }
}

TEST(NpyHostile, EveryTruncationIsRefused) {
  const TempDirectory directory;
  const std::string bytes = npy_of(npy_header("<f4", "(1, 2)"), kFloats);
  EXPECT_NO_THROW(open(directory, bytes));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(open(directory, bytes.substr(0, length)), hw::InputError) << length;
  }
}

TEST(NpyHostile, DamagedHeadersAreRefusedOrValid) {
  constexpr int kRounds = 5000;  // script/fuzz draws millions
  const std::string bytes = npy_of(npy_header("<f4", "(1, 2)"), kFloats);
  const std::string interesting("{}[]()\"',:<>|-. 0123456789bfiuTF\n\0\xFF", 36);
  std::mt19937 random(20240917);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  int accepted = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string damaged = bytes;
    for (std::size_t i = 1 + below(3); i > 0; --i) {
      damaged[below(bytes.size() - kFloats.size())] = interesting[below(interesting.size())];
    }
    const std::string error = input_error_of([&] {
      const NpyHeader header = parse_npy_header(damaged, "a.npy");
      EXPECT_EQ(tensor_bytes(header.dtype, header.shape), damaged.size() - header.data_begin);
      ++accepted;
    });
    if (error == "no error") continue;
    EXPECT_THAT(error, AllOf(StartsWith("a.npy: "), Not(HasSubstr("\n")))) << round;
  }
  EXPECT_GT(accepted, kRounds / 1000);
  EXPECT_LT(accepted, kRounds / 2);
}

}  // namespace
}  // namespace systole::model
