#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "testbench/common/text.h"
#include "testbench/generation/llama_generation.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {
namespace {

std::string phase_shares_text(const std::array<std::uint64_t, kLlamaPhases>& phases) {
  const auto all =
      static_cast<double>(std::accumulate(phases.begin(), phases.end(), std::uint64_t{0}));
  std::string shares;
  for (std::size_t i = 0; i < kLlamaPhases; ++i) {
    if (phases[i] == 0) continue;
    shares += fmt::format("{}{} {}", shares.empty() ? "" : ", ", name_of(LlamaPhase(i)),
                          percent(static_cast<double>(phases[i]) / all));
  }
  return shares;
}

}  // namespace

void write_outputs(const std::string& path, const LlamaTask& task,
                   const LlamaGeneration& generation) {
  const auto ids = [](const char* name, const std::vector<std::int32_t>& values) {
    return model::make_tensor(name, model::FileDtype::kI32, {values.size()}, values);
  };
  const std::vector<std::vector<std::uint8_t>>& rows = generation.measurement.result.outputs;
  std::vector<std::int32_t> logits;
  for (const std::vector<std::uint8_t>& row : rows) {
    const std::vector<std::int32_t> codes = widen(row, hw::DType::kS32);
    logits.insert(logits.end(), codes.begin(), codes.end());
  }
  std::vector<model::TensorData> tensors = {
      ids("input_ids", task.prompt), ids("tokens", generation.tokens),
      ids("positions", generation.positions),
      model::make_tensor("logits", model::FileDtype::kI32,
                         {rows.size(), logits.size() / rows.size()}, logits)};
  for (const model::TensorData& tensor : generation.tensors) {
    if (tensor.name != "logits") tensors.push_back(tensor);  // is there
  }
  model::write_safetensors(path, tensors);
}

namespace {

void add_speculation(FactList& facts, const LlamaGeneration& generation) {
  const Speculation& s = *generation.speculation;
  facts.add("draft", fmt::format("{}: {} of {} accepted ({})", s.draft, s.accepted,
                                 counted(s.proposed, "token"), percent(s.acceptance())));
  if (generation.tokens.size() < 2) return;
  const auto tokens = static_cast<double>(generation.tokens.size() - 1);
  facts.add("passes", fmt::format("{} for up to {} proposals, {:.2f} tokens each", s.passes,
                                  s.draft_tokens, tokens / static_cast<double>(s.passes)));
  facts.add("speed", fmt::format("{:.2f} tokens/s", generation.tokens_per_second()));
  const double all = static_cast<double>(s.draft_cycles + s.verify_cycles) / tokens;
  const auto without = static_cast<double>(s.step_cycles);
  facts.add("cycles", fmt::format("{} a token, {} of them the draft's; {} without a draft, "
                                  "{:.2f} times as many",
                                  grouped_rounded(all),
                                  grouped_rounded(static_cast<double>(s.draft_cycles) / tokens),
                                  grouped(s.step_cycles), without / all));
  facts.add("energy", fmt::format("{} a token", with_prefix(generation.joules_per_token(), "J")));
}

nlohmann::ordered_json to_json(const Speculation& s, std::size_t tokens) {
  const auto after = static_cast<double>(std::max<std::size_t>(tokens, 2) - 1);
  return {{"draft", s.draft},
          {"draft_tokens", s.draft_tokens},
          {"passes", s.passes},
          {"proposed", s.proposed},
          {"accepted", s.accepted},
          {"tokens_per_pass", s.passes == 0 ? 0.0 : after / static_cast<double>(s.passes)},
          {"cycles_per_token", static_cast<double>(s.draft_cycles + s.verify_cycles) / after},
          {"draft_cycles_per_token", static_cast<double>(s.draft_cycles) / after},
          {"step_cycles", s.step_cycles}};
}

}  // namespace

std::string generation_text(const LlamaGeneration& generation) {
  const Measurement& m = generation.measurement;
  const auto& cycles = m.result.cycles;
  FactList facts;
  facts.add("machine", machine_text(m.machine));
  facts.add("model", m.model);
  facts.add("tokens",
            fmt::format("{} of prompt, {} generated", generation.prompt, generation.tokens.size()));
  if (m.checked) {
    facts.add("check", check_counts(m.result.check));
    if (!m.result.check.first.empty()) facts.add("first", m.result.check.first);
  }
  facts.add(
      "prompt",
      fmt::format(
          "first token after {}, {} a token of the prompt, {} at once",
          with_prefix(generation.prompt_seconds(), "s"),
          with_prefix(generation.prompt_seconds() / static_cast<double>(generation.prompt), "s"),
          generation.chunk));
  if (generation.speculation) {
    add_speculation(facts, generation);
    return facts.text();
  }
  if (generation.tokens.size() > 1) {
    facts.add("speed", fmt::format("{:.2f} tokens/s, last step {} cycles",
                                   generation.tokens_per_second(), grouped(cycles.back())));
  }
  std::string energy = with_prefix(generation.prompt_joules(), "J") + " for the prompt";
  if (generation.tokens.size() > 1) {
    energy += fmt::format(", {} a token", with_prefix(generation.joules_per_token(), "J"));
  }
  facts.add("energy", energy);
  if (generation.chunk != 1) {
    facts.add("prompt time", phase_shares_text(generation.prompt_phases) + " of the prompt");
  }
  if (generation.tokens.size() > 1 || generation.chunk == 1) {
    facts.add("time", phase_shares_text(generation.phases) + " of the last step");
  }
  facts.add("bound",
            fmt::format("{} cycles of the last step for any mapping; it takes {:.2f} times that",
                        grouped_rounded(generation.bound),
                        static_cast<double>(cycles.back()) / generation.bound));
  const double host = generation.host_seconds /
                      static_cast<double>(generation.prompt + generation.tokens.size() - 1);
  facts.add("host", fmt::format("{} a token, {:.1f} times its integer products alone ({})",
                                with_prefix(host, "s"), host / generation.product_seconds,
                                with_prefix(generation.product_seconds, "s")));
  return facts.text();
}

nlohmann::ordered_json to_json(const LlamaGeneration& generation) {
  nlohmann::ordered_json json = to_json(generation.measurement);
  json["prompt_tokens"] = generation.prompt;
  json["tokens"] = generation.tokens;
  json["prompt_seconds"] = generation.prompt_seconds();
  json["tokens_per_second"] = generation.tokens_per_second();
  json["prompt_chunk"] = generation.chunk;
  json["prompt_joules"] = generation.prompt_joules();
  json["joules_per_token"] = generation.joules_per_token();
  for (std::size_t i = 0; i < kLlamaPhases; ++i) {
    json["phase_cycles"][std::string(name_of(LlamaPhase(i)))] = generation.phases[i];
    json["prompt_phase_cycles"][std::string(name_of(LlamaPhase(i)))] = generation.prompt_phases[i];
  }
  json["speculation"] = nullptr;
  if (generation.speculation) {
    json["speculation"] = to_json(*generation.speculation, generation.tokens.size());
    return json;
  }
  json["bound"] = generation.bound;
  json["over_bound"] =
      static_cast<double>(generation.measurement.result.cycles.back()) / generation.bound;
  json["host_seconds"] = generation.host_seconds;
  json["product_seconds"] = generation.product_seconds;
  return json;
}

std::string evaluation_text(const LlamaEvaluation& e) {
  FactList facts;
  facts.add("model", e.model);
  facts.add("compared", counted(e.tokens, "token"));
  facts.add("bits/token", fmt::format("{:.4f}, perplexity {:.3f}", e.bits, e.perplexity()));
  facts.add("likeliest", fmt::format("right for {}", counted(e.likeliest, "token")));
  if (e.reference_bits > 0) {
    facts.add("float32",
              fmt::format("{:.4f} bits/token, perplexity {:.3f}, right for {}", e.reference_bits,
                          e.reference_perplexity(), counted(e.reference_likeliest, "token")));
    facts.add("loss", fmt::format("{:+.2f} % of perplexity; the same likeliest token {} times",
                                  100 * (e.perplexity() / e.reference_perplexity() - 1), e.same));
  }
  return facts.text();
}

nlohmann::ordered_json to_json(const LlamaEvaluation& e) {
  nlohmann::ordered_json json{{"model", e.model},
                              {"tokens", e.tokens},
                              {"bits_per_token", e.bits},
                              {"perplexity", e.perplexity()},
                              {"likeliest", e.likeliest},
                              {"float32_bits_per_token", nullptr},
                              {"float32_perplexity", nullptr},
                              {"same_likeliest", nullptr}};
  if (e.reference_bits > 0) {
    json["float32_bits_per_token"] = e.reference_bits;
    json["float32_perplexity"] = e.reference_perplexity();
    json["same_likeliest"] = e.same;
  }
  return json;
}

}  // namespace systole::testbench
