#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/machine/machine.h"
#include "model/integer/integer_llama.h"
#include "model/metadata/llama_shape.h"

namespace systole::model {

struct NamedLlama {
  std::string_view name;
  LlamaShape shape;
};

/// Networks of that kind known by name; their weights are not here.
[[nodiscard]] const std::vector<NamedLlama>& llama_shapes();

/// The shape of that name, or null.
[[nodiscard]] const LlamaShape* find_llama_shape(std::string_view name);

/// A Llama of that shape with random weights, for texts of about `length` tokens. Same arguments,
/// same bits. With seeded_embedding() of its width as input all activations use their codes well:
/// neither all zero nor saturated. Without weights it is a mere shape. `int4`: the weights of its
/// blocks are. Throws InputError if a count
/// is 0, or if they do not go together.
[[nodiscard]] IntegerLlama make_seeded_llama(const std::string& name, const LlamaShape& shape,
                                             std::uint32_t length, std::uint64_t seed,
                                             const hw::Machine::Datapath& datapath,
                                             bool with_weights, bool int4 = false);

}  // namespace systole::model
