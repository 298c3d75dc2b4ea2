#include "testbench/network/run_subject.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace systole::testbench {
namespace {

RunRequest small_request() {
  RunRequest request{"bert-base", {}, {}, 1, false, false};
  request.size.layers = 1;
  request.size.length = 16;
  return request;
}

// Cores that share heads or layers ask for no program of the whole network: it need not fit.
TEST(RunSubject, MapsTheNetworkIfItsProgramIsAskedFor) {
  RunRequest request = small_request();
  hw::Machine machine = hw::find_machine("transformer");
  const RunSubject subject(request, machine);
  const mapper::Mapping& mapping = subject.mapping();
  EXPECT_FALSE(mapping.program.commands.empty());
  EXPECT_EQ(&subject.mapping(), &mapping) << "once";
  machine.scratchpad.kib = 1;
  EXPECT_THROW(RunSubject(request, machine), hw::InputError);
  request.maps = false;
  const RunSubject large(request, machine);
  EXPECT_FALSE(large.graph().nodes.empty());
  EXPECT_EQ(large.inputs().size(), 1U);
  EXPECT_ANY_THROW((void)large.mapping());
}

}  // namespace
}  // namespace systole::testbench
