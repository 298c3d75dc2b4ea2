#include "testbench/generation/seq2seq_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "mapper/mapping.h"
#include "model/build/host_operators.h"
#include "model/build/seq2seq_graph.h"
#include "model/graph/stages.h"
#include "model/text/beam_search.h"
#include "testbench/common/child_process.h"
#include "testbench/common/text.h"
#include "testbench/network/decoder_run.h"
#include "testbench/network/networks.h"
#include "testbench/network/tensors.h"

namespace systole::testbench {
namespace {

/// What the encoder's process tells of its run, before the text of CheckResult::first and the bytes
/// of "memory".
struct EncoderRecord {
  std::uint64_t cycles, traffic, operators, bytes, mismatches, first_length;
  double joules;
};

Bytes run_encoder(const hw::Machine& machine, const model::IntegerSeq2Seq& network,
                  const Seq2SeqTask& task) {
  const model::Graph graph = model::for_machine(
      model::make_seq2seq_encoder_graph(network, static_cast<std::uint32_t>(task.source.size())),
      machine);
  SimulationOptions options;
  options.check = task.check;
  options.threads = task.threads;
  options.bounds = false;
  const std::vector<std::uint8_t> input = embedding_bytes(
      model::embed_tokens(network.encoder, task.source), graph.tensors[input_tensor(graph)].type);
  SimulationResult result = simulate(graph, mapper::map_graph(graph, machine), machine,
                                     tlm_model::make_models(machine), {input}, options);
  const std::vector<std::uint8_t> memory = result.outputs.front();
  const Measurement measured =
      measure(machine, network.name, model::count_macs(graph), options, std::move(result));
  const CheckResult& check = measured.result.check;
  const EncoderRecord record{measured.result.cycles.front(),
                             measured.traffic().read_bytes + measured.traffic().written_bytes,
                             check.operators,
                             check.bytes,
                             check.mismatches,
                             check.first.size(),
                             measured.energy().total()};
  Bytes bytes(sizeof(record));
  std::memcpy(bytes.data(), &record, sizeof(record));
  bytes.insert(bytes.end(), check.first.begin(), check.first.end());
  bytes.insert(bytes.end(), memory.begin(), memory.end());
  return bytes;
}

/// Runs it; "memory" for the decoder.
std::vector<std::uint8_t> encode(const hw::Machine& machine, const model::IntegerSeq2Seq& network,
                                 const Seq2SeqTask& task, Seq2SeqGeneration::Encoder& encoder) {
  const Bytes bytes = run_in_child([&] { return run_encoder(machine, network, task); });
  EncoderRecord record{};
  std::memcpy(&record, bytes.data(), sizeof(record));
  const auto text = bytes.begin() + sizeof(record);
  const auto memory = text + static_cast<std::ptrdiff_t>(record.first_length);
  encoder = {record.cycles,
             record.traffic,
             record.joules,
             {record.operators, record.bytes, record.mismatches, std::string(text, memory)}};
  return {memory, bytes.end()};
}

/// The decoder's steps, and between them the copies of caches that the search asks for.
class Decoder {
 public:
  Decoder(const hw::Machine& machine, const model::IntegerSeq2Seq& network, const Seq2SeqTask& task,
          std::vector<std::uint8_t> memory)
      : network_(network),
        task_(task),
        run_(seq2seq_work(network, task.tokens, task.beams,
                          static_cast<std::uint32_t>(task.source.size()), std::move(memory),
                          machine),
             machine),
        search_(task.beams, network.tokens.end),
        next_(task.beams, {0, network.tokens.begin}) {
    for (std::uint32_t s = 0; s < task.beams; ++s) next_[s].parent = s;
  }

  [[nodiscard]] DecoderRun& run() { return run_; }
  [[nodiscard]] const model::BeamSearch& search() const { return search_; }
  /// By inference: whether it copies caches.
  [[nodiscard]] const std::vector<bool>& copies() const { return copies_; }
  [[nodiscard]] std::uint64_t copied_bytes() const { return copied_bytes_; }

  std::optional<std::vector<std::uint8_t>> input(
      const std::vector<std::vector<std::uint8_t>>& outputs) {
    const bool copied = !copies_.empty() && copies_.back();
    if (!copied && position_ != 0) {
      next_ = search_.step(rows_of(outputs.back()), network_.logit_scale);
      if (next_.empty() || position_ == task_.tokens) return std::nullopt;
    }
    copies_.push_back(!copied && moves_caches());
    std::vector<std::int32_t> embedding;
    for (const model::BeamSearch::Continuation& next : next_) {
      const std::vector<std::int32_t> row =
          model::embed_tokens(network_.decoder, {next.token}, position_);
      embedding.insert(embedding.end(), row.begin(), row.end());
    }
    const model::Graph& graph = run_.graph();
    return embedding_bytes(embedding, graph.tensors[input_tensor(graph)].type);
  }

  const mapper::Mapping& mapping() {
    return copies_.back() ? run_.between(copy_nodes()) : run_.step(position_++);
  }

 private:
  [[nodiscard]] bool moves_caches() const {
    for (std::size_t s = 0; s < next_.size(); ++s) {
      if (next_[s].parent != s) return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<std::vector<std::int32_t>> rows_of(
      const std::vector<std::uint8_t>& output) const {
    const std::vector<std::int32_t> logits = widen(output, hw::DType::kS32);
    std::vector<std::vector<std::int32_t>> rows;
    const auto columns = static_cast<std::ptrdiff_t>(logits.size() / task_.beams);
    for (auto row = logits.begin(); row != logits.end(); row += columns) {
      rows.emplace_back(row, row + columns);
    }
    return rows;
  }

  /// A slot takes over what the blocks know of its parent's tokens. No slot that is copied from is
  /// written: its first continuation stays in it.
  std::vector<model::Node> copy_nodes() {
    std::vector<model::Node> nodes;
    const model::Graph& graph = run_.graph();
    for (std::uint32_t block = 0; block < network_.decoder.shape.encoder.layers; ++block) {
      for (std::uint32_t slot = 0; slot < next_.size(); ++slot) {
        const auto parent = static_cast<std::uint32_t>(next_[slot].parent);
        if (parent == slot) continue;
        const auto cache = [&](std::uint32_t s) {
          const model::TensorId id =
              model::find_tensor(graph, model::seq2seq_cache_name(block, s, task_.beams));
          return model::View{id, 0, 0, position_, graph.tensors[id].cols};
        };
        model::Node node;
        node.in = cache(parent);
        node.out = cache(slot);
        node.name = graph.tensors[node.out.tensor].name + ".copy";
        node.op = model::StageUse{model::clamp_stage(model::kOperandBits), {}, {}};
        copied_bytes_ += std::uint64_t{node.in.rows} * node.in.cols;
        nodes.push_back(std::move(node));
      }
    }
    return nodes;
  }

  const model::IntegerSeq2Seq& network_;
  const Seq2SeqTask& task_;
  DecoderRun run_;
  model::BeamSearch search_;
  std::vector<model::BeamSearch::Continuation> next_;  ///< by slot: what the next step reads
  std::uint32_t position_ = 0;                         ///< of the next step
  std::vector<bool> copies_;
  std::uint64_t copied_bytes_ = 0;
};

void require_positions(const char* what, std::size_t found, const model::TextShape& shape) {
  if (found >= 1 && found <= shape.positions) return;
  throw hw::InputError(
      fmt::format("{}: found {}, expected 1 to {} tokens", what, found, shape.positions));
}

}  // namespace

double Seq2SeqGeneration::cycles_per_token() const {
  const std::uint64_t all = std::accumulate(steps.begin(), steps.end(), std::uint64_t{0}) +
                            std::accumulate(copies.begin(), copies.end(), std::uint64_t{0});
  return static_cast<double>(all) / static_cast<double>(steps.size());
}
double Seq2SeqGeneration::bytes_per_token() const {
  const tlm_model::System::Traffic& traffic = decoder.result.traffic;
  return static_cast<double>(traffic.read_bytes + traffic.written_bytes) /
         static_cast<double>(steps.size());
}
double Seq2SeqGeneration::joules_per_token() const {
  return decoder.energy().total() * static_cast<double>(decoder.images()) /
         static_cast<double>(steps.size());
}

Seq2SeqGeneration generate(const hw::Machine& machine, const model::IntegerSeq2Seq& network,
                           const Seq2SeqTask& task) {
  require_positions("--prompt", task.source.size(), network.encoder.shape);
  require_positions("--output-tokens", task.tokens, network.decoder.shape);
  if (task.beams < 1 || task.beams > network.decoder.shape.vocabulary / 2) {
    throw hw::InputError(fmt::format("--beams: found {}, expected 1 to {}, half of the vocabulary",
                                     task.beams, network.decoder.shape.vocabulary / 2));
  }
  Seq2SeqGeneration generation;
  generation.source = task.source.size();
  generation.beams = task.beams;
  Decoder decoder(machine, network, task, encode(machine, network, task, generation.encoder));
  DecoderRun& run = decoder.run();
  SimulationOptions options;
  options.check = task.check;
  options.threads = task.threads;
  options.keep_outputs = false;
  options.bounds = false;
  options.progress = task.progress;
  options.next_input = [&](const std::vector<std::vector<std::uint8_t>>& outputs) {
    return decoder.input(outputs);
  };
  options.next_step = [&](std::size_t) -> const mapper::Mapping& { return decoder.mapping(); };
  // One more than there are steps and copies: the search sees the last logits, too.
  SimulationResult result =
      simulate(run.graph(), run.first(), machine, tlm_model::make_models(machine),
               std::vector<std::vector<std::uint8_t>>(2 * task.tokens + 1), options);
  for (std::size_t i = 0; i < result.cycles.size(); ++i) {
    (decoder.copies()[i] ? generation.copies : generation.steps).push_back(result.cycles[i]);
  }
  generation.copied_bytes = decoder.copied_bytes();
  generation.tokens = decoder.search().best();
  generation.score = decoder.search().best_score();
  generation.decoder =
      measure(machine, network.name, run.macs() / run.inputs().size(), options, std::move(result));
  return generation;
}

std::string generation_text(const Seq2SeqGeneration& generation) {
  const Measurement& m = generation.decoder;
  FactList facts;
  facts.add("machine", machine_text(m.machine));
  facts.add("model", m.model);
  facts.add("tokens",
            fmt::format("{} read, {} written in {}", generation.source, generation.tokens.size(),
                        counted(generation.steps.size(), "step")));
  facts.add("search", fmt::format("{}, {:.4f} bits a token of the text",
                                  counted(generation.beams, "beam"), -generation.score));
  if (m.checked) {
    CheckResult check = generation.encoder.check;
    check.add(m.result.check);
    facts.add("check", check_counts(check));
    if (!check.first.empty()) facts.add("first", check.first);
  }
  facts.add("encoder", fmt::format("{}, {}, {}", counted(generation.encoder.cycles, "cycle"),
                                   counted(generation.encoder.bytes, "byte"),
                                   with_prefix(generation.encoder.joules, "J")));
  facts.add("a token",
            fmt::format("{} cycles, {} bytes, {}", grouped_rounded(generation.cycles_per_token()),
                        grouped_rounded(generation.bytes_per_token()),
                        with_prefix(generation.joules_per_token(), "J")));
  if (generation.beams > 1) {
    facts.add("copies",
              fmt::format("{} of caches, {} and {}", generation.copies.size(),
                          counted(generation.copied_bytes, "byte"),
                          counted(std::accumulate(generation.copies.begin(),
                                                  generation.copies.end(), std::uint64_t{0}),
                                  "cycle")));
  }
  return facts.text();
}

nlohmann::ordered_json to_json(const Seq2SeqGeneration& generation) {
  nlohmann::ordered_json json = to_json(generation.decoder);
  const Seq2SeqGeneration::Encoder& encoder = generation.encoder;
  json["encoder"] = {{"cycles", encoder.cycles},
                     {"bytes", encoder.bytes},
                     {"joules", encoder.joules},
                     {"checked_operators", encoder.check.operators},
                     {"checked_bytes", encoder.check.bytes},
                     {"mismatches", encoder.check.mismatches}};
  json["source_tokens"] = generation.source;
  json["beams"] = generation.beams;
  json["tokens"] = generation.tokens;
  json["log2_probability_per_token"] = generation.score;
  json["step_cycles"] = generation.steps;
  json["copy_cycles"] = generation.copies;
  json["copied_bytes"] = generation.copied_bytes;
  json["cycles_per_token"] = generation.cycles_per_token();
  json["bytes_per_token"] = generation.bytes_per_token();
  json["joules_per_token"] = generation.joules_per_token();
  return json;
}

}  // namespace systole::testbench
