/// Programs that follow one another on the same attention engines.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/program/program_image.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "testbench/attention/attention_workload.h"
#include "tests/hw/attention/sparse_heads.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

constexpr AttentionShape kShape{2, 24, 20, 16, 0};

class AttentionPrograms : public test::SystemCTest {
 protected:
  AttentionPrograms() {
    std::mt19937 random(5);
    for (int i = 0; i < 3; ++i) {
      std::vector<hw::SparseHead> layer;
      for (std::size_t head = 0; head < kShape.heads; ++head) {
        hw::HeadMask mask{kShape.queries, kShape.keys, {}};
        for (std::size_t cell = 0; cell < kShape.queries * kShape.keys; ++cell) {
          mask.keep.push_back(random() % 3 == 0 ? 1 : 0);
        }
        layer.push_back(hw::split_anywhere(mask, random));
      }
      workloads_.push_back(make_attention_workload(kShape, {layer}, machine_, true));
    }
    // The program of all resides at one address, after the longest mask.
    for (const AttentionWorkload& workload : workloads_) {
      code_address_ = std::max(code_address_, workload.program_address);
    }
    for (AttentionWorkload& workload : workloads_) workload.program_address = code_address_;
  }

  /// Runs all programs in turns, twice, at one address.
  void run_all() {
    test::fresh_kernel();
    const hw::MemoryImage nothing;
    const std::vector<hw::HostFunction> none;
    tlm_model::System system("system", machine_, tlm_model::make_models(machine_), code_address_,
                             nothing, none, true);
    std::size_t begun = 0, done = 0;
    system.host.set_work(
        [&](tlm_model::Host::Job&) {
          if (begun == 2 * workloads_.size()) return false;
          const AttentionWorkload& workload = workloads_[begun++ % workloads_.size()];
          for (const hw::MemoryPiece& piece : workload.operands) write(system, piece);
          system.exchange_program(memory_image(workload), none);
          return true;
        },
        [&](const tlm_model::Host::Job&) {
          const AttentionWorkload& workload = workloads_[done++ % workloads_.size()];
          const std::vector<std::uint8_t> expected = masked_reference(workload, 0);
          std::vector<std::uint8_t> found(expected.size());
          system.peek(workload.addresses[0].out, found.data(), found.size());
          EXPECT_EQ(found, expected) << "program " << done - 1;
        });
    sc_core::sc_start();
    EXPECT_EQ(done, 2 * workloads_.size());
  }

  static void write(tlm_model::System& system, hw::MemoryPiece piece) {
    system.host.debug(tlm::TLM_WRITE_COMMAND, piece.address, piece.bytes.data(),
                      piece.bytes.size());
  }

  const hw::Machine machine_ = hw::find_machine("vitcod");
  std::vector<AttentionWorkload> workloads_;
  std::uint64_t code_address_ = 0;
};

TEST_F(AttentionPrograms, EachHasItsOwnMask) { run_all(); }

}  // namespace
}  // namespace systole::testbench
