#include "testbench/run_subject.h"

#include <algorithm>

#include "hw/error.h"
#include "hw/printable.h"
#include "model/graph_builder.h"
#include "model/token_ids.h"

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

}  // namespace

RunSubject::RunSubject(const RunRequest& request, const hw::Machine& machine) {
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
    network_ = seeded_network(size, machine, request.functional);
    inputs_ = seeded_inputs(network_, machine, std::max<std::size_t>(request.limit, 1));
  } else {
    network_ = read_network(request.model, machine);
    if (network_.text) {
      take_texts(request, machine);
      if (decoder_) return;
    } else {
      require_no_size(request.model, request.size);
      take_pictures(request);
    }
  }
  mapping_ = mapper::map_graph(network_.graph, machine);
}

void RunSubject::take_pictures(const RunRequest& request) {
  const std::string source = request.input.empty() ? default_data() : request.input;
  pictures_ = model::load_images(source, network_.vit->shape.pictures());
  inputs_ = network_inputs(network_, pictures_, request.limit);
  if (request.needs_labels && pictures_.labels.empty()) {
    throw hw::InputError(hw::printable(source) + ": has no labels, which --min-accuracy needs");
  }
}

void RunSubject::take_texts(const RunRequest& request, const hw::Machine& machine) {
  const model::IntegerText& text = *network_.text;
  SizeOptions others = request.size;
  others.decode = false;
  others.past.reset();
  require_no_size(request.model, others);
  if (request.needs_labels) {
    throw hw::InputError("--min-accuracy: texts have no labels, expected pictures");
  }
  if (request.input.empty()) {
    throw hw::InputError("--input: " + text.name +
                         " is a text network, expected a safetensors file with input_ids");
  }
  if (request.size.past && !request.size.decode) {
    throw hw::InputError("--past: tokens in the cache of --decode, expected both");
  }
  const model::TokenIds ids =
      model::load_token_ids(request.input, text.shape.vocabulary, text.shape.positions);
  if (request.size.decode) {
    const std::int64_t past = request.size.past.value_or(0);
    if (past < 0 || past > text.shape.positions) {
      throw hw::InputError("--past: found " + std::to_string(past) + ", expected 0 to " +
                           std::to_string(text.shape.positions));
    }
    decoder_ = std::make_unique<DecoderRun>(
        text_work(text, ids.text(0), static_cast<std::uint32_t>(past), machine), machine);
    return;
  }
  set_text_length(network_, static_cast<std::uint32_t>(ids.length), machine);
  const std::size_t count = request.limit == 0 ? ids.count : std::min(request.limit, ids.count);
  for (std::size_t i = 0; i < count; ++i) inputs_.push_back(text_input(network_, ids.text(i)));
}

std::function<const mapper::Mapping&(std::size_t)> RunSubject::next_step() const {
  if (!decoder_) return {};
  return [decoder = decoder_.get()](std::size_t inference) -> const mapper::Mapping& {
    return decoder->step(inference);
  };
}

std::uint64_t RunSubject::macs() const {
  return decoder_ ? decoder_->macs() / decoder_->inputs().size() : model::count_macs(graph());
}

}  // namespace systole::testbench
