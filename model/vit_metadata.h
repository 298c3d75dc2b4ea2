#pragma once

#include <map>
#include <string>

#include "model/safetensors.h"
#include "model/vit_shape.h"

namespace systole::model {

/// The shape of a vision model in a file's metadata: img (pixels per side), patch, d (width), h
/// (heads), L (blocks), ratio (MLP hidden / width), ncls, post (1: post-norm), up (upsampling of
/// the pictures), ae (latent heads of the auto-encoder on Q and K, less than h; 0: none). Throws
/// InputError if a key is missing, out of range, or contradicts another or the tensors.
[[nodiscard]] VitShape read_vit_shape(const Safetensors& file);

/// The inverse. Throws std::invalid_argument if `hidden` is no multiple of the width.
[[nodiscard]] std::map<std::string, std::string> vit_shape_metadata(const VitShape& shape);

}  // namespace systole::model
