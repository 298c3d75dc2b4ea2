#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "fuzz/target.h"
#include "model/data/dataset.h"
#include "model/format/npy.h"
#include "model/format/npy_header.h"
#include "model/format/pnm.h"
#include "model/format/safetensors_header.h"
#include "model/mask/attention_mask.h"
#include "model/metadata/text_shape.h"
#include "model/network/strict_json.h"
#include "model/text/token_ids.h"

/// Files of numbers, pictures, masks and documents.
namespace systole::fuzz {

void read_safetensors(std::string_view bytes) {
  const model::SafetensorsHeader header = model::parse_safetensors(bytes, "file");
  std::size_t covered = 0;
  for (const auto& [name, view] : header.tensors) {
    require(view.name == name, "a tensor has its name");
    if (view.bytes == 0) continue;
    const auto* const data = reinterpret_cast<const char*>(view.data);
    require(data >= bytes.data() && data + view.bytes <= bytes.data() + bytes.size(),
            "a tensor is in its file");
    require(view.bytes == view.element_count() * model::dtype_bytes(view.dtype),
            "a tensor is as long as its shape says");
    covered += view.bytes;
  }
  require(covered <= bytes.size(), "tensors do not overlap");
}

void read_npy(std::string_view bytes) {
  const model::NpyHeader header = model::parse_npy_header(bytes, "file");
  require(header.data_begin <= bytes.size(), "an array begins in its file");
  const std::size_t elements = std::accumulate(header.shape.begin(), header.shape.end(),
                                               std::size_t{1}, std::multiplies<>());
  require(elements * model::dtype_bytes(header.dtype) == bytes.size() - header.data_begin,
          "an array is as long as its shape says");
  const std::string text = model::npy_header_text(header.dtype, header.shape);
  const model::NpyHeader again =
      model::parse_npy_header(text + std::string(bytes.substr(header.data_begin)), "again");
  require(again.dtype == header.dtype && again.shape == header.shape,
          "a header's text gives the header");
}

void read_picture(std::string_view bytes) {
  const model::Pnm picture = model::parse_pnm(bytes, "file");
  require(picture.samples.size() == picture.channels * picture.height * picture.width,
          "a picture has all its samples");
  for (const std::uint8_t sample : picture.samples) {
    require(sample <= picture.max_value, "a sample is at most the largest value");
  }
  const model::Dataset data = model::load_images(
      file_with("picture.ppm", bytes),
      {static_cast<std::uint32_t>(picture.channels), static_cast<std::uint32_t>(picture.height)});
  for (const std::uint8_t sample : data.samples) {
    require(sample < model::kDigitLevels, "a sample is less than the levels");
  }
}

void read_mask(std::string_view bytes) {
  const model::Npy array = model::Npy::open(file_with("mask.npy", bytes));
  const model::AttentionMask mask = model::load_mask(array);
  require(mask.sparsity() >= 0 && mask.sparsity() <= 1, "sparsity is a fraction");
  const std::vector<std::uint8_t> pruned = array.flags();
  for (std::size_t cell = 0; cell < pruned.size(); ++cell) {
    require(mask.kept(cell) == (pruned[cell] == 0), "a mask keeps what the file says");
  }
}

void read_token_ids(std::string_view bytes) {
  model::TextShape shape;
  shape.vocabulary = 100;
  shape.positions = 16;
  shape.token_types = 2;
  const model::TokenIds ids = model::load_token_ids(file_with("ids.safetensors", bytes), shape);
  require(ids.ids.size() == ids.count * ids.length && ids.valid.size() == ids.count,
          "there is an id for each token");
  for (const std::int32_t id : ids.ids) require(id >= 0 && id < 100, "an id is in the vocabulary");
  for (std::size_t i = 0; i < ids.count; ++i) {
    require(ids.valid[i] >= 1 && ids.valid[i] <= ids.length, "a text has tokens");
    static_cast<void>(ids.text(i).trimmed());
  }
}

void read_json(std::string_view bytes) {
  const nlohmann::json document = model::parse_strict_json(bytes, "document");
  require(model::parse_strict_json(document.dump(), "again") == document,
          "a document's text gives the document");
}

}  // namespace systole::fuzz
