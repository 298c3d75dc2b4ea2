#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "model/checkpoint/network_checkpoint.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/integer/integer_model.h"
#include "model/integer/integer_network.h"
#include "tests/model/network/spoilt_network.h"
#include "tests/model/vision.h"
#include "tests/support/input_error.h"

namespace systole::model {
namespace {

using json = nlohmann::json;
using Net = SpoiltNetwork;

/// Faults of the document and of what joins it to the constants, in the file of vit17.
const std::vector<NetworkFault>& faults() {
  static const std::vector<NetworkFault> faults = {
      {"NoDocument", [](Net& n) { n.metadata.erase(kNetworkKey); },
       "metadata 'network' is missing"},
      {"NoVersion", [](Net& n) { n.document.erase("format_version"); },
       "'format_version' is missing"},
      {"OtherVersion", [](Net& n) { n.document["format_version"] = 2; },
       "'format_version': found 2, expected 1"},
      {"VersionIsText", [](Net& n) { n.document["format_version"] = "1"; },
       "'format_version': found \"1\", expected 1"},
      {"NoNodes", [](Net& n) { n.document["nodes"] = json::array(); },
       "'nodes': expected a list of one node or more"},
      {"NodesAreNumbers", [](Net& n) { n.document["nodes"] = {1}; },
       "node number 0: expected an object"},
      {"UnknownKey", [](Net& n) { n.document["weights"] = "pickle"; },
       "unknown key 'weights', expected format_version"},
      {"UnknownKeyOfANode", [](Net& n) { n.node("logits")["domain"] = "ai.onnx"; },
       "node 'logits': unknown key 'domain', expected name, op"},
      {"ExternalData", [](Net& n) { n.document["tensors"]["logits"]["file"] = "../secret"; },
       "tensor 'logits': unknown key 'file', expected type, shape, scale"},
      {"UnknownOp", [](Net& n) { n.node("logits")["op"] = "rms_norm"; },
       "node 'logits': op 'rms_norm' is not supported in a network of integers, expected "
       "embedding"},
      {"OpOfRealNumbers", [](Net& n) { n.node("patches")["op"] = "normalise"; },
       "op 'normalise' is not supported in a network of integers"},
      {"OpIsNumber", [](Net& n) { n.node("logits")["op"] = 7; }, "'op': expected a text"},
      {"NameTwice", [](Net& n) { n.node("logits")["name"] = "patches"; },
       "node 'patches': another node has this name"},
      {"EmptyName", [](Net& n) { n.node("logits")["name"] = ""; },
       "'name': expected a text that is not empty"},
      {"OutputTwice", [](Net& n) { n.node("class_row")["outputs"] = {"norm"}; },
       "output 'norm': is a graph input or another node's output"},
      {"OutputIsConstant", [](Net& n) { n.node("logits")["outputs"] = {"norm.bias"}; },
       "node 'logits': output 'norm.bias': is a constant"},
      {"TwoOutputs",
       [](Net& n) {
         n.node("logits")["outputs"] = {"a", "b"};
       },
       "'outputs': expected one name"},
      {"MissingInput", [](Net& n) { n.node("logits")["inputs"][0] = "nothing"; },
       "node 'logits': input 'x' (nothing): missing: no graph input and no node's output"},
      {"MissingConstant", [](Net& n) { n.tensors.erase("logits.weight"); },
       "node 'logits': input 'weight' (logits.weight): missing: the file has no tensor"},
      {"ConstantAsActivation", [](Net& n) { n.node("logits")["inputs"][0] = "logits.weight"; },
       "input 'x' (logits.weight): is a constant, expected a graph input or a node's output"},
      {"ActivationAsConstant", [](Net& n) { n.node("logits")["inputs"][1] = "norm"; },
       "input 'weight' (norm): is no constant, expected a tensor of the file"},
      {"TooFewInputs", [](Net& n) { n.node("logits")["inputs"] = {"class_row"}; },
       "'inputs': found 1, expected x, weight, bias, multiplier, shift for linear"},
      {"TooManyInputs",
       [](Net& n) {
         n.node("class_row")["inputs"] = {"norm", "norm"};
       },
       "'inputs': found 2, expected x for select_row"},
      {"Cycle", [](Net& n) { n.node("blocks.0.mlp.gelu")["inputs"] = {"blocks.0.mlp.gelu"}; },
       "node 'blocks.0.mlp.gelu': its inputs depend on its own output: a cycle"},
      {"LongCycle", [](Net& n) { n.node("blocks.0.norm1")["inputs"][0] = "blocks.3.mlp.residual"; },
       "depend on its own output: a cycle"},
      {"WrongDtype",
       [](Net& n) {
         n.set(make_tensor("logits.weight", FileDtype::kF32, {10, 64}, std::vector<float>(640)));
       },
       "node 'logits': input 'weight' (logits.weight): dtype is F32, expected I8"},
      {"WrongWeightShape",
       [](Net& n) {
         n.set(
             make_tensor("logits.weight", FileDtype::kI8, {10, 32}, std::vector<std::int8_t>(320)));
       },
       "node 'logits': input 'weight' (logits.weight): shape is [10, 32], expected 64 columns"},
      {"WrongBiasShape",
       [](Net& n) {
         n.set(make_tensor("logits.bias", FileDtype::kI32, {9}, std::vector<std::int32_t>(9)));
       },
       "node 'logits': input 'bias' (logits.bias): shape is [9], expected [10]"},
      {"WrongResultShape",
       [](Net& n) {
         n.document["tensors"]["logits"]["shape"] = {1, 11};
       },
       "node 'logits': output (logits): shape is [1, 11], expected [1, 10]"},
      {"WrongResultType", [](Net& n) { n.document["tensors"]["norm"]["type"] = "s16"; },
       "node 'norm': output (norm): type is s16, expected s8"},
      {"WrongInputType", [](Net& n) { n.document["tensors"]["picture"]["type"] = "i64"; },
       "node 'patches': input 'x' (picture): type is i64, expected u8"},
      {"UnknownType", [](Net& n) { n.document["tensors"]["norm"]["type"] = "s4"; },
       "tensor 'norm': 'type': found 's4', expected f32, i64"},
      {"NoType", [](Net& n) { n.document["tensors"]["norm"].erase("type"); },
       "tensor 'norm': 'type' is missing"},
      {"NoShape", [](Net& n) { n.document["tensors"].erase("norm"); },
       "node 'norm': output 'norm': expected its type and shape in 'tensors'"},
      {"StrayTensor",
       [](Net& n) {
         n.document["tensors"]["stray"] = {{"type", "s8"}, {"shape", {1}}};
       },
       "tensor 'stray': neither a constant nor a graph input nor the output of a node"},
      {"HugeShape",
       [](Net& n) {
         n.document["tensors"]["norm"]["shape"] = {4194304, 4194304};
       },
       "tensor 'norm': 'shape': [4194304,4194304] has more than 1099511627776 elements"},
      {"HugeSize",
       [](Net& n) {
         n.document["tensors"]["norm"]["shape"] = {1ULL << 63, 1};
       },
       "expected sizes from 1 to 4194304 or \"tokens\""},
      {"SizeZero",
       [](Net& n) {
         n.document["tensors"]["norm"]["shape"] = {0, 64};
       },
       "tensor 'norm': 'shape': found [0,64], expected sizes from 1"},
      {"NegativeSize",
       [](Net& n) {
         n.document["tensors"]["norm"]["shape"] = {-1, 64};
       },
       "tensor 'norm': 'shape': found [-1,64], expected sizes from 1"},
      {"FractionalSize",
       [](Net& n) {
         n.document["tensors"]["norm"]["shape"] = {1.5, 64};
       },
       "expected sizes from 1"},
      {"ManySizes", [](Net& n) { n.document["tensors"]["norm"]["shape"] = json(99, 1); },
       "tensor 'norm': 'shape': expected a list of at most 4 sizes"},
      {"ScaleZero", [](Net& n) { n.document["tensors"]["norm"]["scale"] = 0; },
       "tensor 'norm': 'scale': found 0, expected a number"},
      {"ScaleIsText", [](Net& n) { n.document["tensors"]["norm"]["scale"] = "NaN"; },
       "tensor 'norm': 'scale': found \"NaN\", expected a number"},
      {"ScaleWithoutValues",
       [](Net& n) {
         n.document["tensors"]["norm"]["scale"] = {{"axis", 1}};
       },
       "tensor 'norm': 'scale': 'values' is missing"},
      {"ScalesMissing",
       [](Net& n) {
         n.document["tensors"]["norm"]["scale"] = {{"axis", 1}, {"values", "nothing"}};
       },
       "tensor 'norm': 'scale': missing: the file has no tensor 'nothing'"},
      {"ScaleOfNoAxis",
       [](Net& n) {
         n.document["tensors"]["norm"]["scale"] = {{"axis", 3}, {"values", "norm.bias"}};
       },
       "tensor 'norm': 'scale': axis 3 of shape [17, 64] has no fixed size"},
      {"ScaleIsNan",
       [](Net& n) {
         n.set(make_tensor("scales", FileDtype::kF32, {64},
                           std::vector<float>(64, std::numeric_limits<float>::quiet_NaN())));
         n.document["tensors"]["norm"]["scale"] = {{"axis", 1}, {"values", "scales"}};
       },
       "'scale': 'scales' has the value nan, expected finite numbers above 0"},
      {"AttributeMissing", [](Net& n) { n.attributes("class_row").erase("row"); },
       "node 'class_row': 'attributes': 'row' is missing"},
      {"AttributeUnknown", [](Net& n) { n.attributes("class_row")["axis"] = 0; },
       "node 'class_row': 'attributes': unknown key 'axis', expected row"},
      {"RowBeyondTheLast", [](Net& n) { n.attributes("class_row")["row"] = 17; },
       "node 'class_row': attribute 'row': 17, expected less than 17"},
      {"HeadsZero", [](Net& n) { n.attributes("blocks.0.attn.context")["heads"] = 0; },
       "'heads': found 0, expected a whole number from 1 to 16384"},
      {"HeadsDoNotDivide", [](Net& n) { n.attributes("blocks.0.attn.context")["heads"] = 5; },
       "input 'q' (blocks.0.attn.query): shape is [17, 64], expected columns that 5 heads divide"},
      {"CausalIsNumber", [](Net& n) { n.attributes("blocks.0.attn.context")["causal"] = 0; },
       "'causal': expected true or false"},
      {"FactorIsNumber", [](Net& n) { n.attributes("blocks.0.attn.context")["score"] = 0.5; },
       "'score': found 0.5, expected [multiplier, shift] of 32 and 8 bits"},
      {"FactorTooLarge",
       [](Net& n) {
         n.attributes("blocks.0.attn.context")["score"] = {1ULL << 40, 2};
       },
       "'score': found [1099511627776,2], expected [multiplier, shift]"},
      {"PatchDoesNotDivide", [](Net& n) { n.attributes("patches")["patch"] = 3; },
       "node 'patches': input 'x' (picture): shape is [1, 8, 8], expected a side that"},
      {"InputIsConstant", [](Net& n) { n.document["inputs"] = {"norm.bias"}; },
       "input 'norm.bias': expected its type and shape in 'tensors', and no constant"},
      {"InputTwice",
       [](Net& n) {
         n.document["inputs"] = {"picture", "picture"};
       },
       "input 'picture': occurs twice"},
      {"OutputOfNoNode", [](Net& n) { n.document["outputs"] = {"picture"}; },
       "output 'picture': no node makes it"},
      {"UnreadNode", [](Net& n) { n.document["outputs"] = {"norm"}; },
       "node 'logits': no node reads its output, and it is none of the network"},
      {"UnreadConstant",
       [](Net& n) { n.set(make_tensor("x", FileDtype::kF32, {1}, std::vector<float>(1))); },
       "tensor 'x': no node reads it"},
      {"DatapathWithoutAKey", [](Net& n) { n.document["datapath"].erase("datapath.rounding"); },
       "datapath 'datapath.rounding': missing"},
      {"DatapathOfAnotherWord", [](Net& n) { n.document["datapath"]["datapath.rounding"] = "up"; },
       "datapath 'datapath.rounding': up, expected"},
      {"DatapathWithAStrangeKey", [](Net& n) { n.document["datapath"]["array.rows"] = "16"; },
       "datapath 'array.rows': unknown key"},
      {"DatapathIsEmpty", [](Net& n) { n.document["datapath"] = json::object(); },
       "'datapath': expected the keys of a machine's datapath"},
  };
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

INSTANTIATE_TEST_SUITE_P(Document, NetworkFaultTest, ::testing::ValuesIn(faults()), fault_name);

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
