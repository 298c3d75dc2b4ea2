#include "model/build/llama_graph.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "hw/function/layernorm.h"
#include "hw/function/rope.h"
#include "model/build/linear_nodes.h"
#include "model/build/llama_mlps.h"
#include "model/checkpoint/keep_mask.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "model/graph/stages.h"

namespace systole::model {
namespace {

/// Words that a row's sum of squares takes among the statistics.
constexpr std::uint32_t kSumWords = 4;

std::string llama_attention_name(std::size_t layer) {
  return "blocks." + std::to_string(layer) + ".attn.";
}

std::string cache_name(std::size_t layer, std::uint32_t sequence) {
  return llama_attention_name(layer) + "seq" + std::to_string(sequence) + ".cache";
}

class LlamaBlocks {
 public:
  /// `cache`: rows of a cache, for one token of each sequence, or `length` of one; 0: all `length`
  /// tokens at once.
  /// `every`: logits of all rows, else of the last one of each sequence.
  LlamaBlocks(const IntegerLlama& llama, std::uint32_t sequences, std::uint32_t length,
              std::uint32_t cache, bool every = false, const Routing& routing = {})
      : builder_(llama.name),
        llama_(llama),
        shape_(llama.shape),
        rounding_(llama.datapath.rounding),
        residual_type_(llama.datapath.residual_bits <= 16 ? hw::DType::kS16 : hw::DType::kS32),
        sequences_(sequences),
        length_(length),
        cache_(cache),
        every_(every),
        routing_(routing),
        mlps_(builder_, llama) {}

  Graph run() && {
    const std::uint32_t rows = sequences_ * length_;
    Tensor input;
    input.name = "embedding";
    input.rows = rows;
    input.cols = shape_.width;
    input.type = residual_type_;
    input.kind = Tensor::Kind::kInput;
    input.scale = llama_.embedding_scale;
    const View embedding = builder_.whole(builder_.add_tensor(std::move(input)));
    add_rope_table();
    if (cache_ == 0 && shape_.window != 0 && length_ > shape_.window) add_window_mask();

    Stream stream = summed("embedding", embedding, "stream");
    for (std::uint32_t i = 0; i < shape_.layers; ++i) {
      stream = block("blocks." + std::to_string(i) + ".", i, stream);
    }
    if (length_ != 1 && !every_) stream = last_tokens(stream);
    logits(norm("norm", stream, llama_.norm));
    return std::move(builder_).take();
  }

 private:
  /// The residual stream and the sums of squares of its rows.
  struct Stream {
    View values;
    TensorId sums = kNoTensor;
  };

  View add(const std::string& name, std::uint32_t rows, std::uint32_t cols, hw::DType type,
           Tensor::Kind kind = Tensor::Kind::kActivation) {
    Tensor tensor;
    tensor.name = name;
    tensor.rows = rows;
    tensor.cols = cols;
    tensor.type = type;
    tensor.kind = kind;
    return builder_.whole(builder_.add_tensor(std::move(tensor)));
  }

  /// Row s * length + p is of position p; of steps, row p * sequences + s.
  void add_rope_table() {
    const std::uint32_t positions = cache_ == 0 ? length_ : cache_;
    const std::vector<std::int16_t> table = hw::make_rope_table(positions, shape_.frequencies());
    const View view = add("rope", positions * sequences_, shape_.head_width, hw::DType::kS16,
                          Tensor::Kind::kConstant);
    std::vector<std::uint8_t>& data = builder_.tensor(view.tensor).data.edit();
    data.reserve(std::size_t{view.rows} * view.cols * 2);
    for (std::uint32_t row = 0; row < view.rows; ++row) {
      const std::uint32_t position = cache_ == 0 ? row % length_ : row / sequences_;
      for (std::uint32_t c = 0; c < view.cols; ++c) {
        const auto word = static_cast<std::uint16_t>(table[std::size_t{position} * view.cols + c]);
        data.push_back(static_cast<std::uint8_t>(word & 0xffU));
        data.push_back(static_cast<std::uint8_t>(word >> 8U));
      }
    }
    rope_ = cache_ == 0    ? view
            : length_ == 1 ? rows_of_part(view, positions - 1, positions)
                           : first_rows(view);
  }

  /// Of a cache or its table, for a chunk.
  [[nodiscard]] View first_rows(View view) const {
    view.rows = length_;
    return view;
  }

  /// Pushes the scores of keys before the window below all others.
  void add_window_mask() {
    window_ = add("window", length_, length_, hw::DType::kS8, Tensor::Kind::kConstant);
    std::vector<std::uint8_t>& data = builder_.tensor(window_.tensor).data.edit();
    data.assign(std::size_t{length_} * length_, 0);
    for (std::size_t row = shape_.window; row < length_; ++row) {
      const auto first = data.begin() + static_cast<std::ptrdiff_t>(row * length_);
      std::fill_n(first, row + 1 - shape_.window, static_cast<std::uint8_t>(kPrunedCode));
    }
  }

  /// NAME.clamp: `in` as the tensor `to` of the residual stream, with the sums of its rows.
  Stream summed(const std::string& name, View in, const std::string& to) {
    Stream stream;
    stream.sums = add(to + ".sums", in.rows, kSumWords, hw::DType::kS32).tensor;
    stream.values = add(to, in.rows, in.cols, residual_type_);
    builder_.tensor(stream.values.tensor).scale = llama_.embedding_scale;
    hw::Stage clamp = clamp_stage(llama_.datapath.residual_bits);
    clamp.side = hw::Reduction::kSumSquares;
    builder_.stage_to(name + ".clamp", in, clamp, stream.values, {{}, {}, stream.sums});
    return stream;
  }

  ProductInput norm(const std::string& name, const Stream& in, const IntegerRmsNorm& norm) {
    const auto normed = [&](unsigned bits, hw::DType type) {
      const View out =
          builder_.stage(name, in.values, rms_norm_stage(norm.fraction_bits, norm.shift, bits),
                         type, {norm.multiplier, {}, in.sums});
      builder_.tensor(out.tensor).scale = norm.scale;
      return out;
    };
    if (!llama_.row_scales) return {normed(kOperandBits, hw::DType::kS8)};
    // One chain cannot read the sums and leave the peaks.
    return peaked_codes(builder_, name, normed(kWideBits, hw::DType::kS16));
  }

  void requantised_to(const std::string& name, const ProductInput& in, const IntegerLinear& layer,
                      View out) {
    const View sum = linear_sums(builder_, name, in, layer, rounding_);
    builder_.stage_to(name + ".requantise", sum, factor_stage(layer, kOperandBits, rounding_), out,
                      {factor_parameters(layer), {}});
  }

  /// What a head's norm makes of its sums.
  View head_normed(const std::string& head, const ProductInput& in, const IntegerLinear& layer,
                   const IntegerRmsNorm& norm) {
    const View sum = linear_sums(builder_, head, in, layer, rounding_);
    const TensorId sums = add(head + ".sums", sum.rows, kSumWords, hw::DType::kS32).tensor;
    hw::Stage wide = factor_stage(layer, kWideBits, rounding_);
    wide.side = hw::Reduction::kSumSquares;
    const View values = builder_.stage(head + ".requantise", sum, wide, hw::DType::kS16,
                                       {factor_parameters(layer), {}, sums});
    return builder_.stage(head + ".norm", values,
                          rms_norm_stage(norm.fraction_bits, norm.shift, kWideBits),
                          hw::DType::kS16, {norm.multiplier, {}, sums});
  }

  /// Heads of queries or keys, each turned by the position of its row, side by side in `out`.
  void rotated(const std::string& name, const ProductInput& in, const IntegerLinear& all,
               const IntegerRmsNorm& norm, View out) {
    for (std::uint32_t h = 0; h * shape_.head_width < all.outputs; ++h) {
      const std::string head = name + ".head" + std::to_string(h);
      const std::uint32_t first = h * shape_.head_width;
      const IntegerLinear layer = outputs_of(all, first, shape_.head_width);
      const View wide = shape_.head_norms ? head_normed(head, in, layer, norm)
                                          : requantised(builder_, head, in, layer, kWideBits,
                                                        hw::DType::kS16, rounding_);
      builder_.stage_to(head + ".rope", wide, rope_stage(kLlamaRopeShift, kOperandBits, rounding_),
                        columns_of(out, first, shape_.head_width), {{}, rope_});
    }
  }

  Stream block(const std::string& prefix, std::uint32_t index, const Stream& in) {
    const IntegerLlamaBlock& block = llama_.blocks.at(index);
    const View attended =
        attention(prefix + "attn.", index, norm(prefix + "norm1", in, block.norm1), block);
    const ProductInput context = llama_.context_scales
                                     ? peaked_codes(builder_, prefix + "attn.context", attended)
                                     : ProductInput{attended};
    const Stream stream =
        residual(prefix + "attn.proj", prefix + "attn.residual", context, block.proj, in);
    const ProductInput normed = norm(prefix + "norm2", stream, block.norm2);
    if (shape_.experts != 0) return experts(prefix + "mlp.", index, normed, block, stream);
    const ProductInput gated =
        mlps_.gated(prefix + "mlp.", normed, block, block.gate, block.up, std::nullopt);
    return residual(prefix + "mlp.down", prefix + "mlp.residual", gated, block.down, stream);
  }

  /// The sum of what the experts of the routing give, in their order.
  Stream experts(const std::string& prefix, std::uint32_t index, const ProductInput& in,
                 const IntegerLlamaBlock& block, Stream stream) {
    const View shares = mlps_.shares(shares_name(index), prefix + "router", in, block);
    for (const std::uint32_t i : routed_experts(routing_, shape_, index)) {
      const IntegerExpert& expert = block.experts.at(i);
      const std::string name = prefix + "expert" + std::to_string(i) + ".";
      const View share = mlps_.spread(name + "share", columns_of(shares, i, 1));
      const ProductInput gated = mlps_.gated(name, in, block, expert.gate, expert.up, share);
      stream = residual(name + "down", name + "residual", gated, expert.down, stream);
    }
    return stream;
  }

  Stream residual(const std::string& layer, const std::string& to, const ProductInput& in,
                  const IntegerLinear& weights, const Stream& identity) {
    const View branch =
        requantised(builder_, layer, in, weights, kBranchBits, hw::DType::kS32, rounding_);
    const View sum = builder_.stage(layer + ".add", branch,
                                    add_tensor_stage(residual_type_, {}, kBranchBits, rounding_),
                                    hw::DType::kS32, {{}, identity.values});
    return summed(layer, sum, to);
  }

  View attention(const std::string& prefix, std::uint32_t index, const ProductInput& in,
                 const IntegerLlamaBlock& block) {
    const std::uint32_t kv = shape_.kv_width(), rows_at_hand = in.codes.rows;
    const View query = add(prefix + "queries", rows_at_hand, shape_.query_width(), hw::DType::kS8);
    rotated(prefix + "q", in, block.query, block.query_norm, query);

    std::vector<View> caches;
    View key, value;
    if (cache_ == 0) {
      key = add(prefix + "keys", rows_at_hand, kv, hw::DType::kS8);
      value = add(prefix + "values", rows_at_hand, kv, hw::DType::kS8);
    } else {
      for (std::uint32_t s = 0; s < sequences_; ++s) {
        caches.push_back(
            add(cache_name(index, s), cache_, 2 * kv, hw::DType::kS8, Tensor::Kind::kState));
      }
      // Several sequences have a row each in their own caches: they take it from here.
      const View now = length_ != 1      ? first_rows(caches[0])
                       : sequences_ == 1 ? rows_of_part(caches[0], cache_ - 1, cache_)
                                         : add(prefix + "kv", rows_at_hand, 2 * kv, hw::DType::kS8);
      key = columns_of(now, 0, kv);
      value = columns_of(now, kv, kv);
    }
    rotated(prefix + "k", in, block.key, block.key_norm, key);
    requantised_to(prefix + "v", in, block.value, value);
    if (sequences_ != 1) {
      for (std::uint32_t s = 0; s < caches.size(); ++s) {
        View now = key;
        now.cols = 2 * kv;
        builder_.stage_to(cache_name(index, s) + ".append", rows_of_part(now, s, sequences_),
                          clamp_stage(kOperandBits), rows_of_part(caches[s], cache_ - 1, cache_));
      }
    }

    const View context = add(prefix + "context", rows_at_hand, shape_.query_width(),
                             llama_.context_scales ? hw::DType::kS16 : hw::DType::kS8);
    for (std::uint32_t s = 0; s < sequences_; ++s) {
      // The heads of a token that share keys are the rows of one product.
      const std::uint32_t together = length_ == 1 ? shape_.group() : 1;
      for (std::uint32_t h = 0; h < shape_.heads; h += together) {
        const std::uint32_t width = shape_.head_width, shared = h / shape_.group() * width;
        const auto rows = [&](View view) { return rows_of_part(view, s, sequences_); };
        const auto heads = [&](View view) {
          View view_of = columns_of(rows(view), h * width, width);
          if (together != 1) {
            view_of.rows = together;
            view_of.folded = true;
          }
          return view_of;
        };
        AttentionHead head;
        head.query = heads(query);
        head.key = columns_of(caches.empty() ? rows(key) : caches[s], shared, width);
        head.value = columns_of(caches.empty() ? rows(value) : caches[s],
                                (caches.empty() ? 0 : kv) + shared, width);
        head.context = heads(context);
        head.score = block.score;
        head.context_factor = block.context;
        head.exp_to_code = llama_.exp_to_code;
        head.causal = length_ != 1;
        if (window_.tensor != kNoTensor) {
          head.pruned = window_;
          head.prune = prune_factor(block.score, width, llama_.datapath.multiplier_bits);
        }
        add_attention_head(builder_,
                           prefix + "seq" + std::to_string(s) + ".head" + std::to_string(h) + ".",
                           llama_.datapath, head);
      }
    }
    return context;
  }

  /// The last row of each sequence.
  Stream last_tokens(const Stream& in) {
    const View last = add("last.tokens", sequences_, shape_.width, residual_type_);
    for (std::uint32_t s = 0; s < sequences_; ++s) {
      builder_.stage_to("last.tokens.seq" + std::to_string(s),
                        rows_of_part(in.values, (s + 1) * length_ - 1, sequences_ * length_),
                        clamp_stage(llama_.datapath.residual_bits),
                        rows_of_part(last, s, sequences_));
    }
    return summed("last.tokens", last, "last");
  }

  void logits(const ProductInput& in) {
    Tensor words;
    words.name = "output.weight";
    words.rows = shape_.vocabulary;
    words.cols = shape_.width;
    words.kind = Tensor::Kind::kConstant;
    words.data = llama_.output.weight.as<std::uint8_t>();
    const View b = builder_.whole(builder_.add_tensor(std::move(words)));
    const View product = scaled_rows(builder_, "output",
                                     builder_.matmul("output", in.codes, b, true), in, rounding_);
    const View out =
        add("logits", in.codes.rows, shape_.vocabulary, hw::DType::kS32, Tensor::Kind::kOutput);
    builder_.stage_to("output.requantise", product,
                      factor_stage(llama_.output, kLogitBits, rounding_), out,
                      {factor_parameters(llama_.output), {}});
  }

  GraphBuilder builder_;
  const IntegerLlama& llama_;
  const LlamaShape& shape_;
  hw::Rounding rounding_;
  hw::DType residual_type_;
  std::uint32_t sequences_, length_, cache_;
  bool every_;
  Routing routing_;
  LlamaMlps mlps_;
  View rope_;    ///< of the rows at hand
  View window_;  ///< table of a sliding window, or none
};

}  // namespace

Graph make_llama_graph(const IntegerLlama& llama, std::uint32_t length, std::uint32_t sequences,
                       const Routing& routing) {
  return LlamaBlocks(llama, sequences, length, 0, false, routing).run();
}

Graph make_llama_text_graph(const IntegerLlama& llama, std::uint32_t length) {
  return LlamaBlocks(llama, 1, length, 0, true).run();
}

Graph make_llama_decode_graph(const IntegerLlama& llama, std::uint32_t positions,
                              std::uint32_t sequences, const Routing& routing) {
  Graph graph = LlamaBlocks(llama, sequences, 1, positions, false, routing).run();
  move_llama_to_token(graph, llama.shape, positions - 1);
  return graph;
}

Graph make_llama_chunk_graph(const IntegerLlama& llama, std::uint32_t positions,
                             std::uint32_t chunk, bool every) {
  Graph graph = LlamaBlocks(llama, 1, chunk, positions, every).run();
  move_llama_to_chunk(graph, 0, chunk);
  return graph;
}

void fill_llama_caches(Graph& graph, const IntegerLlama& llama, std::uint32_t tokens,
                       const std::vector<std::int32_t>& embedding) {
  const auto sequences =
      static_cast<std::uint32_t>(embedding.size() / (std::size_t{tokens} * llama.shape.width));
  Graph prompt = make_llama_graph(llama, tokens, sequences);
  for (std::size_t i = 0; i < llama.blocks.size(); ++i) {
    // An output is not freed after its last reader.
    for (const char* const operand : {"keys", "values"}) {
      prompt.tensors[find_tensor(prompt, llama_attention_name(i) + operand)].kind =
          Tensor::Kind::kOutput;
    }
  }
  Reference reference(prompt, {true, true});
  reference.set_input("embedding", embedding);
  reference.run();
  const auto kv = static_cast<std::ptrdiff_t>(llama.shape.kv_width());
  for (std::size_t i = 0; i < llama.blocks.size(); ++i) {
    auto key = reference.bytes(llama_attention_name(i) + "keys").begin();
    auto value = reference.bytes(llama_attention_name(i) + "values").begin();
    for (std::uint32_t s = 0; s < sequences; ++s) {
      Tensor& cache = graph.tensors[find_tensor(graph, cache_name(i, s))];
      cache.data = std::vector<std::uint8_t>(cache.bytes(), 0);
      auto to = cache.data.edit().begin();
      for (std::uint32_t row = 0; row < tokens; ++row, key += kv, value += kv) {
        to = std::copy_n(value, kv, std::copy_n(key, kv, to));
      }
    }
  }
}

}  // namespace systole::model
