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

void check_sizes(const Command& command, const Fail& fail) {
  in_range("m", command.m, kMaxSparseTokens, fail);
  in_range("keys", command.c_pitch, kMaxSparseTokens, fail);
  in_range("k", command.k, kMaxAttentionFeatures, fail);
  in_range("n", command.n, kMaxAttentionFeatures, fail);
  in_range("heads", command.statistics, kMaxSparseTokens, fail);
}

void check_buffers(const Command& command, const Machine& machine, const Fail& fail) {
  // The decoder forms a token whole, whatever the buffer then keeps of it.
  const std::uint64_t decoded = command.mix == 0 ? 1 : command.statistics;
  const Machine::Attention& attention = machine.attention;
  if (attention.lines == 0) fail("the machine has no attention engines (attention.lines is 0)");
  const auto holds = [&](const char* key, std::uint64_t kib, std::uint64_t bytes) {
    if (kib * kKib < bytes) {
      fail(std::string(key) + " is " + std::to_string(kib) + ", expected room for one token's " +
           std::to_string(bytes) + " bytes");
    }
  };
  holds("attention.query_kib", attention.query_kib, decoded * command.k);
  holds("attention.key_kib", attention.key_kib, decoded * command.k);
  holds("attention.value_kib", attention.value_kib, command.n);
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

void check_chains(const Command& command, const Program& program, const Machine& machine,
                  const Fail& fail) {
  const std::size_t chains = program.chains.size();
  const auto exists = [&](std::uint64_t chain) {
    if (chain >= chains) {
      fail("chain " + std::to_string(chain) + " of " + std::to_string(chains));
    }
  };
  exists(command.c);
  exists(command.chain);
  check_score_chain(program.chains[command.c], fail);
  const Chain& out = program.chains[command.chain];
  if (!runs_on_engines(out, true) || bytes_of(out.out) != 1) {
    fail("its output chain has operands, works on whole rows, or gives more than a byte");
  }
  if (!command.accumulate) return;
  if (machine.preop.lanes == 0) {
    fail("its operands have stages, but the machine's loads have none (preop.lanes is 0)");
  }
  if (command.mix != 0) fail("its operands have stages and decoders, expected one of the two");
  for (const std::uint64_t operand : {1U, 2U, 3U}) {
    exists(command.c + operand);
    const Chain& chain = program.chains[command.c + operand];
    if (!runs_on_engines(chain, false) || chain.out != DType::kS8) {
      fail(
          "the chain of an operand has operands, works on whole rows, or gives another type than "
          "s8");
    }
  }
}

void check_mask_index(const Command& command, const Program& program, const Fail& fail) {
  if (command.parameters >= program.masks.size()) {
    fail("mask " + std::to_string(command.parameters) + " of " +
         std::to_string(program.masks.size()));
  }
}

void check_decoders(const Command& command, const Program& program, const Fail& fail) {
  if (command.mix == 0) return;
  check_mix_index(command.mix, 2, program, fail);
  for (const std::size_t index : {command.mix - std::size_t{1}, std::size_t{command.mix}}) {
    if (program.mixes[index].out_heads != command.statistics) {
      fail("heads is " + std::to_string(command.statistics) + ", expected the " +
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
  for (std::size_t index = mix - std::size_t{1}; index + 1 < mix + count; ++index) {
    if (index >= program.mixes.size()) {
      fail("mix " + std::to_string(index) + " of " + std::to_string(program.mixes.size()));
    }
  }
}

AttentionMaskCheck::Decoded& AttentionMaskCheck::decoded(const Command& command) {
  const Key key{command.parameters, command.statistics, command.m, command.c_pitch};
  const auto [known, is_new] = decoded_.try_emplace(key);
  if (is_new) {
    known->second.heads = decode_mask(program_.masks[command.parameters].bytes, command.statistics,
                                      command.m, command.c_pitch);
  }
  return known->second;
}

void AttentionMaskCheck::check_index_buffer(const std::vector<SparseHead>& heads) const {
  const std::uint64_t kib = machine_.attention.index_kib;
  for (std::size_t head = 0; head < heads.size(); ++head) {
    const std::uint64_t bytes = mask_bytes(heads[head]);
    if (bytes > kib * kKib) {
      throw InputError("head " + std::to_string(head) + " takes " + std::to_string(bytes) +
                       " bytes of the index buffer, expected attention.index_kib of at least " +
                       std::to_string((bytes + kKib - 1) / kKib) + ", found " +
                       std::to_string(kib));
    }
  }
}

void AttentionMaskCheck::run(const Command& command, const Fail& fail) {
  try {
    Decoded& mask = decoded(command);
    if (!mask.fits.insert(command.n).second) return;
    for (const SparseHead& head : mask.heads) {
      (void)query_tiles(head, command.n, machine_.accumulator.kib * kKib);
    }
    check_index_buffer(mask.heads);
  } catch (const InputError& error) {
    fail("mask " + std::to_string(command.parameters) + ", " + error.what());
  }
}

void check_attention_command(const Command& command, const Program& program, const Machine& machine,
                             const Fail& fail) {
  check_sizes(command, fail);
  check_buffers(command, machine, fail);
  check_chains(command, program, machine, fail);
  check_mask_index(command, program, fail);
  check_decoders(command, program, fail);
}

}  // namespace systole::hw
