#include "testbench/run_subject.h"

#include <algorithm>

#include "hw/error.h"
#include "hw/printable.h"
#include "model/graph_builder.h"

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
  if (is_shape_name(request.model)) check_seeded(request);
  if (is_shape_name(request.model) && request.size.decode) {
    network_.size = network_size(request.model, request.size);
    network_.name = network_.size->name;
    decoder_ = std::make_unique<DecoderRun>(*network_.size, machine, request.functional);
    return;
  }
  network_ = load_network(request.model, request.size, machine, request.functional);
  if (network_.size) {
    inputs_ = seeded_inputs(network_, machine, std::max<std::size_t>(request.limit, 1));
  } else {
    const std::string source = request.input.empty() ? default_data() : request.input;
    pictures_ = model::load_images(source);
    inputs_ = network_inputs(network_, pictures_, request.limit);
    if (request.needs_labels && pictures_.labels.empty()) {
      throw hw::InputError(hw::printable(source) + ": has no labels, which --min-accuracy needs");
    }
  }
  mapping_ = mapper::map_graph(network_.graph, machine);
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
