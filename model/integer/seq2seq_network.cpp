#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "model/integer/integer_network.h"
#include "model/integer/integer_vit_check.h"
#include "model/network/network_walk.h"

namespace systole::model {

IntegerSeq2Seq read_seq2seq_network(const NetworkFile& file) {
  const NetworkWalk walk(file);
  const NetworkNode& output = walk.last();
  if (!output.is("linear")) file.fail(output, "expected the linear layer that makes logits");
  IntegerSeq2Seq network;
  std::string memory;
  network.decoder = read_text(walk, walk.before(output, "layer_norm"), &memory, kTargetIds);
  if (memory.empty()) file.fail(output, "its blocks attend to no encoder");
  const NetworkNode* const states = file.producer(memory);
  if (states == nullptr) file.fail(output, "its blocks attend to a graph input");
  network.encoder = read_text(walk, *states, nullptr, "input_ids");
  const EncoderShape &encoder = network.encoder.shape.encoder,
                     &decoder = network.decoder.shape.encoder;
  if (encoder.causal || !encoder.post_norm || !decoder.causal || network.encoder.head) {
    file.fail(*states, "expected a post-norm encoder that is not causal before a decoder that is");
  }
  if (encoder.width != decoder.width) file.fail(*states, "expected the width of the decoder");
  read_linear(file, output, network.output);
  if (network.output.outputs != network.decoder.shape.vocabulary) {
    file.fail(output, "expected a logit for each word of the decoder");
  }
  network.logit_scale = file.scale_of(output.output);
  network.name = file.document().name;
  network.source = file.document().source;
  const auto token = [&](const char* key) {
    const nlohmann::json& architecture = file.document().architecture;
    const auto found = architecture.find(key);
    if (found == architecture.end() || !found->is_number_unsigned() ||
        found->get<std::uint64_t>() >= network.decoder.shape.vocabulary) {
      throw hw::InputError(fmt::format("{}: architecture '{}': expected a token from 0 to {}",
                                       hw::printable(file.path()), key,
                                       network.decoder.shape.vocabulary - 1));
    }
    return found->get<std::int32_t>();
  };
  network.tokens = {token("begin"), token("end")};
  check_integer_seq2seq(network, file.path());
  return network;
}

}  // namespace systole::model
