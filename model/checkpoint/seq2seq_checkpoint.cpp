#include "model/checkpoint/seq2seq_checkpoint.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/checkpoint_reader.h"
#include "model/checkpoint/gpt2_names.h"
#include "model/metadata/config_file.h"
#include "model/metadata/metadata.h"

namespace systole::model {
namespace {

constexpr const char* kSeq2SeqHead = "decoder.lm_head.weight";

/// Metadata `key`, else `config_key` of config.json in the directory of the file.
std::int32_t special_token(const Safetensors& file, const char* key, const char* config_key,
                           std::uint32_t vocabulary) {
  if (file.metadata().count(key) != 0) {
    return static_cast<std::int32_t>(metadata_number(file, key, 0, vocabulary - 1));
  }
  const auto config = config_beside(file.path(), kConfigFile);
  if (!config || config->values.count(config_key) == 0) {
    throw hw::InputError(hw::printable(file.path()) + ": expected metadata '" + key + "' or " +
                         config_key + " in config.json, a token of the decoder");
  }
  const nlohmann::json& value = config->values.at(config_key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= vocabulary) {
    config->fail(config_key, "a number from 0 to " + std::to_string(vocabulary - 1));
  }
  return value.get<std::int32_t>();
}

}  // namespace

Seq2SeqCheckpoint load_seq2seq_checkpoint(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  if (!is_seq2seq_checkpoint(file)) {
    throw hw::InputError(hw::printable(path) +
                         ": expected an encoder-decoder of BERT and GPT-2 with attention between "
                         "them");
  }
  CheckpointReader reader(file);
  Seq2SeqCheckpoint checkpoint;
  checkpoint.path = path;
  checkpoint.encoder = read_bert(reader, "encoder.");
  checkpoint.decoder = read_gpt2(reader, "decoder.transformer.", true);
  const TextShape& shape = checkpoint.decoder.shape;
  if (checkpoint.encoder.shape.encoder.width != shape.encoder.width) {
    throw hw::InputError(hw::printable(path) + ": encoder and decoder have widths of " +
                         std::to_string(checkpoint.encoder.shape.encoder.width) + " and " +
                         std::to_string(shape.encoder.width) + ", expected the same");
  }
  checkpoint.output.inputs = shape.encoder.width;
  checkpoint.output.outputs = shape.vocabulary;
  checkpoint.output.weight =
      file.has(kSeq2SeqHead) ? reader.read(kSeq2SeqHead, {shape.vocabulary, shape.encoder.width})
                             : checkpoint.decoder.word;
  checkpoint.output.bias.assign(shape.vocabulary, 0.0);
  checkpoint.tokens.begin =
      special_token(file, "begin", "decoder_start_token_id", shape.vocabulary);
  checkpoint.tokens.end = special_token(file, "end", "eos_token_id", shape.vocabulary);
  skip_task_heads(reader, "encoder.");
  reader.check_all_used();
  return checkpoint;
}

}  // namespace systole::model
