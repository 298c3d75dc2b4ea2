#pragma once

#include <cstdint>
#include <memory>

#include "hw/engines.h"
#include "hw/machine/machine.h"
#include "hw/machine/matrix_unit.h"
#include "hw/ring/engines.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

/// Engines in RTL. The machine gets the values and cycles that the RTL delivers; beside it run the
/// model and the cycle contract, for comparison. Engines count into `report`, which must outlive
/// them, under the name of the block. `options.wave`, if set, is the stem of a file name per block.
/// All throw InputError for sizes that no RTL is built for.
namespace systole::testbench {

/// An operation is a matmul command. Without C the RTL multiplies zeros, which takes as long.
[[nodiscard]] std::unique_ptr<hw::ArrayEngine> make_array_engine(const hw::Machine::Array& array,
                                                                 const RtlOptions& options,
                                                                 RtlReport& report);

/// An operation is a tile that was written or read.
[[nodiscard]] std::unique_ptr<hw::AccumulatorEngine> make_accumulator_engine(
    const hw::Machine& machine, const RtlOptions& options, RtlReport& report);

/// The post-op pipeline with the blocks in RTL that `backends` asks for, all or some; null for
/// none. An operation is a tile through a stage, or for postop_pipeline through a chain.
[[nodiscard]] std::unique_ptr<hw::PostopEngine> make_postop_engine(
    const hw::Machine::Backends& backends, std::uint32_t lanes, const RtlOptions& options,
    RtlReport& report);

/// The lines of one attention engine or of both, and the softmax between the phases, as `backends`
/// says. One line in RTL does what each line of the machine did, one after the other; an operation
/// is a phase of a line, or the softmax of a head or of a tile of its queries. Stages of the scores
/// are the model's.
[[nodiscard]] std::unique_ptr<hw::AttentionEngine> make_attention_engine(
    const hw::Machine::Attention& attention, const hw::Machine::Backends& backends,
    const RtlOptions& options, RtlReport& report);

/// One line of the auto-encoder does what each line of the machine did; an operation is a token.
[[nodiscard]] std::unique_ptr<hw::HeadMixEngine> make_mix_engine(
    const hw::Machine::Attention& attention, const RtlOptions& options, RtlReport& report);

/// Which blocks of a core for text generation run as RTL.
struct HalfBackends {
  bool mpu_tree = false;
  bool fp16_mul = false;
  bool fp16_add = false;
};

/// One lane in RTL does what each lane of the matrix unit did, one after the other; an operation is
/// a row of a product on one lane.
[[nodiscard]] std::unique_ptr<hw::MatrixLaneEngine> make_matrix_lane_engine(
    const hw::MatrixUnit& unit, HalfBackends backends, const RtlOptions& options,
    RtlReport& report);

/// Multiplier and adder of the vector unit, 16 lanes of each whatever the machine has.
[[nodiscard]] std::unique_ptr<hw::HalfVectorEngine> make_half_vector_engine(
    HalfBackends backends, const RtlOptions& options, RtlReport& report);

/// An operation is a packet, of hw::kMaxPacketFlits flits at most.
[[nodiscard]] std::unique_ptr<hw::RouterEngine> make_router_engine(bool rtl,
                                                                   std::uint64_t router_cycles,
                                                                   const RtlOptions& options,
                                                                   RtlReport& report);

}  // namespace systole::testbench
