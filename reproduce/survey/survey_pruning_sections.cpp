/// Structured pruning, the survey's section 4, on a network for texts that ships.

#include <algorithm>
#include <string>
#include <vector>

#include "base/installation.h"
#include "hw/description/machine_file.h"
#include "reproduce/survey/survey.h"
#include "testbench/sparsify/attention_subject.h"
#include "testbench/sparsify/structure_curve.h"

namespace systole::testbench {
namespace {

constexpr std::size_t kAllInputs = 0;
/// Accuracy that may be lost, a fraction: one text of sixty.
constexpr double kLostAccuracy = 0.02;

std::vector<double> pruned_shares() {
  std::vector<double> shares;
  for (int tenths = 1; tenths <= 9; ++tenths) shares.push_back(tenths / 10.0);
  return shares;
}

/// The last point of a curve before accuracy is lost; the whole network if the first loses it.
const StructurePoint& last_without_loss(const StructureCurve& curve) {
  const double whole = curve.points.front().accuracy.value();
  const auto lost = std::find_if(
      curve.points.begin(), curve.points.end(),
      [&](const StructurePoint& point) { return point.accuracy.value() < whole - kLostAccuracy; });
  return *(lost - 1);
}

}  // namespace

ReproductionSection pruning_section() {
  const AttentionSubject subject(hw::data_directory() + "/models/words.safetensors",
                                 hw::data_directory() + "/data/words.safetensors", kAllInputs);
  const hw::Machine machine = hw::find_machine("transformer");
  Metrics metrics;
  for (const Structure structure : kStructures) {
    const StructureCurve curve = structure_curve(subject, structure, pruned_shares(), machine);
    const StructurePoint &whole = curve.points.front(), &point = last_without_loss(curve);
    const std::string name = structure_name(structure);
    metrics[name] = 100.0 * static_cast<double>(point.gone) / static_cast<double>(curve.parts);
    metrics[name + ", cycles"] = 100.0 * point.cycles / whole.cycles;
    metrics["accuracy"] = 100.0 * whole.accuracy.value();
  }
  return survey_paper().section("pruning", metrics);
}

}  // namespace systole::testbench
