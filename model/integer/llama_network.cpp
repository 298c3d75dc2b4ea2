#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/integer/integer_network.h"
#include "model/metadata/datapath_metadata.h"
#include "model/network/llama_walk.h"
#include "model/network/network_writer.h"

namespace systole::model {
namespace {

using nlohmann::ordered_json;
using Value = NetworkWriter::Value;

/// Writes a Llama with scales of each row.
class LlamaWriter {
 public:
  explicit LlamaWriter(const IntegerLlama& llama)
      : writer_(llama.name, llama.source),
        llama_(llama),
        shape_(llama.shape),
        stream_(llama.datapath.residual_bits <= 16 ? "s16" : "s32") {}

  void write(const std::string& path, const std::string& tokeniser) {
    writer_.set_datapath(datapath_metadata(llama_.datapath));
    writer_.set_architecture({{"family", "llama"}});
    const std::string ids = writer_.input("input_ids", {"i64", {kTokens}});
    const std::string output =
        weight("logits.weight", shape_.vocabulary, shape_.width, llama_.output.weight);
    const std::string table =
        llama_.word.empty() ? output
                            : weight("word.table", shape_.vocabulary, shape_.width, llama_.word);
    auto [multiplier, shift] = factors("word", llama_.word_factor);
    std::string x = writer_.node("word", "scaled_embedding", {ids, table, multiplier, shift},
                                 value(stream_, shape_.width, llama_.embedding_scale));
    for (std::size_t i = 0; i < llama_.blocks.size(); ++i) {
      x = block("blocks." + std::to_string(i) + ".", llama_.blocks[i], x);
    }
    x = linear("logits", llama_.output, output, norm("norm", llama_.norm, x), "s32",
               llama_.logit_scale);
    if (!tokeniser.empty()) writer_.set_tokeniser(tokeniser);
    writer_.write(path, x);
  }

 private:
  static Value value(const std::string& type, std::uint32_t columns, double scale = 0.0) {
    return {type, {kTokens, columns}, scale};
  }
  std::string weight(const std::string& name, std::size_t rows, std::size_t columns,
                     const hw::SharedVector<std::int8_t>& values) {
    return writer_.constant(make_tensor(name, FileDtype::kI8, {rows, columns}, values.get()));
  }
  std::string words(const std::string& name, const std::vector<std::int32_t>& values) {
    return writer_.constant(make_tensor(name, FileDtype::kI32, {values.size()}, values));
  }
  /// NAME.multiplier and NAME.shift.
  std::pair<std::string, std::string> factors(const std::string& name,
                                              const std::vector<hw::Dyadic>& factors) {
    std::vector<std::int32_t> multipliers;
    std::vector<std::int8_t> shifts;
    for (const hw::Dyadic& factor : factors) {
      multipliers.push_back(factor.multiplier);
      shifts.push_back(factor.shift);
    }
    const std::string multiplier = words(name + ".multiplier", multipliers);
    return {multiplier, writer_.constant(
                            make_tensor(name + ".shift", FileDtype::kI8, {shifts.size()}, shifts))};
  }

  std::string linear(const std::string& name, const IntegerLinear& layer, const std::string& codes,
                     const std::string& x, const std::string& type, double scale = 0.0) {
    std::vector<std::int32_t> bias = layer.bias;
    bias.resize(layer.outputs, 0);
    const std::string biases = words(name + ".bias", bias);
    auto [multiplier, shift] = factors(name, layer.factor);
    std::vector<std::string> inputs = {x, codes, biases, multiplier, shift};
    ordered_json attributes = ordered_json::object();
    if (layer.grouped()) {
      std::vector<std::uint8_t> scales;
      std::vector<std::int8_t> minima;
      for (const hw::WeightGroup& group : layer.groups) {
        scales.push_back(group.scale);
        minima.push_back(group.minimum);
      }
      const std::vector<std::size_t> shape = {layer.outputs, layer.inputs / hw::kGroupWeights};
      inputs.push_back(
          writer_.constant(make_tensor(name + ".group_scale", FileDtype::kU8, shape, scales)));
      if (hw::is_mx(layer.format)) {
        attributes["format"] = name_of(layer.format);
      } else {
        inputs.push_back(
            writer_.constant(make_tensor(name + ".group_minimum", FileDtype::kI8, shape, minima)));
      }
    }
    return writer_.node(name, "linear", inputs, value(type, layer.outputs, scale), attributes);
  }
  std::string linear(const std::string& name, const IntegerLinear& layer, const std::string& x,
                     const std::string& type) {
    const std::string codes = weight(name + ".weight", layer.outputs, layer.inputs, layer.weight);
    return linear(name, layer, codes, x, type);
  }

  std::string codes(const std::string& name, const std::string& x, std::uint32_t columns) {
    return writer_.node(name + ".codes", "quantise_rows", {x}, value("s8", columns));
  }

  std::string norm(const std::string& name, const IntegerRmsNorm& norm, const std::string& x) {
    const std::string normed =
        writer_.node(name, "rms_norm", {x, words(name + ".multiplier", norm.multiplier)},
                     value("s16", shape_.width, norm.scale),
                     {{"shift", norm.shift}, {"fraction_bits", norm.fraction_bits}});
    return codes(name, normed, shape_.width);
  }

  std::string rotated(const std::string& name, const IntegerLinear& layer,
                      const IntegerRmsNorm& norm, const std::string& x) {
    const std::uint32_t heads = layer.outputs / shape_.head_width;
    std::string wide = linear(name, layer, x, "s16");
    if (shape_.head_norms) {
      wide = writer_.node(
          name + "_norm", "rms_norm", {wide, words(name + "_norm.multiplier", norm.multiplier)},
          value("s16", layer.outputs, norm.scale),
          {{"heads", heads}, {"shift", norm.shift}, {"fraction_bits", norm.fraction_bits}});
    }
    ordered_json attributes = {
        {"heads", heads}, {"base", shape_.rope_base}, {"positions", shape_.positions}};
    if (!shape_.rope_frequencies.empty()) attributes["frequencies"] = shape_.rope_frequencies;
    return writer_.node(name + "_rope", "rope", {wide}, value("s8", layer.outputs), attributes);
  }

  std::string add(const std::string& name, const std::string& identity, const std::string& branch) {
    return writer_.node(name, "add", {identity, branch},
                        value(stream_, shape_.width, llama_.embedding_scale));
  }

  std::string block(const std::string& prefix, const IntegerLlamaBlock& block,
                    const std::string& x) {
    const std::string in = norm(prefix + "norm1", block.norm1, x);
    const std::string query = rotated(prefix + "attn.query", block.query, block.query_norm, in);
    const std::string key = rotated(prefix + "attn.key", block.key, block.key_norm, in);
    const std::string values = linear(prefix + "attn.value", block.value, in, "s8");
    ordered_json attributes = {{"heads", shape_.heads},
                               {"kv_heads", shape_.kv_heads},
                               {"causal", true},
                               {"score", factor_json(block.score)},
                               {"exp_to_code", factor_json(llama_.exp_to_code)},
                               {"context", factor_json(block.context)}};
    if (shape_.window != 0) attributes["window"] = shape_.window;
    const std::string context =
        writer_.node(prefix + "attn.context", "attention", {query, key, values},
                     value(llama_.context_scales ? "s16" : "s8", shape_.query_width()), attributes);
    const std::string projected =
        llama_.context_scales ? codes(prefix + "attn.context", context, shape_.query_width())
                              : context;
    const std::string stream = add(prefix + "attn.residual", x,
                                   linear(prefix + "attn.proj", block.proj, projected, "s32"));
    const std::string mlp_in = norm(prefix + "norm2", block.norm2, stream);
    const std::string mlp = prefix + "mlp.";
    if (shape_.experts == 0) {
      const std::string product =
          gated(mlp, block, block.gate, block.up, mlp_in, block.product_shift);
      return add(
          mlp + "residual", stream,
          linear(mlp + "down", block.down, codes(mlp + "product", product, shape_.hidden), "s32"));
    }
    const std::string scores =
        linear(mlp + "router", block.router,
               weight(mlp + "router.weight", shape_.experts, shape_.width, block.router.weight),
               mlp_in, "s16", block.router_scale);
    const std::string shares =
        writer_.node(mlp + "shares", "route", {scores}, value("u8", shape_.experts),
                     {{"active", shape_.active_experts}});
    const unsigned first = before_share(block.product_shift);
    std::string sum = stream;
    for (std::size_t i = 0; i < block.experts.size(); ++i) {
      const IntegerExpert& expert = block.experts[i];
      const std::string name = mlp + "expert" + std::to_string(i) + ".";
      const std::string product = gated(name, block, expert.gate, expert.up, mlp_in, first);
      const std::string weighed = writer_.node(
          name + "share", "weigh", {product, shares}, value("s32", shape_.hidden),
          {{"expert", i}, {"shift", block.product_shift + kShareFractionBits - first}});
      sum = add(
          name + "residual", sum,
          linear(name + "down", expert.down, codes(name + "share", weighed, shape_.hidden), "s32"));
    }
    return sum;
  }

  /// The product of `up` and the activated `gate`.
  std::string gated(const std::string& prefix, const IntegerLlamaBlock& block,
                    const IntegerLinear& gate_layer, const IntegerLinear& up_layer,
                    const std::string& in, unsigned shift) {
    const std::string gate = linear(prefix + "gate", gate_layer, in, "s16");
    const ordered_json constants =
        shape_.gelu ? gelu_json(block.gelu)
                    : ordered_json{{"argument", factor_json(block.silu.argument)},
                                   {"fraction_bits", block.silu.exp.fraction_bits},
                                   {"factor", factor_json(block.silu.output)}};
    const std::string activated = writer_.node(prefix + "activation", shape_.gelu ? "gelu" : "silu",
                                               {gate}, value("s16", shape_.hidden), constants);
    const std::string up = linear(prefix + "up", up_layer, in, "s16");
    return writer_.node(prefix + "product", "multiply", {activated, up},
                        value("s32", shape_.hidden), {{"shift", shift}});
  }

  NetworkWriter writer_;
  const IntegerLlama& llama_;
  const LlamaShape& shape_;
  std::string stream_;
};

/// Reads layers of a Llama of integers.
class LlamaReader {
 public:
  LlamaReader(const NetworkFile& file, IntegerLlama& llama) : file_(file), llama_(llama) {}

  void linear(const NetworkNode& node, IntegerLinear& layer) const {
    read_linear(file_, node, layer);
    if (node.inputs.size() > kUngroupedOperands) read_groups(node, layer);
    layer.weight.let_go();
    if (std::all_of(layer.bias.begin(), layer.bias.end(), [](std::int32_t b) { return b == 0; })) {
      layer.bias.clear();
    }
  }
  void rotated(const NetworkNode& projection, const NetworkNode&, IntegerLinear& layer) const {
    linear(projection, layer);
  }
  void head_norm(const NetworkNode& node, const NetworkNode&, IntegerRmsNorm& norm) const {
    this->norm(node, norm);
  }
  void norm(const NetworkNode& node, IntegerRmsNorm& norm) const {
    norm.multiplier = file_.constants().copy<std::int32_t>(node.inputs[1]);
    norm.shift = node.attributes.at("shift").get<std::uint32_t>();
    norm.fraction_bits = node.attributes.at("fraction_bits").get<unsigned>();
    norm.scale = file_.scale_of(node.output);
  }
  void gated(const NetworkNode& activation, const NetworkNode& product, const NetworkNode* weigh,
             IntegerLlamaBlock& block) {
    const unsigned shift = product.attributes.at("shift").get<unsigned>();
    IntegerLlamaBlock found;
    found.product_shift = shift;
    if (weigh != nullptr) {
      const unsigned both = shift + weigh->attributes.at("shift").get<unsigned>();
      found.product_shift = both - std::min(both, kShareFractionBits);
      if (both < kShareFractionBits || before_share(found.product_shift) != shift) {
        file_.fail(*weigh, "attribute 'shift': expected the bits of a share, " +
                               std::to_string(kShareFractionBits) +
                               ", or more, as many more as multiply leaves");
      }
    }
    if (activation.is("gelu")) {
      found.gelu = gelu_of(activation);
    } else {
      const auto bits = activation.attributes.at("fraction_bits").get<unsigned>();
      found.silu = {factor_of(activation, "argument"), hw::make_int_exp_constants(bits),
                    factor_of(activation, "factor")};
    }
    const auto constants = [](const IntegerLlamaBlock& of) {
      return std::make_tuple(of.product_shift, of.gelu.b, of.gelu.c, of.gelu.one, of.gelu.output,
                             of.silu.argument, of.silu.exp.fraction_bits, of.silu.output);
    };
    if (&block == gated_ && constants(block) != constants(found)) {
      file_.fail(activation, "is not that of the block's other experts");
    }
    gated_ = &block;
    block.product_shift = found.product_shift;
    block.gelu = found.gelu;
    block.silu = found.silu;
  }
  void router(const NetworkNode& node, IntegerLlamaBlock& block) const {
    linear(node, block.router);
    block.router_scale = file_.scale_of(node.output);
  }
  void attention(const NetworkNode& node, IntegerLlamaBlock& block) {
    if (node.inputs.size() > 3) file_.fail(node, "input 'keep': expected no mask in a Llama");
    block.score = factor_of(node, "score");
    block.context = factor_of(node, "context");
    const hw::Dyadic code = factor_of(node, "exp_to_code");
    const bool wide = file_.document().tensors.at(node.output).type == "s16";
    if (attentions_ != 0 && wide != llama_.context_scales) {
      file_.fail(node, "output: its type is not that of the other attentions");
    }
    llama_.context_scales = wide;
    if (attentions_++ != 0 && !(code == llama_.exp_to_code)) {
      file_.fail(node, "attribute 'exp_to_code': is not that of the other attentions");
    }
    llama_.exp_to_code = code;
  }
  void words(const NetworkNode& node, double /*factor*/, IntegerLlama& llama) const {
    llama.word_factor = read_factors(file_, node, 2);
    llama.embedding_scale = file_.scale_of(node.output);
    if (!llama.shape.tied) llama.word = file_.constants().share<std::int8_t>(node.inputs[1]);
  }
  void output(const NetworkNode& node, IntegerLlama& llama) const {
    linear(node, llama.output);
    if (!llama.output.bias.empty()) file_.fail(node, "input 'bias': expected zeros of the logits");
    llama.logit_scale = file_.scale_of(node.output);
  }

 private:
  /// Every weight must be one that its group has a code for.
  void read_groups(const NetworkNode& node, IntegerLinear& layer) const {
    const auto scales = file_.constants().copy<std::uint8_t>(node.inputs[kUngroupedOperands]);
    std::vector<std::int8_t> minima(scales.size());
    layer.format = hw::WeightFormat::kGroups;
    if (node.attributes.contains("format")) {
      layer.format = *hw::find_mx_format(node.attributes.at("format").get<std::string>());
    } else {
      minima = file_.constants().copy<std::int8_t>(node.inputs[kUngroupedOperands + 1]);
    }
    std::vector<std::uint8_t> packed(hw::packed_group_bytes(layer.format, 1));
    for (std::size_t i = 0; i < scales.size(); ++i) {
      layer.groups.push_back({scales[i], minima[i]});
      const std::size_t first = i * hw::kGroupWeights;
      const std::string place = ": output " + std::to_string(first / layer.inputs) +
                                ", inputs from " + std::to_string(first % layer.inputs) + " on: ";
      if (hw::is_mx(layer.format) && scales[i] == hw::kMxNan) {
        file_.fail(node, "input 'group_scale'" + place + "255 is NaN, expected 0 to 254");
      }
      try {
        hw::pack_group(layer.format, reinterpret_cast<const std::uint8_t*>(&layer.weight[first]), 1,
                       &layer.groups.back(), 1, packed.data());
      } catch (const std::invalid_argument& error) {
        file_.fail(node, "input 'weight'" + place + error.what());
      }
    }
  }

  const NetworkFile& file_;
  IntegerLlama& llama_;
  std::size_t attentions_ = 0;
  const IntegerLlamaBlock* gated_ = nullptr;  ///< of the last gate
};

}  // namespace

void write_network(const IntegerLlama& llama, const std::string& tokeniser,
                   const std::string& path) {
  if (!llama.row_scales) {
    throw hw::InputError(hw::printable(path) + ": " + llama.name +
                         " has no scales of each row, expected a Llama that quantise makes");
  }
  LlamaWriter(llama).write(path, tokeniser);
}

IntegerLlama read_llama_network(const NetworkFile& file) {
  IntegerLlama llama;
  llama.datapath = network_datapath(file);
  llama.name = file.document().name;
  llama.source = file.document().source;
  llama.row_scales = true;
  const NetworkWalk walk(file);
  LlamaReader reader(file, llama);
  read_llama(walk, reader, llama);
  check_integer_llama(llama, file.path());
  return llama;
}

}  // namespace systole::model
