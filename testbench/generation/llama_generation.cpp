#include "testbench/generation/llama_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/bound/lower_bound.h"
#include "base/error.h"
#include "hw/kernel/gemm.h"
#include "model/build/llama_graph.h"
#include "model/float/float_llama.h"
#include "model/graph/reference.h"
#include "testbench/common/text.h"
#include "testbench/generation/speculative_generation.h"
#include "testbench/network/llama_run.h"
#include "testbench/network/networks.h"
#include "testbench/network/tensors.h"
#include "testbench/run/operator_timing.h"
#include "testbench/run/tensor_file.h"

namespace systole::testbench {
namespace {

/// Of this process on its processors: others may share them.
double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

double cycles_between(const LlamaGeneration& generation, std::size_t first, std::size_t end) {
  const auto& cycles = generation.measurement.result.cycles;
  const auto from = cycles.begin() + static_cast<std::ptrdiff_t>(first);
  const auto to = cycles.begin() + static_cast<std::ptrdiff_t>(std::min(end, cycles.size()));
  return static_cast<double>(std::accumulate(from, to, std::uint64_t{0}));
}

double seconds_of(const LlamaGeneration& generation, double cycles) {
  return cycles / (generation.measurement.machine.core.clock_mhz * 1e6);
}

std::int32_t likeliest(const std::vector<std::int32_t>& logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// Host time of the products of one token alone: the layers' weights and the vocabulary.
double product_seconds(const model::IntegerLlama& llama) {
  std::vector<std::int32_t> sums(llama.shape.vocabulary);
  std::vector<std::int8_t> row(std::max(llama.shape.hidden, llama.shape.width), 1);
  const auto multiply = [&](const model::IntegerLinear& layer) {
    hw::GemmArgs args;
    args.a = row.data();
    args.lda = layer.inputs;
    args.b = layer.weight.data();
    args.ldb = layer.inputs;
    args.b_transposed = true;
    sums.assign(layer.outputs, 0);
    args.c = sums.data();
    args.ldc = layer.outputs;
    args.m = 1;
    args.n = layer.outputs;
    args.k = layer.inputs;
    hw::gemm(args);
  };
  const std::clock_t begin = std::clock();
  for (const model::IntegerLlamaBlock& block : llama.blocks) {
    for (const model::IntegerLinear* const layer :
         {&block.query, &block.key, &block.value, &block.proj, &block.gate, &block.up,
          &block.down}) {
      multiply(*layer);
    }
  }
  multiply(llama.output);
  return seconds_since(begin);
}

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

/// -log2 of the share that softmax gives the token `next`; sets the likeliest.
template <typename T>
double bits_of(const T* logits, std::size_t count, double scale, std::size_t next,
               std::size_t& best) {
  best = static_cast<std::size_t>(std::max_element(logits, logits + count) - logits);
  const double largest = static_cast<double>(logits[best]);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += std::exp((static_cast<double>(logits[i]) - largest) * scale);
  }
  return std::log2(sum) - (static_cast<double>(logits[next]) - largest) * scale / std::log(2.0);
}

}  // namespace

std::string_view name_of(LlamaPhase phase) {
  constexpr std::array<std::string_view, kLlamaPhases> kNames = {"projections", "attention", "MLP",
                                                                 "norms", "vocabulary"};
  return kNames.at(static_cast<std::size_t>(phase));
}

LlamaPhase phase_of(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has(".mlp.")) return LlamaPhase::kMlp;
  if (has(".attn.seq")) return LlamaPhase::kAttention;
  if (has(".attn.")) return LlamaPhase::kProjections;
  return has("output") ? LlamaPhase::kVocabulary : LlamaPhase::kNorms;
}

double LlamaGeneration::prompt_seconds() const {
  return seconds_of(*this, cycles_between(*this, 0, prompts));
}
double LlamaGeneration::generation_seconds() const {
  if (!speculation) return seconds_of(*this, cycles_between(*this, prompts, SIZE_MAX));
  return seconds_of(*this,
                    static_cast<double>(speculation->draft_cycles + speculation->verify_cycles));
}
double LlamaGeneration::tokens_per_second() const {
  // The first one comes with the prompt.
  return tokens.size() < 2 ? 0.0 : static_cast<double>(tokens.size() - 1) / generation_seconds();
}
double LlamaGeneration::prompt_joules() const {
  return hw::energy_of(measurement.result.first_events, measurement.machine).total();
}
double LlamaGeneration::joules_per_token() const {
  if (tokens.size() < 2) return 0.0;
  const double all = hw::energy_of(measurement.result.events, measurement.machine).total();
  return (all - prompt_joules()) / static_cast<double>(tokens.size() - 1);
}

LlamaGeneration generate(const hw::Machine& machine, const model::IntegerLlama& llama,
                         const LlamaTask& task) {
  const std::clock_t begin = std::clock();
  const std::size_t steps = task.prompt.size() + task.tokens - 1;
  if (steps > llama.shape.positions) {
    throw hw::InputError(
        fmt::format("--output-tokens: {} tokens with the prompt, but {} has {} "
                    "positions, expected fewer",
                    steps + 1, llama.name, llama.shape.positions));
  }
  if (task.draft != nullptr) return speculate(machine, llama, task);
  LlamaRun run(llama,
               {static_cast<std::uint32_t>(task.prompt.size()), static_cast<std::uint32_t>(steps),
                task.tensors.empty() ? task.chunk : 1},
               machine);
  const hw::DType input = run.graph().tensors[input_tensor(run.graph())].type;
  const hw::DType output = run.graph().tensors[output_tensor(run.graph())].type;
  LlamaGeneration generation;
  generation.prompt = task.prompt.size();
  generation.chunk = run.chunk();
  generation.prompts = run.prompts();
  const auto take = [&](const std::vector<std::uint8_t>& bytes) {
    const std::vector<std::int32_t> logits = widen(bytes, output);
    generation.tokens.push_back(task.sample ? task.sample(logits) : likeliest(logits));
  };
  SimulationOptions options;
  options.wave = task.wave;
  options.check = task.check;
  options.keep_outputs = task.keep_logits;
  if (!task.tensors.empty()) options.tensors = find_tensors(task.tensors, run.graph(), run.first());
  const std::vector<model::TensorId> kept = options.tensors;
  options.bounds = false;
  options.progress = task.progress;
  options.first_inferences = run.prompts();
  options.next_step = [&](std::size_t step) -> const mapper::Mapping& { return run.step(step); };
  std::vector<tlm_model::CommandTrace> traces;  // of the last inference
  options.observer = [&](const tlm_model::CommandTrace& trace) {
    if (trace.index >= traces.size()) traces.resize(trace.index + 1);
    traces[trace.index] = trace;
  };
  const auto add_phases = [&](std::array<std::uint64_t, kLlamaPhases>& phases) {
    const std::vector<analysis::OperatorEstimate> estimates =
        analysis::estimate(run.latest(), machine);
    const std::vector<OperatorTiming> timings = time_operators(traces, estimates);
    for (std::size_t i = 0; i < timings.size(); ++i) {
      phases.at(static_cast<std::size_t>(phase_of(estimates[i].name))) += timings[i].cycles;
    }
  };
  options.next_input =
      [&, next = std::size_t{0}](const std::vector<std::vector<std::uint8_t>>& outputs) mutable
      -> std::optional<std::vector<std::uint8_t>> {
    if (next != 0 && next <= run.prompts()) add_phases(generation.prompt_phases);
    if (next >= run.prompts()) {
      take(outputs.back());
      if (generation.tokens.back() == task.end) return std::nullopt;
    }
    traces.clear();
    const TokenRange range = run.tokens(next);
    std::vector<std::int32_t> ids = {next < run.prompts() ? task.prompt[range.first]
                                                          : generation.tokens.back()};
    for (std::uint32_t i = 1; i < range.count; ++i) ids.push_back(task.prompt[range.first + i]);
    generation.positions.push_back(static_cast<std::int32_t>(range.first + range.count - 1));
    std::vector<std::int32_t> rows = model::embed_tokens(llama, ids);
    rows.resize(std::size_t{run.input_rows(next)} * llama.shape.width, 0);
    ++next;
    return embedding_bytes(rows, input);
  };
  SimulationResult result =
      simulate(run.graph(), run.first(), machine, tlm_model::make_models(machine),
               std::vector<std::vector<std::uint8_t>>(run.inferences()), options);
  if (result.cycles.size() == run.inferences()) take(result.outputs.back());
  add_phases(generation.phases);
  if (result.cycles.size() == run.prompts()) add_phases(generation.prompt_phases);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const model::Tensor& tensor = run.graph().tensors[kept[i]];
    generation.tensors.push_back(tensor_of_inferences(tensor.name, tensor.type, tensor.rows,
                                                      tensor.cols, result.tensors[i]));
  }
  generation.measurement =
      measure(machine, llama.name, run.macs() / run.inferences(), options, std::move(result));
  generation.host_seconds = seconds_since(begin);
  generation.bound = analysis::lower_bound(run.graph(), machine).cycles();
  generation.product_seconds = product_seconds(llama);
  return generation;
}

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

double LlamaEvaluation::perplexity() const { return std::exp2(bits); }
double LlamaEvaluation::reference_perplexity() const { return std::exp2(reference_bits); }

LlamaEvaluation evaluate(const model::IntegerLlama& llama, const model::LlamaCheckpoint* checkpoint,
                         const std::vector<std::int32_t>& text, std::size_t tokens,
                         std::size_t window,
                         const std::function<void(std::size_t done)>& progress) {
  LlamaEvaluation evaluation;
  evaluation.model = llama.name;
  const std::size_t end = std::min(tokens, text.size()), vocabulary = llama.shape.vocabulary;
  for (std::size_t first = 0; first + 1 < end; first += window) {
    const std::size_t count = std::min(window, end - first);
    if (count < 2) break;
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(first);
    const std::vector<std::int32_t> ids(begin, begin + static_cast<std::ptrdiff_t>(count));
    const model::Graph graph =
        model::make_llama_text_graph(llama, static_cast<std::uint32_t>(count));
    model::Reference reference(graph, {true, true});
    reference.set_input("embedding", model::embed_tokens(llama, ids));
    reference.run();
    const std::vector<std::int32_t> logits = reference.values("logits");
    const std::vector<float> real =
        checkpoint == nullptr ? std::vector<float>{} : model::llama_logits(*checkpoint, ids);
    for (std::size_t t = 0; t + 1 < count; ++t) {
      const auto next = static_cast<std::size_t>(ids[t + 1]);
      std::size_t best = 0, real_best = 0;
      evaluation.bits +=
          bits_of(&logits[t * vocabulary], vocabulary, llama.logit_scale, next, best);
      evaluation.likeliest += best == next ? 1 : 0;
      if (checkpoint != nullptr) {
        evaluation.reference_bits +=
            bits_of(&real[t * vocabulary], vocabulary, 1.0, next, real_best);
        evaluation.reference_likeliest += real_best == next ? 1 : 0;
        evaluation.same += real_best == best ? 1 : 0;
      }
      ++evaluation.tokens;
    }
    if (progress) progress(first + count);
  }
  if (evaluation.tokens == 0) throw hw::InputError("--evaluate: expected two tokens at the least");
  evaluation.bits /= static_cast<double>(evaluation.tokens);
  evaluation.reference_bits /= static_cast<double>(evaluation.tokens);
  return evaluation;
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
