#pragma once

#include <string>

#include "model/integer/integer_layers.h"
#include "model/integer/integer_llama.h"
#include "model/integer/integer_seq2seq.h"
#include "model/integer/integer_text.h"
#include "model/integer/integer_vit.h"

/// Integer models as files: safetensors with all constants, so that a model computes the same bits
/// everywhere, whatever the mathematics library that quantised it.
///
/// Metadata: format, version, name, source, the shape (model/metadata/vit_metadata.h) and the
/// datapath under the names of the machine file. Tensors: those of the checkpoint with integer
/// contents, and beside every weight and bias (s8 [outputs, inputs], s32 [outputs]) multiplier
/// (s32) and shift (s8) of the requantisation; LayerNorms have multiplier, bias and one shift.
/// Metadata ae_folded is 1 where the encoders of an auto-encoder are folded into the projections.
namespace systole::model {

inline constexpr const char* kIntegerModelFormat = "systole-integer-vit";
inline constexpr const char* kIntegerTextFormat = "systole-integer-text";
inline constexpr const char* kIntegerModelVersion = "1";

/// Writes the file, whole or not at all; throws InputError if it cannot be written.
void save_integer_vit(const IntegerVit& vit, const std::string& path);

/// Loads and checks such a file, or a network file (model/integer/integer_network.h). Throws
/// InputError if it is no integer model of this version, if a tensor is missing, has another type
/// or shape or is not part of the model, or if a constant does not fit the datapath
/// (model/integer/integer_vit_check.h).
[[nodiscard]] IntegerVit load_integer_vit(const std::string& path);

/// The same for a text network; its tables of words and positions are s32 in steps of the residual
/// stream, the metadata of its shape are L, d, h, hidden, post, causal, vocabulary,
/// positions and token_types.
void save_integer_text(const IntegerText& text, const std::string& path);
[[nodiscard]] IntegerText load_integer_text(const std::string& path);

/// Of a network file alone.
[[nodiscard]] IntegerLayers load_integer_layers(const std::string& path);
[[nodiscard]] IntegerSeq2Seq load_integer_seq2seq(const std::string& path);
[[nodiscard]] IntegerLlama load_integer_llama(const std::string& path);
/// The metadata of a file's tokeniser, empty if it has none.
[[nodiscard]] std::string network_tokeniser(const std::string& path);

/// What a safetensors file says that it is: a checkpoint if it does not say. kIntegerLayers,
/// kIntegerSeq2Seq, kIntegerLlama and kIntegerOperators: a network file alone has them
/// (model/integer/integer_network.h, model/build/operator_graph.h).
enum class ModelKind {
  kIntegerVit,
  kIntegerText,
  kIntegerSeq2Seq,
  kIntegerLayers,
  kIntegerLlama,
  kIntegerOperators,
  kCheckpoint
};
[[nodiscard]] ModelKind model_kind(const std::string& path);

}  // namespace systole::model
