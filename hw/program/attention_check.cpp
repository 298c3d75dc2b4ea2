#include "hw/program/attention_check.h"

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "hw/attention/attention_tiles.h"
#include "hw/attention/mask_codec.h"
#include "hw/attention/sparse_attention.h"
#include "hw/number/softmax_mode.h"

namespace systole::hw {
namespace {

using Fail = std::function<void(const std::string& what)>;

void in_range(const char* name, std::uint64_t value, std::uint64_t highest, const Fail& fail) {
  if (value < 1 || value > highest) {
    fail(std::string(name) + " is " + std::to_string(value) + ", expected 1 to " +
         std::to_string(highest));
  }
}

void check_sizes(const cmd::Attention& attention, const Fail& fail) {
  in_range("m", attention.queries, kMaxSparseTokens, fail);
  in_range("keys", attention.keys, kMaxSparseTokens, fail);
  in_range("k", attention.k, kMaxAttentionFeatures, fail);
  in_range("n", attention.n, kMaxAttentionFeatures, fail);
  in_range("heads", attention.heads, kMaxSparseTokens, fail);
}

void check_buffers(const cmd::Attention& attention, const Machine& machine, const Fail& fail) {
  // The decoder forms a token whole, whatever the buffer then keeps of it.
  const std::uint64_t decoded = !attention.decoders ? 1 : attention.heads;
  const Machine::Attention& engines = machine.attention;
  if (engines.lines == 0) fail("the machine has no attention engines (attention.lines is 0)");
  const auto holds = [&](const char* key, std::uint64_t kib, std::uint64_t bytes) {
    if (kib * kKib < bytes) {
      fail(std::string(key) + " is " + std::to_string(kib) + ", expected room for one token's " +
           std::to_string(bytes) + " bytes");
    }
  };
  holds("attention.query_kib", engines.query_kib, decoded * attention.k);
  holds("attention.key_kib", engines.key_kib, decoded * attention.k);
  holds("attention.value_kib", engines.value_kib, attention.n);
}

/// Before the softmax: stages of the scores.
void check_score_chain(const Chain& chain, const Fail& fail) {
  constexpr std::int64_t kMaxCodeBits = 8;
  const bool softmax = !chain.stages.empty() && chain.stages.back().op == StageOp::kSoftmax;
  if (!softmax || chain.stages.back().imm[0] != static_cast<std::int64_t>(SoftmaxMode::kDeferred) ||
      chain.stages.back().imm[6] > kMaxCodeBits) {
    fail("its softmax chain does not end with a deferred softmax to at most 8 bits");
  }
  Chain scores = chain;
  scores.stages.pop_back();
  if (!runs_on_engines(scores, false)) {
    fail("its softmax chain has stages that the engines cannot run on scores");
  }
}

void check_chains(const cmd::Attention& attention, const Program& program, const Machine& machine,
                  const Fail& fail) {
  const std::size_t chains = program.chains.size();
  const auto exists = [&](std::uint64_t chain) {
    if (chain >= chains) {
      fail("chain " + std::to_string(chain) + " of " + std::to_string(chains));
    }
  };
  exists(attention.softmax);
  exists(attention.chain);
  check_score_chain(program.chains[attention.softmax], fail);
  const Chain& out = program.chains[attention.chain];
  if (!runs_on_engines(out, true) || bytes_of(out.out) != 1) {
    fail("its output chain has operands, works on whole rows, or gives more than a byte");
  }
  if (!attention.operand_chains) return;
  if (machine.preop.lanes == 0) {
    fail("its operands have stages, but the machine's loads have none (preop.lanes is 0)");
  }
  if (attention.decoders) fail("its operands have stages and decoders, expected one of the two");
  for (const std::uint64_t operand : {1U, 2U, 3U}) {
    exists(attention.softmax + operand);
    const Chain& chain = program.chains[attention.softmax + operand];
    if (!runs_on_engines(chain, false) || chain.out != DType::kS8) {
      fail(
          "the chain of an operand has operands, works on whole rows, or gives another type than "
          "s8");
    }
  }
}

void check_mask_index(const cmd::Attention& attention, const Program& program, const Fail& fail) {
  if (attention.mask >= program.masks.size()) {
    fail("mask " + std::to_string(attention.mask) + " of " + std::to_string(program.masks.size()));
  }
}

void check_decoders(const cmd::Attention& attention, const Program& program, const Fail& fail) {
  if (!attention.decoders) return;
  check_mix_index(*attention.decoders, 2, program, fail);
  for (std::size_t index = *attention.decoders; index < *attention.decoders + std::size_t{2};
       ++index) {
    if (program.mixes[index].out_heads != attention.heads) {
      fail("heads is " + std::to_string(attention.heads) + ", expected the " +
           std::to_string(program.mixes[index].out_heads) + " that mix " + std::to_string(index) +
           " decodes to");
    }
  }
}

}  // namespace

bool runs_on_engines(const Chain& chain, bool row_sums) {
  return parameter_words(chain) == 0 && tensor_operands(chain) == 0 && !is_row_wise(chain) &&
         !writes_row_statistics(chain) && (row_sums || !reads_row_statistics(chain)) &&
         !uses_valid_cols(chain) && !transposes(chain);
}

void check_mix_index(std::uint16_t mix, std::size_t count, const Program& program,
                     const Fail& fail) {
  for (std::size_t index = mix; index < mix + count; ++index) {
    if (index >= program.mixes.size()) {
      fail("mix " + std::to_string(index) + " of " + std::to_string(program.mixes.size()));
    }
  }
}

AttentionMaskCheck::Decoded& AttentionMaskCheck::decoded(const cmd::Attention& attention) {
  const Key key{attention.mask, attention.heads, attention.queries, attention.keys};
  const auto [known, is_new] = decoded_.try_emplace(key);
  if (is_new) {
    known->second.heads = decode_mask(program_.masks[attention.mask].bytes, attention.heads,
                                      attention.queries, attention.keys);
  }
  return known->second;
}

void AttentionMaskCheck::run(const cmd::Attention& attention, const Fail& fail) {
  try {
    Decoded& mask = decoded(attention);
    if (!mask.fits.insert(attention.n).second) return;
    for (const SparseHead& head : mask.heads) {
      (void)query_tiles(head, attention.n, machine_.accumulator.kib * kKib);
    }
  } catch (const InputError& error) {
    fail("mask " + std::to_string(attention.mask) + ", " + error.what());
  }
}

void check_attention_command(const cmd::Attention& attention, const Program& program,
                             const Machine& machine, const Fail& fail) {
  check_sizes(attention, fail);
  check_buffers(attention, machine, fail);
  check_chains(attention, program, machine, fail);
  check_mask_index(attention, program, fail);
  check_decoders(attention, program, fail);
}

}  // namespace systole::hw
