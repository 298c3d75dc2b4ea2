#include "testbench/inject/injection.h"

#include "base/error.h"
#include "base/printable.h"

namespace systole::testbench {

std::string_view name_of(FaultTarget target) {
  switch (target) {
    case FaultTarget::kScratchpad:
      return "scratchpad";
    case FaultTarget::kAccumulator:
      return "accumulator";
    case FaultTarget::kWeights:
      return "weights";
    case FaultTarget::kParameters:
      return "parameters";
    case FaultTarget::kCommands:
      return "commands";
    case FaultTarget::kArrayWeights:
      return "array_weights";
    case FaultTarget::kArrayActivations:
      return "array_activations";
    case FaultTarget::kArraySums:
      break;
  }
  return "array_sums";
}

FaultTarget fault_target(std::string_view name) {
  std::string known;
  for (const FaultTarget target : kFaultTargets) {
    if (name == name_of(target)) return target;
    known += (known.empty() ? "" : ", ") + std::string(name_of(target));
  }
  throw hw::InputError("--where: found " + hw::printable(std::string(name)) + ", expected one of " +
                       known);
}

std::optional<hw::ArrayRegister> array_register(FaultTarget target) {
  if (target == FaultTarget::kArrayWeights) return hw::ArrayRegister::kWeight;
  if (target == FaultTarget::kArrayActivations) return hw::ArrayRegister::kActivation;
  if (target == FaultTarget::kArraySums) return hw::ArrayRegister::kSum;
  return std::nullopt;
}

std::uint32_t bits_per_address(FaultTarget target) {
  const auto in_array = array_register(target);
  return in_array ? hw::bits_of(*in_array) : 8;
}

std::uint32_t word_bits(FaultTarget target) {
  const bool words = target == FaultTarget::kAccumulator || target == FaultTarget::kParameters;
  return words ? 32 : bits_per_address(target);
}

hw::Space Injection::space() const {
  if (target == FaultTarget::kScratchpad) return hw::Space::kScratchpad;
  return target == FaultTarget::kAccumulator ? hw::Space::kAccumulator : hw::Space::kDram;
}

std::string_view name_of(FaultOutcome outcome) {
  switch (outcome) {
    case FaultOutcome::kMasked:
      return "masked";
    case FaultOutcome::kCorrected:
      return "corrected";
    case FaultOutcome::kLogits:
      return "logits";
    case FaultOutcome::kClass:
      return "class";
    case FaultOutcome::kDetected:
      return "detected";
    case FaultOutcome::kHang:
      break;
  }
  return "hang";
}

}  // namespace systole::testbench
