#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "model/checkpoint/network_checkpoint.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/integer/integer_model.h"
#include "model/integer/integer_network.h"
#include "tests/model/network/spoilt_network.h"
#include "tests/model/vision.h"
#include "tests/support/input_error.h"
#include "tests/support/table_rows.h"

namespace systole::model {
namespace {

using json = nlohmann::json;
using Net = SpoiltNetwork;

/// One thing that is wrong with a network file, and what the line about it contains.
struct NetworkFault {
  std::string name;
  std::string hint;
  std::function<void(SpoiltNetwork&)> spoil;
};

void PrintTo(const NetworkFault& fault, std::ostream* out) { *out << fault.name; }

template <typename T>
void set(Net& net, const char* name, FileDtype dtype, const std::vector<std::size_t>& shape,
         const std::vector<T>& values) {
  net.set(make_tensor(name, dtype, shape, values));
}

/// Faults of the file of vit17: of the document, in faults.txt, and of what joins it to constants.
std::vector<NetworkFault> faults() {
  const std::vector<float> nans(64, std::numeric_limits<float>::quiet_NaN());
  std::vector<NetworkFault> faults = {
      {"NoDocument", "metadata 'network' is missing",
       [](Net& n) { n.metadata.erase(kNetworkKey); }},
      {"MissingConstant",
       "node 'logits': input 'weight' (logits.weight): missing: the file has no tensor",
       [](Net& n) { n.tensors.erase("logits.weight"); }},
      {"WrongDtype", "node 'logits': input 'weight' (logits.weight): dtype is F32, expected I8",
       [](Net& n) {
         set(n, "logits.weight", FileDtype::kF32, {10, 64}, std::vector<float>(640));
       }},
      {"WrongWeightShape",
       "node 'logits': input 'weight' (logits.weight): shape is [10, 32], expected 64 columns",
       [](Net& n) {
         set(n, "logits.weight", FileDtype::kI8, {10, 32}, std::vector<std::int8_t>(320));
       }},
      {"WrongBiasShape", "node 'logits': input 'bias' (logits.bias): shape is [9], expected [10]",
       [](Net& n) { set(n, "logits.bias", FileDtype::kI32, {9}, std::vector<std::int32_t>(9)); }},
      {"ScaleIsNan", "'scale': 'scales' has the value nan, expected finite numbers above 0",
       [=](Net& n) {
         set(n, "scales", FileDtype::kF32, {64}, nans);
         n.change(R"(tensors/norm/scale = {"axis": 1, "values": "scales"})");
       }},
      {"UnreadConstant", "tensor 'x': no node reads it",
       [](Net& n) { set(n, "x", FileDtype::kF32, {1}, std::vector<float>(1)); }}};
  for (const std::vector<std::string>& row : rows_of("tests/model/network/faults.txt")) {
    faults.push_back({row.at(0), row.at(1), [row](Net& n) {
                        for (std::size_t i = 2; i < row.size(); ++i) n.change(row[i]);
                      }});
  }
  return faults;
}

class NetworkFaultTest : public ::testing::TestWithParam<NetworkFault> {};

TEST_P(NetworkFaultTest, IsRefusedInOneLine) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(load_integer_vit(integer_model_path("vit17")), path);
  SpoiltNetwork network(path);
  GetParam().spoil(network);
  network.write(path);
  const std::string text = input_error_of([&] { return load_integer_vit(path); });
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_EQ(text.find(path), 0U) << text;
  expect_contains(text, GetParam().hint);
}

INSTANTIATE_TEST_SUITE_P(Document, NetworkFaultTest, ::testing::ValuesIn(faults()),
                         [](const auto& test) { return test.param.name; });

/// What the document of vit17 becomes.
std::string error_of_text(const std::function<std::string(const std::string&)>& change) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(load_integer_vit(integer_model_path("vit17")), path);
  const SpoiltNetwork network(path);
  network.write(path, change(network.document.dump()));
  return input_error_of([&] { return NetworkFile(Safetensors::open(path)); });
}

TEST(NetworkDocument, RefusesTextThatIsNoDocument) {
  const auto replace = [](const std::string& text) {
    return [text](const std::string&) { return text; };
  };
  expect_contains(error_of_text(replace("[]")), "'format_version' is missing");
  expect_contains(error_of_text(replace("{")), "not valid JSON");
  expect_contains(error_of_text(replace(std::string(100'000, '['))), "nested more than 8 deep");
  expect_contains(error_of_text([](std::string text) { return text.insert(1, "\"nodes\":[],"); }),
                  "the key 'nodes' occurs twice");
  expect_contains(error_of_text([](std::string text) { return text.substr(0, text.size() / 2); }),
                  "not valid JSON");
  std::string many = "[";
  for (int i = 0; i < 1 << 20; ++i) many += "0,";
  expect_contains(error_of_text(replace(many + "0]")), "more than 1048576 values");
  expect_contains(error_of_text(replace("{\"format_version\": 1e999}")), "not valid JSON");
}

TEST(NetworkDocument, RefusesRealConstantsThatAreNotFinite) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(load_vit_checkpoint(checkpoint_path("vit17")), "vit17", path);
  SpoiltNetwork network(path);
  std::vector<float> values(64, 1.0F);
  values[3] = INFINITY;
  network.set(make_tensor("norm.weight", FileDtype::kF32, {64}, values));
  network.write(path);
  EXPECT_EQ(input_error_of([&] { return load_vit_checkpoint(path); }),
            path + ": tensor 'norm.weight': element 3 is not finite");
}

/// A document with random bytes replaced either is the same network or is refused in one line.
TEST(NetworkDocument, SurvivesRandomBytes) {
  std::mt19937 random(1);
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  write_network(load_integer_vit(integer_model_path("vit17")), path);
  const SpoiltNetwork network(path);
  const std::string whole = network.document.dump();
  const std::string letters = "0123456789{}[]\",:-.eaxn ";
  int refused = 0;
  constexpr int kRuns = 150;
  for (int i = 0; i < kRuns; ++i) {
    std::string text = whole;
    for (auto n = 1 + random() % 3; n > 0; --n) {
      text[random() % text.size()] = letters[random() % letters.size()];
    }
    network.write(path, text);
    const std::string error = input_error_of([&] { return load_integer_vit(path); });
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    if (error != "no error") ++refused;
  }
  EXPECT_GT(refused, kRuns / 2);
}

TEST(NetworkDocument, TakesNodesInAnyOrder) {
  const TempDirectory directory;
  const std::string path = directory.path("n.safetensors");
  const IntegerVit vit = load_integer_vit(integer_model_path("vit17"));
  write_network(vit, path);
  SpoiltNetwork network(path);
  json& nodes = network.document["nodes"];
  std::reverse(nodes.begin(), nodes.end());
  network.write(path);
  save_integer_vit(load_integer_vit(path), directory.path("copy.safetensors"));
  EXPECT_TRUE(read_file(directory.path("copy.safetensors")) ==
              read_file(integer_model_path("vit17")));
}

}  // namespace
}  // namespace systole::model
