#include "testbench/generation/report_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "testbench/common/text.h"
#include "testbench/report/measurement.h"

namespace systole::testbench {
namespace {

using hw::dfx::kPhases;
using hw::dfx::Phase;

constexpr double kPsPerMs = 1e9;

/// In JSON: "layernorm", "self_attention".
std::string key_of(Phase phase) {
  std::string key;
  for (const char c : hw::dfx::name_of(phase)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    key += letter ? static_cast<char>(c | 0x20) : '_';
  }
  return key;
}

double mean_pass_milliseconds(const GenerationReport& report) {
  const Generation& g = report.generation;
  std::uint64_t end = 0;  // of the first cluster
  for (const ServedRequest& request : g.requests) {
    if (request.cluster == 0) end = std::max(end, request.end_ps);
  }
  return static_cast<double>(end - g.host_ps) / kPsPerMs / static_cast<double>(g.passes);
}

/// From the start, when all requests were there, to the end of one.
struct RequestTimes {
  double mean = 0, longest = 0;  ///< ms
};
RequestTimes request_times(const Generation& generation) {
  RequestTimes times;
  for (const ServedRequest& request : generation.requests) {
    const double ms = static_cast<double>(request.end_ps) / kPsPerMs;
    times.mean += ms / static_cast<double>(generation.requests.size());
    times.longest = std::max(times.longest, ms);
  }
  return times;
}

std::string requests_text(const GenerationReport& report) {
  const RequestTimes times = request_times(report.generation);
  return fmt::format("{} on {}, {:.3f} ms from the start in the mean, {:.3f} ms the longest",
                     report.generation.requests.size(),
                     counted(report.machine.dfx.clusters, "cluster"), times.mean, times.longest);
}

nlohmann::ordered_json requests_json(const Generation& generation) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  const auto ms = [](std::uint64_t ps) { return static_cast<double>(ps) / kPsPerMs; };
  for (const ServedRequest& request : generation.requests) {
    all.push_back({{"cluster", request.cluster},
                   {"begin_milliseconds", ms(request.begin_ps)},
                   {"first_token_milliseconds", ms(request.first_token_ps)},
                   {"end_milliseconds", ms(request.end_ps)}});
  }
  return all;
}

std::string shares_text(const GenerationReport& report) {
  std::string text;
  for (std::size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (report.generation.phases[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", hw::dfx::name_of(phase),
                        percent(report.share(phase)));
  }
  return text;
}

std::string profile_text(const hw::Machine& machine) {
  return machine.dfx.issue_cycles == 0
             ? "ideal: no cost of control"
             : fmt::format("calibrated: {} cycles to issue an instruction, {} ns a hop",
                           machine.dfx.issue_cycles, machine.ring.hop_ns);
}

}  // namespace

double GenerationReport::milliseconds() const {
  return static_cast<double>(generation.total_ps) / kPsPerMs;
}
double GenerationReport::first_token_milliseconds() const {
  return static_cast<double>(generation.first_token_ps) / kPsPerMs;
}
double GenerationReport::tokens_per_second() const {
  const std::size_t texts = (1 + generation.others.size()) * generation.requests.size();
  return static_cast<double>(texts * generation.tokens.size()) / milliseconds() * 1e3;
}
double GenerationReport::tokens_per_joule() const {
  return tokens_per_second() / (machine.dfx.board_watts * machine.dfx.cores * machine.dfx.clusters);
}
double GenerationReport::share(Phase phase) const {
  const auto& phases = generation.phases;
  const auto all = std::accumulate(phases.begin(), phases.end(), std::uint64_t{0});
  return static_cast<double>(phases[static_cast<std::size_t>(phase)]) / static_cast<double>(all);
}

std::string generation_text(const GenerationReport& report) {
  const Generation& g = report.generation;
  const hw::Machine& machine = report.machine;
  FactList facts;
  facts.add("machine", fmt::format("{}, {} of {} x {} FP16 multipliers at {} MHz", machine.name,
                                   counted(machine.dfx.cores, "core"), machine.matrix.depth,
                                   machine.matrix.lanes, machine.core.clock_mhz));
  facts.add("profile", profile_text(machine));
  facts.add("model", fmt::format("{}, {}, width {}", report.model, counted(report.layers, "layer"),
                                 report.width));
  if (report.seeded) facts.add("weights", "seeded: no text");
  if (!report.functional) facts.add("values", "none, timing only");
  facts.add("tokens", fmt::format("{} of prompt, {} generated, {}", report.input_tokens,
                                  g.tokens.size(), counted(g.passes, "pass", "passes")));
  if (report.same_in_float32) {
    facts.add("float32", fmt::format("the likeliest is the same for {} of {}",
                                     *report.same_in_float32, counted(g.tokens.size(), "token")));
  }
  facts.add("time", fmt::format("{:.3f} ms, first token after {:.3f} ms", report.milliseconds(),
                                report.first_token_milliseconds()));
  facts.add("pass",
            fmt::format("{:.4f} ms mean, {:.4f} ms the last", mean_pass_milliseconds(report),
                        static_cast<double>(g.last_pass_ps) / kPsPerMs));
  if (!g.others.empty()) {
    facts.add("batch", fmt::format("{} texts side by side, {}", 1 + g.others.size(),
                                   report.machine.dfx.batching == hw::dfx::Batching::kShared
                                       ? "sharing weights"
                                       : "one after the other"));
  }
  if (g.requests.size() > 1 || machine.dfx.clusters > 1) {
    facts.add("requests", requests_text(report));
  }
  facts.add("speed", fmt::format("{:.2f} tokens/s, {:.4f} tokens/J ({} W a board)",
                                 report.tokens_per_second(), report.tokens_per_joule(),
                                 machine.dfx.board_watts));
  facts.add("shares", shares_text(report));
  facts.add(
      "HBM",
      fmt::format(
          "{} of weights in core 0, {} in use, {} read a pass",
          with_prefix(static_cast<double>(g.weight_bytes), "B"),
          with_prefix(static_cast<double>(g.hbm_bytes), "B"),
          with_prefix(static_cast<double>(g.hbm_read_bytes) / static_cast<double>(g.passes), "B")));
  if (!g.link_bytes.empty()) {
    facts.add("links", fmt::format("{} over each, a pass",
                                   with_prefix(static_cast<double>(g.link_bytes.front()) /
                                                   static_cast<double>(g.passes),
                                               "B")));
  }
  facts.add("simulation", with_prefix(g.wall_seconds, "s"));
  std::string text = facts.text() + "\n" + block_table(g.blocks);
  if (!g.rtl.empty()) text += "\n" + rtl_table(g.rtl);
  return text;
}

nlohmann::ordered_json to_json(const GenerationReport& report) {
  const Generation& g = report.generation;
  nlohmann::ordered_json json;
  json["machine"] = report.machine.name;
  json["cores"] = report.machine.dfx.cores;
  json["clusters"] = report.machine.dfx.clusters;
  json["profile"] = report.machine.dfx.issue_cycles == 0 ? "ideal" : "calibrated";
  json["model"] = report.model;
  json["functional"] = report.functional;
  json["input_tokens"] = report.input_tokens;
  json["output_tokens"] = g.tokens.size();
  json["batch"] = 1 + g.others.size();
  json["requests"] = requests_json(g);
  json["passes"] = g.passes;
  json["milliseconds"] = report.milliseconds();
  json["first_token_milliseconds"] = report.first_token_milliseconds();
  json["milliseconds_per_pass"] = mean_pass_milliseconds(report);
  json["last_pass_milliseconds"] = static_cast<double>(g.last_pass_ps) / kPsPerMs;
  json["tokens_per_second"] = report.tokens_per_second();
  json["tokens_per_joule"] = report.tokens_per_joule();
  for (std::size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    json["shares"][key_of(phase)] = report.share(phase);
  }
  json["weight_bytes"] = g.weight_bytes;
  json["hbm_bytes"] = g.hbm_bytes;
  json["hbm_read_bytes"] = g.hbm_read_bytes;
  json["link_bytes"] = g.link_bytes;
  if (report.same_in_float32) json["same_in_float32"] = *report.same_in_float32;
  if (report.functional) {
    json["tokens"] = g.tokens;
    if (!g.others.empty()) json["other_tokens"] = g.others;
    if (!report.seeded) {
      json["prompt"] = report.prompt;
      json["text"] = report.text;
    }
  }
  json["blocks"] = accounts_json(g.blocks);
  if (!g.rtl.empty()) json["rtl"] = to_json(g.rtl);
  json["wall_seconds"] = g.wall_seconds;
  return json;
}

std::string evaluation_text(const Evaluation& evaluation, const hw::Machine& machine,
                            const std::string& model) {
  const model::LogitComparison& c = evaluation.comparison;
  FactList facts;
  facts.add("machine", fmt::format("{}, {}", machine.name, counted(machine.dfx.cores, "core")));
  facts.add("model", model);
  const Evaluation::Limits& limits = evaluation.limits;
  facts.add("compared", counted(c.places(), "token") + " with float32 on the same weights");
  facts.add("likeliest", fmt::format("{:.2f} % the same, at least {} % expected",
                                     100 * c.same_top(), 100 * limits.same_top));
  facts.add("largest error", fmt::format("{:.2e} of the largest logit, at most {} expected",
                                         c.max_error(), limits.max_error));
  facts.add("mean error",
            fmt::format("{:.2e}, at most {} expected", c.mean_error(), limits.mean_error));
  facts.add("bits/token", fmt::format("{:.4f}, float32 {:.4f}, at most {} apart expected", c.bits(),
                                      c.reference_bits(), limits.bits));
  facts.add("verdict", evaluation.holds() ? "pass" : "FAIL");
  facts.add("simulation", with_prefix(evaluation.generation.wall_seconds, "s"));
  return facts.text();
}

nlohmann::ordered_json to_json(const Evaluation& evaluation, const hw::Machine& machine,
                               const std::string& model) {
  const model::LogitComparison& c = evaluation.comparison;
  nlohmann::ordered_json json;
  json["machine"] = machine.name;
  json["cores"] = machine.dfx.cores;
  json["model"] = model;
  json["tokens"] = c.places();
  json["same_top"] = c.same_top();
  json["max_error"] = c.max_error();
  json["mean_error"] = c.mean_error();
  json["bits_per_token"] = c.bits();
  json["float32_bits_per_token"] = c.reference_bits();
  json["holds"] = evaluation.holds();
  json["wall_seconds"] = evaluation.generation.wall_seconds;
  return json;
}

}  // namespace systole::testbench
