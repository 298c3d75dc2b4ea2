#include "tlm/attention/attention_unit.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "hw/attention/mask_codec.h"
#include "hw/attention/sparse_head.h"
#include "hw/description/machine_file.h"
#include "hw/postop/postop.h"
#include "support/network/even_machine.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "tests/hw/attention/sparse_heads.h"

namespace systole::tlm_model {
namespace {

using test::CoreRig;
using test::load_command;

constexpr std::uint32_t kTokens = 12, kHeadWidth = 16;
constexpr std::uint64_t kOutputs = 16384, kMask = 32768;

/// A head whose queries attend to all keys.
hw::Command attention_command() {
  hw::cmd::Attention attention;
  attention.softmax = 0;
  attention.chain = 1;
  attention.queries = attention.keys = kTokens;
  attention.k = attention.n = kHeadWidth;
  attention.heads = 1;
  attention.query = {0, kHeadWidth};
  attention.key = {4096, kHeadWidth};
  attention.value = {8192, kHeadWidth};
  attention.out = {kOutputs, kHeadWidth};
  return {attention};
}

class AttentionUnitTest : public test::SystemCTest {};

TEST_F(AttentionUnitTest, IsCompleteWhenItsLastOutputIsAcknowledged) {
  hw::Stage softmax = hw::default_stage(hw::StageOp::kSoftmax);
  softmax.imm = {0, 1, 0, 8, 1, 0, 8};
  hw::Stage requantise = hw::default_stage(hw::StageOp::kRequantise);
  requantise.imm = {1, 8, -128, 127};
  const std::vector<hw::Chain> chains = {
      {{softmax}, hw::DType::kU8},
      {{hw::default_stage(hw::StageOp::kDivideRowSum), requantise}, hw::DType::kS8}};
  hw::HeadMask mask{kTokens, kTokens, {}};
  mask.keep.assign(std::size_t{kTokens} * kTokens, 1);
  // Half a nanosecond keeps the sums away from the ends of cycles, whatever the row buffers add.
  for (const double controller_ns : {40.5, 400.5}) {
    const hw::Machine machine = test::with_even_memory(hw::find_machine("vitcod"), controller_ns);
    const std::uint64_t write = test::latency_on(machine, kHeadWidth).write;
    test::fresh_kernel();
    CoreRig rig(machine, false);
    rig.masks = {{kMask, hw::encode_mask({hw::split(mask, {})})}};
    rig.run([&] {
      rig.execute({attention_command(), load_command(0, kOutputs, kHeadWidth, kTokens)}, chains);
    });
    // The last row is written in the cycle in which it leaves the engines, and frees them.
    EXPECT_EQ(rig[0].completed - rig[0].released, write) << controller_ns;
    EXPECT_EQ(rig[1].started, rig[0].completed) << "the reader of the outputs waits for them";
  }
}

}  // namespace
}  // namespace systole::tlm_model
