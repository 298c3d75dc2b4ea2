#include "model/build/seq2seq_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "model/build/encoder_blocks.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"
#include "model/graph/valid_keys.h"
#include "model/integer/integer_text.h"

namespace systole::model {
namespace {

View add_memory(GraphBuilder& builder, const IntegerSeq2Seq& network, std::uint32_t source,
                Tensor::Kind kind) {
  const EncoderShape& shape = network.decoder.shape.encoder;
  Tensor memory;
  memory.name = kMemoryTensor;
  memory.rows = source;
  memory.cols = shape.layers * 2 * shape.width;
  memory.kind = kind;
  return builder.whole(builder.add_tensor(std::move(memory)));
}

/// An input of the graph with the rows of a part, or of both.
View add_input(GraphBuilder& builder, const IntegerText& text, const std::string& name,
               std::uint32_t rows) {
  EncoderBlocks blocks(builder, text.encoder);
  return blocks.input(name, rows, blocks.residual_type(), text.embedding_scale);
}

/// The encoder on embedded tokens, and what the decoder reads of its states, to `memory`.
void append_encoder(GraphBuilder& builder, const IntegerSeq2Seq& network, View stream,
                    View memory) {
  EncoderBlocks::Rows rows;
  rows.prefix = "encoder.";
  const IntegerText& text = network.encoder;
  EncoderBlocks blocks(builder, text.encoder, rows);
  stream = blocks.layer_norm("encoder.norm", stream, text.norm);
  for (std::uint32_t i = 0; i < text.shape.encoder.layers; ++i) stream = blocks.block(i, stream);
  rows.prefix = "decoder.";
  EncoderBlocks(builder, network.decoder.encoder, rows).encoder_keys_values(stream, memory);
}

/// The decoder on embedded tokens.
void append_decoder(GraphBuilder& builder, const IntegerSeq2Seq& network, View stream,
                    EncoderBlocks::Rows rows) {
  const IntegerText& text = network.decoder;
  rows.prefix = "decoder.";
  EncoderBlocks blocks(builder, text.encoder, std::move(rows));
  for (std::uint32_t i = 0; i < text.shape.encoder.layers; ++i) stream = blocks.block(i, stream);
  stream = blocks.layer_norm("decoder.norm", stream, text.norm);
  const View logits =
      blocks.linear("output", {stream}, network.output, kLogitBits, hw::DType::kS32);
  Tensor& output = builder.tensor(logits.tensor);
  output.name = "logits";
  output.kind = Tensor::Kind::kOutput;
  output.scale = network.logit_scale;
}

}  // namespace

Graph make_seq2seq_graph(const IntegerSeq2Seq& network, std::uint32_t source,
                         std::uint32_t target) {
  GraphBuilder builder(network.name);
  EncoderBlocks::Rows rows;
  rows.memory = add_memory(builder, network, source, Tensor::Kind::kActivation);
  const View both = add_input(builder, network.encoder, kSourceEmbedding, source + target);
  View first = both, rest = both;
  first.rows = source;
  rest.row = source;
  rest.rows = target;
  append_encoder(builder, network, first, rows.memory);
  append_decoder(builder, network, rest, rows);
  return std::move(builder).take();
}

std::vector<std::int32_t> embed_pair(const IntegerSeq2Seq& network,
                                     const std::vector<std::int32_t>& source,
                                     const std::vector<std::int32_t>& target) {
  std::vector<std::int32_t> rows = embed_tokens(network.encoder, source);
  const std::vector<std::int32_t> rest = embed_tokens(network.decoder, target);
  rows.insert(rows.end(), rest.begin(), rest.end());
  return rows;
}

void attend_to_source(Graph& graph, std::uint32_t tokens) {
  attend_to_keys(graph, tokens, [](const Node& node) {
    const bool decoder = node.name.rfind("decoder.", 0) == 0;
    return !decoder || node.name.find(".cross.") != std::string::npos;
  });
}

Graph make_seq2seq_encoder_graph(const IntegerSeq2Seq& network, std::uint32_t source) {
  GraphBuilder builder(network.name);
  append_encoder(builder, network, add_input(builder, network.encoder, kSourceEmbedding, source),
                 add_memory(builder, network, source, Tensor::Kind::kOutput));
  return std::move(builder).take();
}

std::string seq2seq_cache_name(std::uint32_t block, std::uint32_t sequence,
                               std::uint32_t sequences) {
  EncoderBlocks::Rows rows;
  rows.prefix = "decoder.";
  rows.sequences = sequences;
  return EncoderBlocks::cache_name(rows, block, sequence);
}

Graph make_seq2seq_decode_graph(const IntegerSeq2Seq& network, std::uint32_t positions,
                                std::uint32_t source, std::uint32_t sequences) {
  GraphBuilder builder(network.name);
  EncoderBlocks::Rows rows;
  rows.sequences = sequences;
  rows.cache = positions;
  rows.memory = add_memory(builder, network, source, Tensor::Kind::kState);
  append_decoder(builder, network, add_input(builder, network.decoder, kTargetEmbedding, sequences),
                 rows);
  return std::move(builder).take();
}

}  // namespace systole::model
