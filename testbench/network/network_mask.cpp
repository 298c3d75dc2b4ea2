#include "testbench/network/network_mask.h"

#include <fmt/format.h>

#include <cstddef>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/keep_mask.h"
#include "model/format/npy.h"

namespace systole::testbench {

std::vector<std::vector<std::uint8_t>> keep_of(const model::AttentionMask& mask) {
  std::vector<std::vector<std::uint8_t>> layers(mask.shape().layers);
  std::size_t cell = 0;
  for (auto& layer : layers) {
    layer.resize(mask.shape().heads * mask.shape().head_cells());
    for (std::uint8_t& keep : layer) keep = mask.kept(cell++) ? 1 : 0;
  }
  return layers;
}

std::vector<std::vector<std::uint8_t>> load_keep(const std::string& file,
                                                 const model::EncoderShape& shape,
                                                 std::uint32_t tokens) {
  const auto fail = [&](const std::string& what) {
    throw hw::InputError(hw::printable(file) + ": " + what);
  };
  if (shape.causal) fail("a mask for a decoder, which masks later tokens, expected an encoder");
  const model::AttentionMask mask = model::load_mask(model::Npy::open(file));
  const model::AttentionShape& found = mask.shape();
  const bool one_for_all = found.layers == 1;
  const model::AttentionShape expected{one_for_all ? 1 : shape.layers, shape.heads, tokens, tokens};
  if (!(found == expected)) {
    fail(fmt::format("a mask of {}, expected {} (layers x heads x queries x keys){}", found.text(),
                     expected.text(), one_for_all ? "" : ", or one layer for all"));
  }
  for (std::size_t row = 0; row < found.layers * found.heads * found.queries; ++row) {
    std::size_t kept = 0;
    for (std::size_t key = 0; key < found.keys; ++key) {
      kept += mask.kept(row * found.keys + key) ? 1U : 0U;
    }
    if (kept == 0) fail(model::row_text(found, row) + ": keeps no key, expected one at least");
  }
  std::vector<std::vector<std::uint8_t>> keep = keep_of(mask);
  if (one_for_all) keep.resize(shape.layers, std::vector<std::uint8_t>(keep.front()));
  return keep;
}

void set_keep(const std::string& file, std::uint32_t tokens, model::IntegerEncoder& encoder) {
  std::vector<std::vector<std::uint8_t>> keep = load_keep(file, encoder.shape, tokens);
  for (std::size_t layer = 0; layer < keep.size(); ++layer) {
    model::IntegerBlock& block = encoder.blocks.at(layer);
    try {
      static_cast<void>(model::prune_factor(block.score, encoder.shape.head_width(),
                                            encoder.datapath.multiplier_bits));
    } catch (const hw::InputError& error) {
      throw hw::InputError(
          fmt::format("{}: layer {}: {}", hw::printable(file), layer, error.what()));
    }
    block.keep = std::move(keep[layer]);
  }
}

}  // namespace systole::testbench
