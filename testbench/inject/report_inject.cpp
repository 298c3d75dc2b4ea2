#include "testbench/inject/report_inject.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <utility>

#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

/// Standard normal quantile of 97.5 %.
constexpr double kZ = 1.959963984540054;

/// Centre and half width of the interval.
std::pair<double, double> wilson(const Share& share) {
  if (share.total == 0) return {0.5, 0.5};
  const auto n = static_cast<double>(share.total);
  const double p = static_cast<double>(share.count) / n;
  const double scale = 1 + kZ * kZ / n;
  return {(p + kZ * kZ / (2 * n)) / scale,
          kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n)) / scale};
}

std::string with_interval(const Share& share) {
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", share.value() * 100, share.low() * 100,
                     share.high() * 100);
}

ordered_json share_json(const Share& share) {
  return {{"count", share.count},
          {"share", share.value()},
          {"low", share.low()},
          {"high", share.high()}};
}

ordered_json counts_json(const OutcomeCounts& counts) {
  ordered_json json{{"injections", counts.total}};
  for (const FaultOutcome outcome : kFaultOutcomes) {
    json[std::string(name_of(outcome))] = share_json(counts.of(outcome));
  }
  json["silent"] = share_json(counts.silent());
  json["vulnerable"] = share_json(counts.vulnerable());
  return json;
}

ordered_json injection_json(const InjectionResult& result) {
  const Injection& injection = result.injection;
  ordered_json json{{"where", name_of(injection.target)},
                    {"picture", injection.picture},
                    {"cycle", injection.cycle},
                    {"address", injection.address},
                    {"bit", injection.bit},
                    {"flips", injection.flips},
                    {"outcome", name_of(result.outcome)},
                    {"changed_bytes", result.changed},
                    {"class", nullptr},
                    {"simulated", result.simulated}};
  if (result.label >= 0) json["class"] = result.label;
  return json;
}

std::string_view reason_of(const InjectionResult& result) {
  switch (result.plan.fate) {
    case FlipPlan::Fate::kOverwritten:
      return "replaced before anything reads it";
    case FlipPlan::Fate::kUnused:
      return "nothing reads it any more";
    case FlipPlan::Fate::kDetected:
      return "found by the memory's code at the next read";
    case FlipPlan::Fate::kCorrected:
      return "corrected by the memory's code at the next read";
    case FlipPlan::Fate::kRead:
      break;
  }
  return "read afterwards, simulated to the end";
}

std::string one_text(const InjectReport& report) {
  const InjectionResult& result = report.result.injections.front();
  const Injection& injection = result.injection;
  FactList facts;
  facts.add("machine", report.machine);
  facts.add("model", report.model);
  const std::string bits = injection.flips == 2
                               ? fmt::format("bits {} and {}", injection.bit, injection.bit ^ 1U)
                               : fmt::format("bit {}", injection.bit);
  facts.add(
      "injection",
      fmt::format("{}, {} {}, {}, at the begin of cycle {} of {}", name_of(injection.target),
                  array_register(injection.target) ? "element" : "byte", grouped(injection.address),
                  bits, grouped(injection.cycle), grouped(report.result.cycles)));
  facts.add("flipped bits", std::string(reason_of(result)));
  facts.add("outcome", std::string(name_of(result.outcome)));
  facts.add("outputs", fmt::format("{} differ", counted(result.changed, "byte")));
  if (result.label >= 0) facts.add("class", fmt::format("{}", result.label));
  return facts.text();
}

}  // namespace

double Share::value() const {
  return total == 0 ? 0 : static_cast<double>(count) / static_cast<double>(total);
}
double Share::low() const {
  const auto [centre, half] = wilson(*this);
  return count == 0 ? 0 : centre - half;
}
double Share::high() const {
  const auto [centre, half] = wilson(*this);
  return count == total ? 1 : centre + half;
}

void OutcomeCounts::add(FaultOutcome outcome) {
  ++total;
  ++by_outcome[static_cast<std::size_t>(outcome)];
}
Share OutcomeCounts::of(FaultOutcome outcome) const {
  return {by_outcome[static_cast<std::size_t>(outcome)], total};
}
Share OutcomeCounts::vulnerable() const {
  return {total - of(FaultOutcome::kMasked).count - of(FaultOutcome::kCorrected).count, total};
}
Share OutcomeCounts::silent() const {
  return {of(FaultOutcome::kLogits).count + of(FaultOutcome::kClass).count, total};
}

std::vector<TargetCounts> count_outcomes(const CampaignRequest& request,
                                         const CampaignResult& result) {
  std::vector<TargetCounts> targets;
  for (std::size_t i = 0; i < request.targets.size(); ++i) {
    const FaultTarget target = request.targets[i];
    TargetCounts counts{target, result.bits[i], {}, {}};
    counts.bits.resize(word_bits(target));
    for (const InjectionResult& each : result.injections) {
      if (each.injection.target != target) continue;
      counts.all.add(each.outcome);
      counts.bits[each.injection.bit_of_word()].add(each.outcome);
    }
    targets.push_back(std::move(counts));
  }
  return targets;
}

std::string inject_text(const InjectReport& report) {
  if (report.request.one) return one_text(report);
  const CampaignResult& result = report.result;
  FactList facts;
  facts.add("machine", report.machine);
  facts.add("model", report.model);
  facts.add("run", fmt::format("{} cycles, {}", grouped(result.cycles),
                               counted(report.pictures, "input")));
  facts.add("injections",
            fmt::format("{} of {}, seed {}, {} simulated", grouped(result.injections.size()),
                        counted(report.request.flips, "bit"), report.request.seed,
                        grouped(result.simulated)));
  facts.add(
      "host time",
      fmt::format("{:.1f} s in {}; {:.1f} s of processor time, {:.2f} ms each", result.seconds,
                  counted(report.request.workers, "process", "processes"), result.cpu_seconds,
                  result.cpu_seconds * 1e3 / static_cast<double>(result.injections.size())));
  const std::vector<TargetCounts> targets = count_outcomes(report.request, result);
  Table outcomes("where|>bits|>masked %|>corrected|>logits|>class|>detected|>hang");
  Table shares("where|>silent % (95 %)|>vulnerable % (95 %)");
  Table bits("where|>bit|>silent % (95 %)|>class % (95 %)|>vulnerable %");
  for (const TargetCounts& target : targets) {
    std::vector<std::string> cells{std::string(name_of(target.target)), grouped(target.size)};
    for (const FaultOutcome outcome : kFaultOutcomes) {
      cells.push_back(fmt::format("{:.2f}", target.all.of(outcome).value() * 100));
    }
    outcomes.add(std::move(cells));
    shares.add({std::string(name_of(target.target)), with_interval(target.all.silent()),
                with_interval(target.all.vulnerable())});
    for (std::size_t bit = 0; bit < target.bits.size(); ++bit) {
      const OutcomeCounts& counts = target.bits[bit];
      if (counts.total == 0) continue;
      bits.add({std::string(name_of(target.target)), std::to_string(bit),
                with_interval(counts.silent()), with_interval(counts.of(FaultOutcome::kClass)),
                fmt::format("{:.2f}", counts.vulnerable().value() * 100)});
    }
  }
  return facts.text() + "\n" + outcomes.text() + "\n" + shares.text() + "\n" + bits.text();
}

ordered_json inject_json(const InjectReport& report) {
  const CampaignResult& result = report.result;
  ordered_json json{{"model", report.model},          {"machine", report.machine},
                    {"cycles", result.cycles},        {"pictures", report.pictures},
                    {"host_seconds", result.seconds}, {"processor_seconds", result.cpu_seconds}};
  if (report.request.one) {
    json["injection"] = injection_json(result.injections.front());
    return json;
  }
  json["seed"] = report.request.seed;
  json["flips"] = report.request.flips;
  json["injections"] = result.injections.size();
  json["simulated"] = result.simulated;
  ordered_json& targets = json["targets"] = ordered_json::array();
  for (const TargetCounts& target : count_outcomes(report.request, result)) {
    ordered_json each{{"where", name_of(target.target)}, {"size_bits", target.size}};
    each.update(counts_json(target.all));
    ordered_json& bits = each["bits"] = ordered_json::array();
    for (std::size_t bit = 0; bit < target.bits.size(); ++bit) {
      ordered_json of_bit{{"bit", bit}};
      of_bit.update(counts_json(target.bits[bit]));
      bits.push_back(std::move(of_bit));
    }
    targets.push_back(std::move(each));
  }
  return json;
}

void write_inject_csv(std::ostream& out, const InjectReport& report) {
  out << "where,picture,cycle,address,bit,flips,outcome,changed_bytes,class,simulated\n";
  for (const InjectionResult& result : report.result.injections) {
    const Injection& injection = result.injection;
    out << fmt::format("{},{},{},{},{},{},{},{},{},{}\n", name_of(injection.target),
                       injection.picture, injection.cycle, injection.address, injection.bit,
                       injection.flips, name_of(result.outcome), result.changed,
                       result.label < 0 ? "" : std::to_string(result.label),
                       result.simulated ? 1 : 0);
  }
}

}  // namespace systole::testbench
