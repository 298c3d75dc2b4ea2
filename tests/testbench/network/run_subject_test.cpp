#include "testbench/network/run_subject.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace systole::testbench {
namespace {

RunRequest request_of(const std::string& model) {
  RunRequest request{model, {}, {}, 1, false, false};
  request.size.layers = 1;
  request.size.length = 16;
  return request;
}

// Cores that share heads or layers ask for no program of the whole network: it need not fit.
TEST(RunSubject, MapsTheNetworkWhenItsProgramIsAskedFor) {
  hw::Machine machine = hw::find_machine("transformer");
  const RunSubject subject(request_of("bert-base"), machine);
  const mapper::Mapping& mapping = subject.mapping();
  EXPECT_FALSE(mapping.program.commands.empty());
  EXPECT_EQ(&subject.mapping(), &mapping) << "once";
  machine.scratchpad.kib = 1;
  const RunSubject large(request_of("bert-base"), machine);
  EXPECT_FALSE(large.graph().nodes.empty());
  EXPECT_EQ(large.inputs().size(), 1U);
  EXPECT_THROW((void)large.mapping(), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench
