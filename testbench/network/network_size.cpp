#include "testbench/network/network_size.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/quantise/quantiser_options.h"
#include "model/seeded/seeded_llama.h"
#include "model/seeded/seeded_resnet.h"

namespace systole::testbench {
namespace {

constexpr std::int64_t kMaxLayers = 1024;
constexpr std::int64_t kMaxChannels = 1 << 16;
/// Their scores are a row of the host.
constexpr std::int64_t kMostExperts = 1024;
/// Rows of an activation: what a sum of the array's products may be long.
constexpr std::int64_t kMaxTokens = 1 << 16;

/// `value` if it is given; throws InputError unless it is 1 to `most`.
void set(std::uint32_t& member, const char* option, const std::optional<std::int64_t>& value,
         std::int64_t most) {
  if (!value) return;
  if (*value < 1 || *value > most) {
    throw hw::InputError(fmt::format("{}: found {}, expected 1 to {}", option, *value, most));
  }
  member = static_cast<std::uint32_t>(*value);
}

void set_length(NetworkSize& size, const std::optional<std::int64_t>& length,
                std::uint32_t longest) {
  const bool vision = size.kind == model::NetworkKind::kVision;
  size.length = vision ? size.positions : std::min(kDefaultTextLength, longest);
  if (!length) return;
  const bool has_tokens = *length == size.positions || *length == std::int64_t{size.positions} + 1;
  if (vision && !has_tokens) {
    throw hw::InputError(
        fmt::format("--length: found {}, but {} has {} tokens, or {} with a distillation token",
                    *length, size.name, size.positions, size.positions + 1));
  }
  if (!vision && (*length < 1 || *length > longest)) {
    const std::string positions =
        longest == size.positions ? fmt::format("{} has {} positions, ", size.name, longest) : "";
    throw hw::InputError(
        fmt::format("--length: found {}, {}expected 1 to {}", *length, positions, longest));
  }
  size.length = static_cast<std::uint32_t>(*length);
}

/// The shape of that name as it is.
NetworkSize named_size(const std::string& name) {
  NetworkSize size;
  if (const model::LlamaShape* const llama = model::find_llama_shape(name)) {
    size.name = name;
    size.kind = model::NetworkKind::kDecoder;
    size.shape = {llama->layers, llama->width, llama->heads, llama->hidden, false, 0, true};
    size.llama = *llama;
    size.positions = llama->positions;
    return size;
  }
  if (const model::ResNetShape* const resnet = model::find_resnet_shape(name)) {
    size.name = name;
    size.kind = model::NetworkKind::kVision;
    size.shape.layers = resnet->layers();
    size.resnet = *resnet;
    size.positions = 1;
    return size;
  }
  if (!is_shape_name(name)) {
    throw hw::InputError(fmt::format("shape '{}': unknown, expected one of {}", hw::printable(name),
                                     fmt::join(shape_names(), ", ")));
  }
  const model::NamedShape& named = model::find_named_shape(name);
  size.name = named.name;
  size.kind = named.kind;
  size.shape = named.shape;
  size.positions = named.positions;
  return size;
}

void set_experts(NetworkSize& size, const SizeOptions& options) {
  model::LlamaShape& llama = *size.llama;
  set(llama.experts, "--experts", options.experts, kMostExperts);
  if (llama.experts != 0 && llama.active_experts == 0) llama.active_experts = 1;
  if (llama.experts == 0 && (options.active_experts || !options.routing.empty())) {
    throw hw::InputError(fmt::format("{}: {} has no experts, expected --experts",
                                     options.active_experts ? "--active-experts" : "--routing",
                                     size.name));
  }
  set(llama.active_experts, "--active-experts", options.active_experts, kMostExperts);
  if (llama.active_experts > llama.experts) {
    throw hw::InputError(fmt::format("--active-experts: found {}, expected 1 to the {} experts",
                                     llama.active_experts, llama.experts));
  }
  if (options.routing.empty()) return;
  if (options.routing != "uniform" && options.routing != "worst") {
    throw hw::InputError(fmt::format("--routing: found {}, expected uniform or worst",
                                     hw::printable(options.routing)));
  }
  size.routing =
      options.routing == "worst" ? model::RoutingKind::kWorst : model::RoutingKind::kUniform;
}

/// The bits of weights, and the parts that a Llama alone has; heads are as wide as its own unless
/// it is `resized`.
void set_llama(NetworkSize& size, const SizeOptions& options, bool resized) {
  size.four_bits = wants_four_bits(options.weight_bits.value_or(model::kWeightBits));
  if (!options.weight_format.empty()) {
    size.mx = wanted_mx_format(options.weight_format, options.weight_bits.has_value());
  }
  if (!size.llama) {
    for (const auto& [option, given] :
         {std::pair("--kv-heads", options.kv_heads.has_value()),
          std::pair("--window", options.window.has_value()),
          std::pair("--experts", options.experts.has_value()),
          std::pair("--active-experts", options.active_experts.has_value()),
          std::pair("--routing", !options.routing.empty()),
          std::pair("--weight-format", hw::is_mx(size.mx))}) {
      if (given) {
        throw hw::InputError(fmt::format("{}: {} is no Llama, expected none", option, size.name));
      }
    }
    return;
  }
  model::LlamaShape& llama = *size.llama;
  llama.layers = size.shape.layers;
  llama.width = size.shape.width;
  llama.heads = size.shape.heads;
  llama.hidden = size.shape.hidden;
  if (resized) llama.head_width = size.shape.head_width();
  set(llama.kv_heads, "--kv-heads", options.kv_heads, kMaxChannels);
  set(llama.window, "--window", options.window, kMaxTokens);
  set_experts(size, options);
  if (llama.heads % llama.kv_heads != 0) {
    throw hw::InputError(fmt::format("--kv-heads: found {}, expected a divisor of the {} heads",
                                     llama.kv_heads, llama.heads));
  }
  if (llama.head_width % 2 != 0) {
    throw hw::InputError(fmt::format("{}: heads of {} features, expected an even number for RoPE",
                                     size.name, llama.head_width));
  }
}

/// Blocks are all that can be left out.
NetworkSize resnet_size(NetworkSize size, SizeOptions options) {
  model::ResNetShape& resnet = *size.resnet;
  set(size.shape.layers, "--layers", options.layers, resnet.layers());
  resnet = resnet.first(size.shape.layers);
  size.length = 1;
  options.layers.reset();
  require_no_size(size.name, options);
  return size;
}

void set_decode(NetworkSize& size, const SizeOptions& options) {
  if (options.past && !options.decode) {
    throw hw::InputError("--past: tokens in the cache of --decode, expected both");
  }
  if (!options.decode) return;
  if (!size.shape.causal) {
    throw hw::InputError(fmt::format(
        "--decode: {} is an encoder, whose tokens know those after; expected a gpt2 or a Llama",
        size.name));
  }
  if (size.batch != 1 && !size.llama) {
    throw hw::InputError(
        fmt::format("--batch: found {}, expected 1 with --decode, or a Llama", size.batch));
  }
  size.decode = true;
  const std::int64_t past = options.past.value_or(0);
  const std::int64_t room = std::min(std::int64_t{size.positions}, kMaxTokens) - 1;
  if (past < 0 || past > room) {
    throw hw::InputError(fmt::format("--past: found {}, expected 0 to {}", past, room));
  }
  size.past = static_cast<std::uint32_t>(past);
  if (size.tokens() > size.positions) {
    throw hw::InputError(fmt::format(
        "--length: found {} after {} in the cache, {} has {} positions, expected 1 to {}",
        size.length, size.past, size.name, size.positions, size.positions - size.past));
  }
}

}  // namespace

bool wants_four_bits(std::int64_t bits, std::string_view option) {
  if (bits != model::kWeightBits && bits != model::kInt4WeightBits) {
    throw hw::InputError(fmt::format("{}: found {}, expected 8 or 4", option, bits));
  }
  return bits != model::kWeightBits;
}

hw::WeightFormat wanted_mx_format(const std::string& name, bool with_bits) {
  const std::optional<hw::WeightFormat> format = hw::find_mx_format(name);
  if (!format) {
    throw hw::InputError(fmt::format("--weight-format: found {}, expected {} or {}",
                                     hw::printable(name), name_of(hw::WeightFormat::kMxInt8),
                                     name_of(hw::WeightFormat::kMxFp4)));
  }
  if (with_bits) throw hw::InputError("--weight-format: has its bits, expected no --weight-bits");
  return *format;
}

bool is_shape_name(const std::string& name) {
  const auto& shapes = model::named_shapes();
  return model::find_llama_shape(name) != nullptr || model::find_resnet_shape(name) != nullptr ||
         std::any_of(shapes.begin(), shapes.end(),
                     [&](const model::NamedShape& shape) { return shape.name == name; });
}

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const model::NamedShape& shape : model::named_shapes()) names.emplace_back(shape.name);
  for (const model::NamedLlama& llama : model::llama_shapes()) names.emplace_back(llama.name);
  for (const model::NamedResNet& resnet : model::resnet_shapes()) names.emplace_back(resnet.name);
  return names;
}

NetworkSize network_size(const std::string& name, const SizeOptions& options,
                         std::uint32_t longest) {
  NetworkSize size = named_size(name);
  if (size.resnet) return resnet_size(std::move(size), options);
  set_length(size, options.length, longest);
  set(size.batch, "--batch", options.batch, kMaxTokens / std::max(size.length, 1U));
  set(size.shape.layers, "--layers", options.layers, kMaxLayers);
  set(size.shape.heads, "--heads", options.heads, kMaxChannels);
  set(size.shape.width, "--d", options.width, kMaxChannels);
  set(size.shape.hidden, "--ffn", options.hidden, kMaxChannels);
  const bool resized = options.heads.has_value() || options.width.has_value();
  if ((resized || !size.llama) && size.shape.width % size.shape.heads != 0) {
    throw hw::InputError(fmt::format("{}: {} heads do not divide the width {}, expected a divisor",
                                     size.name, size.shape.heads, size.shape.width));
  }
  set_llama(size, options, resized);
  set_decode(size, options);
  return size;
}

NetworkSize network_size(const std::string& name, const SizeOptions& options) {
  return network_size(
      name, options,
      static_cast<std::uint32_t>(std::min<std::int64_t>(named_size(name).positions, kMaxTokens)));
}

std::uint32_t text_length(const std::string& name, std::uint32_t positions,
                          const std::optional<std::int64_t>& length) {
  if (!length) return std::min(kDefaultTextLength, positions);
  if (*length < 1 || *length > positions) {
    throw hw::InputError(fmt::format("--length: found {}, {} has {} positions, expected 1 to {}",
                                     *length, hw::printable(name), positions, positions));
  }
  return static_cast<std::uint32_t>(*length);
}

void require_no_size(const std::string& model, const SizeOptions& options) {
  const std::pair<const char*, bool> given[] = {
      {"--length", options.length.has_value()},
      {"--batch", options.batch.has_value()},
      {"--layers", options.layers.has_value()},
      {"--heads", options.heads.has_value()},
      {"--kv-heads", options.kv_heads.has_value()},
      {"--d", options.width.has_value()},
      {"--ffn", options.hidden.has_value()},
      {"--window", options.window.has_value()},
      {"--weight-bits", options.weight_bits.has_value()},
      {"--experts", options.experts.has_value()},
      {"--active-experts", options.active_experts.has_value()},
      {"--routing", !options.routing.empty()},
      {"--weight-format", !options.weight_format.empty()},
      {"--decode", options.decode},
      {"--past", options.past.has_value()}};
  for (const auto& [option, is_given] : given) {
    if (!is_given) continue;
    throw hw::InputError(
        fmt::format("{}: {} has its own, expected none", option, hw::printable(model)));
  }
}

}  // namespace systole::testbench
