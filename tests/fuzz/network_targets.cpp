#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "fuzz/target.h"
#include "mapper/program_file.h"
#include "model/build/operator_graph.h"
#include "model/checkpoint/llama_checkpoint.h"
#include "model/checkpoint/network_checkpoint.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/deeploy/deeploy_network.h"
#include "model/float/float_operators.h"
#include "model/format/safetensors_writer.h"
#include "model/integer/integer_model.h"
#include "model/network/network_counts.h"
#include "model/network/network_document.h"
#include "support/network/tiny_hf_vit.h"
#include "support/network/tiny_text.h"

/// Networks: documents, constants and what is read beside them.
///
/// An input is a list of parts: a line "=KEY" and a text of the metadata of a safetensors file, or
/// a line "=NAME DTYPE SIZE SIZE ..." and the bytes of a tensor, which are repeated or cut to fill
/// its shape. So the fuzzer changes what matters, and need not keep offsets right.
namespace systole::fuzz {
namespace {

constexpr std::size_t kMostTensorBytes = 65536;

/// `seed` again and again.
std::vector<std::byte> filled(std::string_view seed, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes && !seed.empty(); ++i) {
    data[i] = static_cast<std::byte>(seed[i % seed.size()]);
  }
  return data;
}

const std::map<std::string, model::FileDtype> kDtypes = {
    {"BOOL", model::FileDtype::kBool}, {"U8", model::FileDtype::kU8},
    {"I8", model::FileDtype::kI8},     {"I16", model::FileDtype::kI16},
    {"I32", model::FileDtype::kI32},   {"I64", model::FileDtype::kI64},
    {"F16", model::FileDtype::kF16},   {"F32", model::FileDtype::kF32},
};

/// Whether a heading is that of a tensor.
bool read_tensor(const std::string& heading, std::string_view seed, model::TensorData& tensor) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= heading.size();) {
    const std::size_t end = std::min(heading.find(' ', begin), heading.size());
    words.push_back(heading.substr(begin, end - begin));
    begin = end + 1;
  }
  if (words.size() < 2 || words.size() > 6 || kDtypes.count(words[1]) == 0) return false;
  tensor.name = words[0];
  tensor.dtype = kDtypes.at(words[1]);
  std::size_t elements = 1;
  for (std::size_t i = 2; i < words.size(); ++i) {
    std::size_t size = 0;
    for (const char digit : words[i]) {
      if (digit < '0' || digit > '9' || size > kMostTensorBytes) return false;
      size = size * 10 + static_cast<std::size_t>(digit - '0');
    }
    elements *= size;
    if (elements > kMostTensorBytes / 8) return false;
    tensor.shape.push_back(size);
  }
  tensor.data = filled(seed, elements * model::dtype_bytes(tensor.dtype));
  return true;
}

/// Writes the file that an input describes; empty if it describes none.
std::string write_parts(std::string_view bytes, const std::string& name) {
  const Unmeasured unmeasured;
  std::map<std::string, std::string> metadata;
  std::map<std::string, model::TensorData> tensors;
  std::size_t total = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes[at] != '=') return "";
    const std::size_t line = std::min(bytes.find('\n', at), bytes.size());
    const std::string heading(bytes.substr(at + 1, line - at - 1));
    const std::size_t begin = std::min(line + 1, bytes.size());
    const std::size_t end = std::min(bytes.find("\n=", begin), bytes.size());
    const std::string_view content = bytes.substr(begin, end - begin);
    at = std::min(end + 1, bytes.size());
    model::TensorData tensor;
    if (read_tensor(heading, content, tensor)) {
      total += tensor.data.size();
      tensors[tensor.name] = std::move(tensor);
    } else {
      metadata[heading] = std::string(content);
    }
  }
  if (total > kMostTensorBytes) return "";
  std::vector<model::TensorData> all;
  for (auto& [key, tensor] : tensors) all.push_back(std::move(tensor));
  const std::string path = file_with(name, "");
  try {
    model::write_safetensors(path, all, metadata);
  } catch (const std::exception&) {
    return "";  // names and texts that no such file has
  }
  return path;
}

void read_all(const std::string& path) {
  switch (model::model_kind(path)) {
    case model::ModelKind::kIntegerVit:
      static_cast<void>(model::load_integer_vit(path));
      break;
    case model::ModelKind::kIntegerText:
      static_cast<void>(model::load_integer_text(path));
      break;
    case model::ModelKind::kIntegerSeq2Seq:
      static_cast<void>(model::load_integer_seq2seq(path));
      break;
    case model::ModelKind::kIntegerLayers:
      static_cast<void>(model::load_integer_layers(path));
      break;
    case model::ModelKind::kIntegerLlama:
      static_cast<void>(model::load_integer_llama(path));
      break;
    case model::ModelKind::kIntegerOperators:
      static_cast<void>(
          model::make_operator_network(model::NetworkFile(model::Safetensors::open(path))));
      break;
    case model::ModelKind::kCheckpoint:
      break;
  }
  const model::Safetensors file = model::Safetensors::open(path);
  if (!model::is_network_file(file)) return;
  const model::NetworkFile network(file);
  static_cast<void>(model::count_network(network, 5));
  static_cast<void>(model::network_dot(network));
  static_cast<void>(model::most_tokens(network));
  if (network.document().is_integer()) return;
  if (model::is_convolutional(network.document())) {
    static_cast<void>(model::FloatOperators(network).format());
  } else if (model::is_llama(network.document())) {
    static_cast<void>(model::read_llama_checkpoint(network));
  } else if (model::reads_pictures(network.document())) {
    static_cast<void>(model::load_vit_checkpoint(path));
  } else {
    static_cast<void>(model::load_text_checkpoint(path));
  }
}

}  // namespace

void read_network(std::string_view bytes) {
  const std::string path = write_parts(bytes, "network.safetensors");
  if (!path.empty()) read_all(path);
}

void read_deeploy(std::string_view bytes) {
  const std::string path = write_parts(bytes, "deeploy.safetensors");
  if (path.empty()) return;
  const model::DeeployNetwork network = model::DeeployNetwork::open(path);
  model::IntegerTensors inputs;
  inputs["input"] = {{2, 4}, {1, -2, 3, -4, 5, -6, 7, -8}};
  inputs["picture"] = {{1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  static_cast<void>(network.run(inputs));
}

/// Files beside a checkpoint: "config.json", a zero and "preprocessor_config.json".
void read_config(std::string_view bytes) {
  const std::size_t end = bytes.find('\0');
  static_cast<void>(file_with("config.json", bytes.substr(0, end)));
  static_cast<void>(file_with("preprocessor_config.json",
                              end == std::string_view::npos ? "{}" : bytes.substr(end + 1)));
  static const std::array<std::string, 2> checkpoints = [] {
    const Unmeasured unmeasured;
    return std::array<std::string, 2>{
        test::TinyText::bert().write(file_with("text.safetensors", "")),
        test::TinyHfVit().write(file_with("vit.safetensors", ""))};
  }();
  try {
    static_cast<void>(model::load_text_checkpoint(checkpoints[0]));
  } catch (const hw::InputError&) {
    // The vision model may still take them.
  }
  static_cast<void>(model::load_vit_checkpoint(checkpoints[1]));
}

void read_program_file(std::string_view bytes) {
  const std::string path = write_parts(bytes, "program.safetensors");
  if (path.empty()) return;
  const mapper::LoadableProgram program = mapper::read_program(path);
  require(!program.program.commands.empty(), "a program has commands");
}

}  // namespace systole::fuzz
