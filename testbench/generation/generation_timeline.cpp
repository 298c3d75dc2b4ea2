#include "testbench/generation/generation_timeline.h"

#include <fmt/format.h>

#include <array>

namespace systole::testbench {
namespace {

using hw::dfx::kUnits;

constexpr std::array<const char*, kUnits> kCoreUnitNames = {"matrix", "vector", "dma", "router"};

}  // namespace

GenerationTimeline::GenerationTimeline(const std::string& path, std::uint32_t cores,
                                       std::uint32_t core_mhz)
    : clock_(core_mhz), file_(path) {
  file_.stream() << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  for (std::uint32_t core = 0; core < cores; ++core) {
    put(fmt::format(R"({{"ph":"M","pid":{0},"name":"process_name","args":{{"name":"core {0}"}}}})",
                    core));
    for (std::size_t unit = 0; unit < kUnits; ++unit) {
      put(fmt::format(
          R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})", core,
          unit, kCoreUnitNames[unit]));
    }
  }
}

void GenerationTimeline::put(const std::string& event) {
  file_.stream() << (first_ ? "\n" : ",\n") << event;
  first_ = false;
}

std::string GenerationTimeline::us(std::uint64_t cycles) const {
  const std::uint64_t ns = clock_.edge_ps(cycles) / 1000;
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

void GenerationTimeline::add(const tlm_model::dfx::InstructionTrace& trace) {
  const hw::dfx::Instruction& instruction = *trace.instruction;
  const auto& times = trace.times;
  std::string what = fmt::format(R"("phase":"{}","begin_cycle":{},"result_cycle":{})",
                                 hw::dfx::name_of(instruction.phase), times.begin, times.end);
  if (instruction.weights.k_tiles != 0) {
    what += fmt::format(R"(,"k_tiles":{},"slices":{})", instruction.weights.k_tiles,
                        instruction.weights.slices);
  } else if (instruction.elements != 0) {
    what += fmt::format(R"(,"elements":{})", instruction.elements);
  }
  put(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}","args":{{{}}}}})",
                  trace.core, static_cast<std::size_t>(hw::dfx::unit_of(instruction.op)),
                  us(times.begin), us(times.released - times.begin),
                  hw::dfx::name_of(instruction.op), what));
}

void GenerationTimeline::write() {
  file_.stream() << "\n]}\n";
  file_.commit();
}

}  // namespace systole::testbench
