#include "reproduce/result_row.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace systole::testbench {
namespace {

/// A figure that was rounded from the middle is met, whatever doubles make of the difference.
constexpr double kMiddle = 1.0 + 1e-6;

bool holds(const Tolerance& tolerance, double ours, double published) {
  const double away = std::fabs(ours - published);
  switch (tolerance.kind) {
    case Tolerance::Kind::kRelative:
      return away <= tolerance.amount * std::fabs(published);
    case Tolerance::Kind::kAbsolute:
      return away <= tolerance.amount * kMiddle;
    case Tolerance::Kind::kAtMost:
      return ours <= published;
    case Tolerance::Kind::kAtLeast:
      return ours >= published;
  }
  return false;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "fail";
    case Verdict::kReference:
      break;
  }
  return "reference";
}

std::string_view claim_name(Claim claim) {
  switch (claim) {
    case Claim::kPublished:
      return "published";
    case Claim::kCalibrated:
      return "calibrated";
    case Claim::kEstimate:
      return "estimate";
    case Claim::kMeasured:
      return "measured here";
    case Claim::kRecollected:
      return "recollected";
    case Claim::kFollows:
      break;
  }
  return "follows";
}

Verdict ResultRow::verdict() const {
  if (!is_judged(claim)) return Verdict::kReference;
  if (!tolerance || !ours || !published) return Verdict::kReference;
  const bool is_vague = tolerance->kind == Tolerance::Kind::kAbsolute && *published != 0.0 &&
                        tolerance->amount > std::fabs(*published) / 2;
  if (is_vague) return Verdict::kReference;
  return holds(*tolerance, *ours, *published) ? Verdict::kPass : Verdict::kFail;
}

std::optional<double> ResultRow::difference() const {
  if (!ours || !published || *published == 0.0) return std::nullopt;
  return *ours / *published - 1.0;
}

std::string ResultRow::bound() const {
  if (!tolerance) return "";
  switch (tolerance->kind) {
    case Tolerance::Kind::kRelative:
      return tolerance->amount == 0.0 ? "equal"
                                      : fmt::format("within {:g} %", 100.0 * tolerance->amount);
    case Tolerance::Kind::kAbsolute:
      return fmt::format("within {:g} {}", tolerance->amount, unit == "%" ? "points" : unit);
    case Tolerance::Kind::kAtMost:
      return "at most";
    case Tolerance::Kind::kAtLeast:
      break;
  }
  return "at least";
}

ResultRow compare(std::string name, std::optional<double> ours, const Published& published) {
  return {std::move(name),       ours,
          published.value,       published.unit,
          published.source.text, published.source.claim,
          published.tolerance,   published.decimals};
}

ResultRow measured(std::string name, double ours, std::string unit) {
  return {std::move(name),   ours,         std::nullopt, std::move(unit), "",
          Claim::kPublished, std::nullopt, std::nullopt};
}

}  // namespace systole::testbench
