#include "testbench/network/matmul_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_text.h"
#include "hw/number/dyadic.h"
#include "hw/number/int4.h"
#include "hw/program/program.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"

namespace systole::testbench {
namespace {

constexpr std::uint64_t kSeedA = 1, kSeedB = 2, kSeedBias = 3;
constexpr std::int32_t kLargestOperand = 127;
/// Standard deviation that the results have, in codes: few of them reach the clamp at 127.
constexpr double kResultDeviation = 40.0;

[[noreturn]] void fail(std::string_view text, const std::string& what) {
  throw hw::InputError(fmt::format("matmul {}: {}", hw::printable(text, 64), what));
}

/// Uniform in [-largest, largest]. std::uniform_int_distribution differs between libraries.
class Uniform {
 public:
  Uniform(std::uint64_t seed, std::int32_t largest) : engine_(seed), largest_(largest) {}
  std::int32_t operator()() {
    const auto values = static_cast<std::uint64_t>(2 * std::int64_t{largest_} + 1);
    return static_cast<std::int32_t>((engine_() >> 32) * values >> 32) - largest_;
  }

 private:
  std::mt19937_64 engine_;
  std::int32_t largest_;
};

std::vector<std::uint8_t> operand_bytes(std::uint64_t seed, std::size_t count,
                                        std::int32_t largest = kLargestOperand) {
  Uniform uniform(seed, largest);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(uniform());
  return bytes;
}

}  // namespace

MatmulShape parse_matmul_shape(std::string_view text) {
  std::array<std::uint64_t, 3> sides{};
  std::string_view rest = text;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const char* const end = rest.data() + rest.size();
    const auto [stop, error] = std::from_chars(rest.data(), end, sides[i]);
    const bool last = i + 1 == sides.size();
    if (error == std::errc::result_out_of_range) fail(text, "a side does not fit 64 bits");
    if (error != std::errc() || (last ? stop != end : stop == end || *stop != 'x')) {
      fail(text, "expected MxNxK, three decimal numbers such as 64x64x256");
    }
    rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()) + (last ? 0 : 1));
  }
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (sides[i] < 1 || sides[i] > kMaxMatmulSide) {
      fail(text, fmt::format("{} is {}, expected 1 to {}", "MNK"[i], sides[i], kMaxMatmulSide));
    }
  }
  const MatmulShape shape{static_cast<std::uint32_t>(sides[0]),
                          static_cast<std::uint32_t>(sides[1]),
                          static_cast<std::uint32_t>(sides[2])};
  const std::array<std::pair<const char*, std::uint64_t>, 3> matrices{
      {{"A (M x K)", std::uint64_t{shape.m} * shape.k},
       {"B (K x N)", std::uint64_t{shape.k} * shape.n},
       {"C (M x N)", std::uint64_t{shape.m} * shape.n}}};
  for (const auto& [name, elements] : matrices) {
    if (elements > kMaxMatmulElements) {
      fail(text, fmt::format("{} has {} elements, expected at most {}", name, elements,
                             kMaxMatmulElements));
    }
  }
  return shape;
}

// A command with operands in the scratchpad and its result in the accumulator has
// (m n k)^2 = (m k) (k n) (m n), and m k + k n bytes fit the one, 4 m n the other.
void check_program_size(const MatmulShape& shape, const hw::Machine& machine) {
  const double half_scratchpad = machine.scratchpad.kib * 1024.0 / 2.0;
  const double accumulators = machine.accumulator.kib * 1024.0 / 4.0;
  const double largest = std::sqrt(half_scratchpad * half_scratchpad * accumulators);
  const double bytes = static_cast<double>(shape.macs()) / largest * hw::kCommandBytes;
  const double available = machine.dram.mib * 1024.0 * 1024.0;
  if (bytes <= available) return;
  const double mib = std::ceil(bytes / available * machine.dram.mib);
  throw hw::InputError(fmt::format(
      "matmul {}x{}x{}: the commands alone take {:.0f} MiB or more, but dram.mib = {}{}", shape.m,
      shape.n, shape.k, mib, machine.dram.mib,
      hw::memory_advice("dram.mib", static_cast<std::uint64_t>(mib))));
}

model::Graph make_matmul_graph(const MatmulShape& shape, const hw::Machine::Datapath& datapath,
                               bool shape_only, const MatmulResult& result) {
  using Kind = model::Tensor::Kind;
  constexpr unsigned kResultBits = 8;
  model::GraphBuilder builder(fmt::format("matmul {}x{}x{}", shape.m, shape.n, shape.k));
  const auto largest = [](bool int4) { return int4 ? hw::kLargestInt4 : kLargestOperand; };
  const auto a = builder.add_tensor({"a", shape.m, shape.k, hw::DType::kS8, Kind::kInput, {}, 0.0});
  const auto b =
      builder.add_tensor({"b", shape.k, shape.n, hw::DType::kS8, Kind::kConstant, {}, 0.0});
  const std::int32_t largest_a = largest(result.int4.a), largest_b = largest(result.int4.b);
  builder.tensor(a).int4 = result.int4.a;
  builder.tensor(b).int4 = result.int4.b;
  if (!shape_only) {
    builder.tensor(b).data = operand_bytes(kSeedB, std::size_t{shape.k} * shape.n, largest_b);
  }
  // A product of two uniform operands has a third of the square of their largest value each.
  const double deviation = std::sqrt(static_cast<double>(shape.k)) * largest_a * largest_b / 3.0;
  model::View sums = builder.matmul("matmul", builder.whole(a), builder.whole(b), false);
  if (result.bias) {
    model::StageOperands bias;
    if (!shape_only) {
      Uniform uniform(kSeedBias, static_cast<std::int32_t>(deviation));
      bias.parameters.resize(shape.n);
      std::generate(bias.parameters.begin(), bias.parameters.end(), uniform);
    }
    sums =
        builder.stage("matmul.bias", sums, model::bias_stage(), hw::DType::kS32, std::move(bias));
  }
  if (result.requantised) {
    const hw::Dyadic factor =
        hw::make_dyadic(kResultDeviation / deviation, datapath.multiplier_bits);
    sums = builder.stage("matmul.requantise", sums,
                         model::requantise_stage(factor, kResultBits, datapath.rounding),
                         hw::DType::kS8);
  }
  model::Tensor& out = builder.tensor(sums.tensor);
  out.name = "c";
  out.kind = Kind::kOutput;
  return std::move(builder).take();
}

std::vector<std::uint8_t> matmul_input(const MatmulShape& shape, bool int4) {
  return operand_bytes(kSeedA, std::size_t{shape.m} * shape.k,
                       int4 ? hw::kLargestInt4 : kLargestOperand);
}

}  // namespace systole::testbench
