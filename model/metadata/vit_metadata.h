#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "model/format/safetensors.h"
#include "model/metadata/vit_shape.h"

namespace systole::model {

// Wide enough for every published encoder; beyond, sums and file offsets would need more care.
inline constexpr std::uint32_t kMaxVitLayers = 256;
inline constexpr std::uint32_t kMaxVitWidth = 1U << 14;
inline constexpr std::uint32_t kMaxVitRatio = 4;
inline constexpr std::uint32_t kMaxVitImage = 1U << 11;
inline constexpr std::uint32_t kMaxVitPatch = 1U << 7;
inline constexpr std::uint32_t kMaxVitClasses = 1U << 16;
inline constexpr std::uint32_t kMaxVitUpsample = 2;
inline constexpr std::uint32_t kMaxVitChannels = 16;

/// The shape of a vision model in a file's metadata: img (pixels per side), patch, d (width), h
/// (heads), L (blocks), ratio (MLP hidden / width), ncls, post (1: post-norm), up (upsampling of
/// the pictures), ae (latent heads of the auto-encoder on Q and K, less than h; 0: none). Pictures
/// other than the digits have besides: channels (of a picture), levels (of a sample, 17 or 256).
/// Throws InputError if a key is missing, out of range, or contradicts another or the tensors.
[[nodiscard]] VitShape read_vit_shape(const Safetensors& file);

/// The inverse. Throws std::invalid_argument if `hidden` is no multiple of the width.
[[nodiscard]] std::map<std::string, std::string> vit_shape_metadata(const VitShape& shape);

}  // namespace systole::model
