#include "model/format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/format/safetensors_writer.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_directory.h"

namespace systole::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

template <typename T>
std::vector<T> extremes() {
  return {std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max(), T{0}, T{1}, T{42}, T{7}};
}

/// One tensor of each element type, all [2, 3] and named like the type.
std::vector<TensorData> one_of_each() {
  const std::vector<std::size_t> shape = {2, 3};
  return {make_tensor("BOOL", FileDtype::kBool, shape, std::vector<std::uint8_t>{0, 1, 1, 0, 0, 1}),
          make_tensor("U8", FileDtype::kU8, shape, extremes<std::uint8_t>()),
          make_tensor("I8", FileDtype::kI8, shape, extremes<std::int8_t>()),
          make_tensor("U16", FileDtype::kU16, shape, extremes<std::uint16_t>()),
          make_tensor("I16", FileDtype::kI16, shape, extremes<std::int16_t>()),
          make_tensor("F16", FileDtype::kF16, shape, extremes<std::uint16_t>()),
          make_tensor("BF16", FileDtype::kBf16, shape, extremes<std::uint16_t>()),
          make_tensor("U32", FileDtype::kU32, shape, extremes<std::uint32_t>()),
          make_tensor("I32", FileDtype::kI32, shape, extremes<std::int32_t>()),
          make_tensor("F32", FileDtype::kF32, shape, extremes<float>()),
          make_tensor("U64", FileDtype::kU64, shape, extremes<std::uint64_t>()),
          make_tensor("I64", FileDtype::kI64, shape, extremes<std::int64_t>()),
          make_tensor("F64", FileDtype::kF64, shape, extremes<double>())};
}

class SafetensorsTest : public testing::Test {
 protected:
  Safetensors written(const std::vector<TensorData>& tensors,
                      const std::map<std::string, std::string>& metadata = {}) const {
    write_safetensors(path_, tensors, metadata);
    return Safetensors::open(path_);
  }

  TempDirectory directory_;
  std::string path_ = directory_.path("model.safetensors");
};

TEST_F(SafetensorsTest, EveryTypeComesBackAsWritten) {
  const std::vector<TensorData> tensors = one_of_each();
  const Safetensors file = written(tensors);
  EXPECT_EQ(file.path(), path_);
  EXPECT_EQ(file.names().size(), tensors.size());
  for (const TensorData& tensor : tensors) {
    const TensorView& view = file.tensor(tensor.name);
    EXPECT_EQ(dtype_name(view.dtype), tensor.name);
    EXPECT_THAT(view.shape, ElementsAre(2, 3));
    EXPECT_EQ(view.element_count(), 6U);
    EXPECT_EQ(std::vector<std::byte>(view.data, view.data + view.bytes), tensor.data);
  }
}

TEST_F(SafetensorsTest, CopyTakesExactlyTheTypeOfTheTensor) {
  const Safetensors file = written(one_of_each());
  EXPECT_EQ(file.copy<std::int8_t>("I8"), extremes<std::int8_t>());
  EXPECT_EQ(file.copy<std::uint8_t>("U8"), extremes<std::uint8_t>());
  EXPECT_THAT(file.copy<std::uint8_t>("BOOL"), ElementsAre(0, 1, 1, 0, 0, 1));
  EXPECT_EQ(file.copy<std::int16_t>("I16"), extremes<std::int16_t>());
  for (const char* name : {"U16", "F16", "BF16"}) {
    EXPECT_EQ(file.copy<std::uint16_t>(name), extremes<std::uint16_t>()) << name;
  }
  EXPECT_EQ(file.copy<std::uint32_t>("U32"), extremes<std::uint32_t>());
  EXPECT_EQ(file.copy<std::int32_t>("I32"), extremes<std::int32_t>());
  EXPECT_EQ(file.copy<std::uint64_t>("U64"), extremes<std::uint64_t>());
  EXPECT_EQ(file.copy<std::int64_t>("I64"), extremes<std::int64_t>());
  EXPECT_EQ(file.copy<float>("F32"), extremes<float>());
  EXPECT_EQ(file.copy<double>("F64"), extremes<double>());
  EXPECT_EQ(input_error_of([&] { file.copy<float>("F16"); }),
            path_ + ": tensor 'F16': dtype is F16, expected F32");
  EXPECT_EQ(input_error_of([&] { file.copy<std::uint16_t>("I16"); }),
            path_ + ": tensor 'I16': dtype is I16, expected U16 or F16 or BF16");
}

TEST_F(SafetensorsTest, AsInt32WidensTheIntegerTypes) {
  const Safetensors file = written(one_of_each());
  EXPECT_THAT(file.as_int32("I8"), ElementsAre(-128, 127, 0, 1, 42, 7));
  EXPECT_THAT(file.as_int32("U8"), ElementsAre(0, 255, 0, 1, 42, 7));
  EXPECT_THAT(file.as_int32("I16"), ElementsAre(-32768, 32767, 0, 1, 42, 7));
  EXPECT_EQ(file.as_int32("I32"), extremes<std::int32_t>());
  for (const char* name : {"BOOL", "U16", "F16", "BF16", "U32", "F32", "U64", "I64", "F64"}) {
    EXPECT_THAT(input_error_of([&] { file.as_int32(name); }),
                HasSubstr("expected I8 or U8 or I16 or I32"))
        << name;
  }
}

TEST_F(SafetensorsTest, AsFloatConvertsTheFloatTypes) {
  const std::vector<std::uint16_t> f16 = {0x3C00, 0x0001, 0xFC00};
  const std::vector<std::uint16_t> bf16 = {0x3F80, 0x0001, 0xFF80};
  const float infinity = std::numeric_limits<float>::infinity();
  const Safetensors file =
      written({make_tensor("f16", FileDtype::kF16, {3}, f16),
               make_tensor("bf16", FileDtype::kBf16, {3}, bf16),
               make_tensor("f32", FileDtype::kF32, {3}, std::vector<float>{0.1F, 1e-45F, infinity}),
               make_tensor("f64", FileDtype::kF64, {3}, std::vector<double>{0.1, 1e-46, -infinity}),
               make_tensor("i8", FileDtype::kI8, {1}, std::vector<std::int8_t>{1})});
  EXPECT_THAT(file.as_float("f16"), ElementsAre(1.0F, 0x1p-24F, -infinity));
  EXPECT_THAT(file.as_float("bf16"), ElementsAre(1.0F, 0x1p-133F, -infinity));
  EXPECT_THAT(file.as_float("f32"), ElementsAre(0.1F, 1e-45F, infinity));
  EXPECT_THAT(file.as_float("f64"), ElementsAre(0.1F, 0.0F, -infinity));
  EXPECT_EQ(input_error_of([&] { file.as_float("i8"); }),
            path_ + ": tensor 'i8': dtype is I8, expected F32 or F16 or BF16 or F64");
}

TEST_F(SafetensorsTest, F64BeyondTheRangeOfFloatIsRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double float_max = std::numeric_limits<float>::max();
  const Safetensors file =
      written({make_tensor("fits", FileDtype::kF64, {2}, std::vector<double>{nan, float_max}),
               make_tensor("huge", FileDtype::kF64, {2}, std::vector<double>{1.0, -1e39})});
  EXPECT_TRUE(std::isnan(file.as_float("fits")[0]));
  EXPECT_EQ(file.as_float("fits")[1], std::numeric_limits<float>::max());
  EXPECT_EQ(input_error_of([&] { file.as_float("huge"); }),
            path_ + ": tensor 'huge': value -1e+39 is beyond the range of a 32-bit float");
}

TEST_F(SafetensorsTest, UnalignedDataAreReadCorrectly) {
  const std::vector<std::int32_t> values = {1, -2, 2'000'000'000};
  const std::vector<std::int8_t> one = {5};
  const Safetensors file = written(
      {make_tensor("a", FileDtype::kI8, {1}, one), make_tensor("b", FileDtype::kI32, {3}, values)});
  EXPECT_NE(reinterpret_cast<std::uintptr_t>(file.tensor("b").data) % alignof(std::int32_t), 0U);
  EXPECT_EQ(file.copy<std::int32_t>("b"), values);
}

TEST_F(SafetensorsTest, ScalarsAndEmptyTensors) {
  const Safetensors file =
      written({make_tensor("empty", FileDtype::kF32, {3, 0}, std::vector<float>{}),
               make_tensor("scalar", FileDtype::kF32, {}, std::vector<float>{2.5F})});
  EXPECT_THAT(file.as_float("empty"), IsEmpty());
  EXPECT_EQ(file.tensor("empty").element_count(), 0U);
  EXPECT_THAT(file.tensor("scalar").shape, IsEmpty());
  EXPECT_THAT(file.as_float("scalar"), ElementsAre(2.5F));
}

TEST_F(SafetensorsTest, NamesAndMetadataComeBack) {
  const std::string name = "w\xC3\xA4rme \"quoted\\\"";
  const std::vector<std::int8_t> one = {1};
  const std::map<std::string, std::string> metadata = {{"", "empty key"}, {"note", "two\nlines"}};
  const Safetensors file = written(
      {make_tensor("z", FileDtype::kI8, {1}, one), make_tensor(name, FileDtype::kI8, {1}, one),
       make_tensor("B", FileDtype::kI8, {1}, one)},
      metadata);
  EXPECT_THAT(file.names(), ElementsAre("B", name, "z"));
  EXPECT_EQ(file.metadata(), metadata);
  EXPECT_TRUE(file.has(name));
  EXPECT_FALSE(file.has("w"));
  EXPECT_THAT(read_file(path_), HasSubstr("\"w\\u00e4rme ")) << "the header is ASCII";
  EXPECT_THAT(written({}).names(), IsEmpty());
}

TEST_F(SafetensorsTest, ExpectTellsWhatWasFound) {
  const Safetensors file = written(one_of_each());
  EXPECT_EQ(&file.expect("F16", {FileDtype::kF32, FileDtype::kF16}, {2, 3}), &file.tensor("F16"));
  EXPECT_EQ(input_error_of([&] {
              file.expect("F16", {FileDtype::kF16}, {3, 2});
            }),
            path_ + ": tensor 'F16': shape is [2, 3], expected [3, 2]");
  EXPECT_EQ(input_error_of([&] {
              file.expect("F16", {FileDtype::kI8, FileDtype::kU8}, {2, 3});
            }),
            path_ + ": tensor 'F16': dtype is F16, expected I8 or U8");
  EXPECT_EQ(input_error_of([&] { file.expect("none", {FileDtype::kI8}, {}); }),
            path_ + ": tensor 'none': missing; the file has 13 other tensors");
}

TEST_F(SafetensorsTest, ViewsLiveAsLongAsACopyOfTheFile) {
  std::optional<Safetensors> original = written(one_of_each());
  const Safetensors copy = *original;
  original.reset();
  EXPECT_EQ(copy.as_float("F32"), extremes<float>());
}

TEST_F(SafetensorsTest, WrittenBytesAreThoseOfTheFormat) {
  write_safetensors(path_,
                    {make_tensor("b", FileDtype::kI16, {1, 2}, std::vector<std::int16_t>{258, -1}),
                     make_tensor("a", FileDtype::kU8, {}, std::vector<std::uint8_t>{'!'})},
                    {{"k", "v\n"}});
  const std::string header =
      R"({"__metadata__":{"k":"v\n"},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
      R"("b":{"dtype":"I16","shape":[1,2],"data_offsets":[1,5]}})";
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  const std::string length = {static_cast<char>(padded), 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(read_file(path_),
            length + header + std::string(padded - header.size(), ' ') + "!\x02\x01\xFF\xFF");
}

TEST_F(SafetensorsTest, BytesDoNotDependOnTheOrderOfTheTensors) {
  std::vector<TensorData> tensors = one_of_each();
  write_safetensors(path_, tensors, {{"k", "v"}});
  const std::string bytes = read_file(path_);
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(path_, tensors, {{"k", "v"}});
  EXPECT_EQ(read_file(path_), bytes);
}

TEST_F(SafetensorsTest, WriterRefusesWhatMakesNoValidFile) {
  const TensorData good = make_tensor("t", FileDtype::kI8, {2}, std::vector<std::int8_t>{1, 2});
  const auto with = [&](auto change) {
    TensorData tensor = good;
    change(tensor);
    return std::vector<TensorData>{tensor};
  };
  const std::vector<std::vector<TensorData>> bad = {
      {good, good},
      with([](TensorData& t) { t.name = ""; }),
      with([](TensorData& t) { t.name = "__metadata__"; }),
      with([](TensorData& t) { t.name = "a\nb"; }),
      with([](TensorData& t) { t.name = "\xFF"; }),
      with([](TensorData& t) { t.shape = {3}; }),
      with([](TensorData& t) { t.dtype = FileDtype::kI16; }),
      with([](TensorData& t) { t.shape = {1, 1, 1, 1, 1, 1, 1, 1, 2}; }),
      with([](TensorData& t) {
        t.shape = {std::size_t{1} << 63, 4};
      }),
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    EXPECT_THROW(write_safetensors(path_, bad[i]), std::invalid_argument) << i;
  }
  EXPECT_THROW(write_safetensors(path_, {good}, {{"k", "\xC0"}}), std::invalid_argument);
  EXPECT_THROW(make_tensor("t", FileDtype::kI16, {1}, std::vector<float>{1}),
               std::invalid_argument);
  EXPECT_THAT(directory_.names(), IsEmpty());
}

TEST_F(SafetensorsTest, WriterReportsAMissingDirectory) {
  const std::string path = directory_.path("missing/model.safetensors");
  EXPECT_THAT(input_error_of([&] { write_safetensors(path, one_of_each()); }),
              StartsWith(path + ": cannot write: "));
}

}  // namespace
}  // namespace systole::model
