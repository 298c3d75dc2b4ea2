#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/machine/machine.h"
#include "model/graph/graph.h"
#include "model/metadata/resnet_shape.h"

namespace systole::model {

struct NamedResNet {
  std::string_view name;
  ResNetShape shape;
};

/// Networks of that kind known by name; their weights are not here.
[[nodiscard]] const std::vector<NamedResNet>& resnet_shapes();

/// The shape of that name, or null.
[[nodiscard]] const ResNetShape* find_resnet_shape(std::string_view name);

/// A residual network of that shape with random weights. Same arguments, same bits. With
/// seeded_picture() as input all activations use their codes well: neither all zero nor saturated.
/// Batch normalisation is part of the weights. Input "picture", s8 [pixels x channels], row by row;
/// output "fc.bias", s32 [1 x classes]. Nodes are "conv1", "pool1", "sS.B.conv1" to "conv3" of
/// block B of stage S, "sS.B.shortcut", "sS.B.residual", "pool2", "fc", with the suffixes of
/// model/build/convolution_nodes.h. `with_weights` off: a mere shape. Throws InputError if a count
/// is 0, if there are blocks after an empty stage, or if the picture is no multiple of 32 pixels.
[[nodiscard]] Graph make_seeded_resnet(const std::string& name, const ResNetShape& shape,
                                       std::uint64_t seed, const hw::Machine::Datapath& datapath,
                                       bool with_weights);

/// Values for the input of such a network.
[[nodiscard]] std::vector<std::int32_t> seeded_picture(const ResNetShape& shape,
                                                       std::uint64_t seed);

}  // namespace systole::model
