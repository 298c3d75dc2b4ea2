#include "testbench/network/run_subject.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/build/seq2seq_graph.h"
#include "model/graph/graph_builder.h"
#include "model/graph/valid_keys.h"
#include "model/text/token_ids.h"
#include "testbench/network/accuracy.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {
namespace {

void check_seeded(const RunRequest& request) {
  if (!request.input.empty()) {
    throw hw::InputError("--input: " + request.model + " runs on seeded values, expected none");
  }
  if (request.needs_labels) {
    throw hw::InputError("--min-accuracy: " + request.model +
                         " has seeded weights, which have no accuracy");
  }
  if (request.size.decode && request.limit != 0) {
    throw hw::InputError("--limit: with --decode, --length says how many tokens, expected none");
  }
}

/// The texts of a text network or a Llama, whatever is to be done with them.
model::TokenIds read_texts(const RunRequest& request, const std::string& name,
                           const model::TextShape& shape) {
  SizeOptions others = request.size;
  others.decode = false;
  others.past.reset();
  require_no_size(request.model, others);
  if (request.needs_labels && (shape.classes == 0 || request.size.decode)) {
    throw hw::InputError("--min-accuracy: " + name +
                         " does not classify texts, expected pictures, or texts and a classifier");
  }
  if (request.input.empty()) {
    throw hw::InputError("--input: " + name +
                         " is a text network, expected a safetensors file with input_ids");
  }
  if (request.size.past && !request.size.decode) {
    throw hw::InputError("--past: tokens in the cache of --decode, expected both");
  }
  const std::int64_t past = request.size.past.value_or(0);
  if (past < 0 || past > shape.positions) {
    throw hw::InputError("--past: found " + std::to_string(past) + ", expected 0 to " +
                         std::to_string(shape.positions));
  }
  return model::load_token_ids(request.input, shape);
}

/// Commands of attention engines have one length.
void refuse_padding_on_engines(const std::string& texts, const hw::Machine& machine) {
  if (machine.attention.lines == 0) return;
  throw hw::InputError(hw::printable(texts) + ": attention_mask: found padding, but " +
                       machine.name + " has attention engines, expected texts without padding");
}

}  // namespace

RunSubject::RunSubject(const RunRequest& request, const hw::Machine& machine) {
  if (!request.mask.empty() && request.size.decode) {
    throw hw::InputError("--mask: of all tokens at once, expected no --decode");
  }
  if (is_shape_name(request.model)) {
    check_seeded(request);
    const NetworkSize size = network_size(request.model, request.size);
    if (size.decode) {
      network_.size = size;
      network_.name = size.name;
      decoder_ =
          std::make_unique<DecoderRun>(seeded_work(size, machine, request.functional), machine);
      return;
    }
    network_ = seeded_network(size, machine, request.functional, request.mask);
    name_mask(request.mask);
    inputs_ = seeded_inputs(network_, std::max<std::size_t>(request.limit, 1), request.functional);
  } else {
    network_ = read_network(request.model, machine, request.mask);
    name_mask(request.mask);
    if (network_.text || network_.llama || network_.seq2seq) {
      if (network_.text) {
        take_texts(request, machine);
      } else if (network_.seq2seq) {
        take_pairs(request, machine);
      } else {
        take_prompts(request, machine);
      }
      if (steps() != nullptr) return;
    } else if (network_.size || (!network_.vit && !network_.pictures)) {
      check_seeded(request);
      require_no_size(request.model, request.size);
      inputs_ =
          seeded_inputs(network_, std::max<std::size_t>(request.limit, 1), request.functional);
    } else {
      require_no_size(request.model, request.size);
      take_pictures(request);
    }
  }
  if (request.maps) mapping_ = mapper::map_graph(network_.graph, machine);
}

void RunSubject::name_mask(const std::string& mask) {
  if (mask.empty()) return;
  const std::string file = std::filesystem::path(mask).filename().string();
  network_.name += " under " + hw::printable(file);
}

void RunSubject::take_pictures(const RunRequest& request) {
  const std::string source = request.input.empty() ? default_data() : request.input;
  model::Dataset pictures = model::load_images(source, picture_format(network_));
  inputs_ = network_inputs(network_, pictures, request.limit);
  take_labels(source, std::move(pictures.labels), request.needs_labels);
}

void RunSubject::take_labels(const std::string& source, std::vector<std::uint32_t> labels,
                             bool needed) {
  labels_ = std::move(labels);
  if (needed && labels_.empty()) {
    throw hw::InputError(hw::printable(source) + ": has no labels, which --min-accuracy needs");
  }
}

void RunSubject::take_texts(const RunRequest& request, const hw::Machine& machine) {
  const model::IntegerText& text = *network_.text;
  const model::TokenIds ids = read_texts(request, text.name, text.shape);
  take_labels(request.input, ids.labels, request.needs_labels);
  if (request.size.decode) {
    decoder_ = std::make_unique<DecoderRun>(
        text_work(text, ids.text(0).trimmed().ids,
                  static_cast<std::uint32_t>(request.size.past.value_or(0)), machine),
        machine);
    return;
  }
  set_text_length(network_, static_cast<std::uint32_t>(ids.length), machine, request.mask);
  const std::size_t count = request.limit == 0 ? ids.count : std::min(request.limit, ids.count);
  for (std::size_t i = 0; i < count; ++i) inputs_.push_back(text_input(network_, ids.text(i)));
  std::vector<std::size_t> valid(ids.valid.begin(),
                                 ids.valid.begin() + static_cast<std::ptrdiff_t>(count));
  if (std::any_of(valid.begin(), valid.end(),
                  [&](std::size_t tokens) { return tokens < ids.length; })) {
    if (!text.shape.encoder.causal) refuse_padding_on_engines(request.input, machine);
    take_padding(std::move(valid), machine);
  }
}

void RunSubject::take_prompts(const RunRequest& request, const hw::Machine& machine) {
  const model::IntegerLlama& llama = *network_.llama;
  const model::TokenIds ids = read_texts(request, llama.name, model::llama_text_shape(llama.shape));
  if (request.size.decode) {
    decoder_ = std::make_unique<DecoderRun>(
        llama_work(llama, ids.text(0).trimmed().ids,
                   static_cast<std::uint32_t>(request.size.past.value_or(0)), machine),
        machine);
    return;
  }
  if (std::any_of(ids.valid.begin(), ids.valid.end(),
                  [&](std::size_t tokens) { return tokens < ids.length; })) {
    throw hw::InputError(hw::printable(request.input) +
                         ": attention_mask: found padding, expected prompts without any for a "
                         "Llama: its logits are of the last token");
  }
  if (llama.shape.experts != 0 && ids.count != 1 && request.limit != 1) {
    throw hw::InputError(hw::printable(request.input) + ": found " + std::to_string(ids.count) +
                         " prompts, but the program of experts is that of one, expected --limit 1");
  }
  set_llama_length(network_, static_cast<std::uint32_t>(ids.length), machine, ids.text(0).ids);
  const hw::DType type = network_.graph.tensors[input_tensor(network_.graph)].type;
  const std::size_t count = request.limit == 0 ? ids.count : std::min(request.limit, ids.count);
  for (std::size_t i = 0; i < count; ++i) {
    inputs_.push_back(embedding_bytes(model::embed_tokens(llama, ids.text(i).ids), type));
  }
}

void RunSubject::take_pairs(const RunRequest& request, const hw::Machine& machine) {
  const model::IntegerSeq2Seq& network = *network_.seq2seq;
  require_no_size(request.model, request.size);
  if (request.input.empty()) {
    throw hw::InputError("--input: " + network.name +
                         " is an encoder-decoder, expected a safetensors file with input_ids and "
                         "decoder_input_ids");
  }
  const model::TextPairs texts = model::load_text_pairs(
      request.input, network.encoder.shape, network.decoder.shape, network.tokens.begin);
  const std::size_t count =
      request.limit == 0 ? texts.source.count : std::min(request.limit, texts.source.count);
  set_pair_length(network_, static_cast<std::uint32_t>(texts.source.length),
                  static_cast<std::uint32_t>(texts.target.length), machine);
  const hw::DType type = network_.graph.tensors[input_tensor(network_.graph)].type;
  for (std::size_t i = 0; i < count; ++i) {
    inputs_.push_back(embedding_bytes(
        model::embed_pair(network, texts.source.text(i).ids, texts.target.text(i).ids), type));
    targets_.push_back(texts.target.text(i).trimmed().ids);
  }
  std::vector<std::size_t> valid(texts.source.valid.begin(),
                                 texts.source.valid.begin() + static_cast<std::ptrdiff_t>(count));
  if (std::any_of(valid.begin(), valid.end(),
                  [&](std::size_t tokens) { return tokens < texts.source.length; })) {
    refuse_padding_on_engines(request.input, machine);
    take_padding(std::move(valid), machine);
  }
}

std::optional<double> RunSubject::accuracy(
    const std::vector<std::vector<std::uint8_t>>& outputs) const {
  if (!labels_.empty()) return accuracy_of(graph(), labels_, outputs);
  if (targets_.empty()) return std::nullopt;
  const model::Tensor& logits = graph().tensors[output_tensor(graph())];
  std::size_t right = 0, all = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    all += targets_[i].size();
    right += right_tokens(widen(outputs[i], logits.type), logits.cols, targets_[i],
                          network_.seq2seq->tokens.end);
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

void RunSubject::take_padding(std::vector<std::size_t> valid, const hw::Machine& machine) {
  padded_ = std::make_unique<SteppedRun>(
      std::move(network_.graph), std::move(inputs_),
      [valid = std::move(valid), pairs = network_.seq2seq.has_value()](model::Graph& graph,
                                                                       std::size_t text) {
        const auto tokens = static_cast<std::uint32_t>(valid[text]);
        if (pairs) {
          model::attend_to_source(graph, tokens);
        } else {
          model::attend_to_keys(graph, tokens);
        }
      },
      machine);
}

std::function<const mapper::Mapping&(std::size_t)> RunSubject::next_step(unsigned threads) const {
  if (steps() == nullptr) return {};
  if (threads > 1) steps()->map_ahead();
  return [steps = steps()](std::size_t inference) -> const mapper::Mapping& {
    return steps->step(inference);
  };
}

std::function<void(std::size_t)> RunSubject::move() const {
  if (steps() == nullptr) return {};
  return [steps = steps()](std::size_t inference) { steps->move(inference); };
}

std::uint64_t RunSubject::macs() const {
  return steps() != nullptr ? steps()->macs() / steps()->inputs().size()
                            : model::count_macs(graph());
}

}  // namespace systole::testbench
