#include "tlm/common/unbound_sockets.h"

#include <gtest/gtest.h>
#include <tlm_utils/multi_passthrough_initiator_socket.h>
#include <tlm_utils/multi_passthrough_target_socket.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <string>

#include "hw/description/machine_file.h"
#include "support/input_error.h"
#include "support/tlm/fixed_target.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/bus/system_bus.h"
#include "tlm/core/core.h"

namespace systole::tlm_model {
namespace {

/// Modules of a user with one socket.
struct SimpleIn : sc_core::sc_module {
  tlm_utils::simple_target_socket<SimpleIn> socket{"port_in"};
  explicit SimpleIn(const sc_core::sc_module_name& name) : sc_module(name) {
    socket.register_b_transport(this, &SimpleIn::b_transport);
  }
  void b_transport(tlm::tlm_generic_payload&, sc_core::sc_time&) {}
};
struct ManyIn : sc_core::sc_module {
  tlm_utils::multi_passthrough_target_socket<ManyIn> socket{"many"};
  explicit ManyIn(const sc_core::sc_module_name& name) : sc_module(name) {
    socket.register_b_transport(this, &ManyIn::b_transport);
  }
  void b_transport(int, tlm::tlm_generic_payload&, sc_core::sc_time&) {}
};
template <typename Socket>
struct Holds : sc_core::sc_module {
  Socket socket{"out"};
  explicit Holds(const sc_core::sc_module_name& name) : sc_module(name) {}
};
struct AnyModule {};

class UnboundSocketsTest : public test::SystemCTest {
 protected:
  UnboundSocketsTest() {
    expect_report(sc_core::SC_ID_NO_SC_START_ACTIVITY_);
    bus.connect_initiator(driver.socket);
    bus.connect_target(target.socket, 0, 64);
  }
  static std::string error() {
    return input_error_of([] { sc_core::sc_start(sc_core::SC_ZERO_TIME); });
  }

  SystemBus bus{"bus", {}};
  test::TlmDriver driver{"driver"};
  test::FixedTarget target{"target"};
};

TEST_F(UnboundSocketsTest, NothingIsSaidOfASystemThatIsBound) { EXPECT_EQ(error(), "no error"); }

TEST_F(UnboundSocketsTest, AnInitiatorSocketIsNamedWithItsModule) {
  Holds<tlm_utils::simple_initiator_socket<AnyModule>> own("own");
  EXPECT_EQ(error(),
            "initiator socket 'out' of module 'own' is bound to nothing, expected a target, or "
            "SystemBus::connect_initiator()");
}

TEST_F(UnboundSocketsTest, SoIsOneForSeveralTargets) {
  Holds<tlm_utils::multi_passthrough_initiator_socket<AnyModule>> own("own");
  EXPECT_EQ(error(),
            "initiator socket 'out' of module 'own' is bound to nothing, expected a target, or "
            "SystemBus::connect_initiator()");
}

TEST_F(UnboundSocketsTest, ATargetSocketIsNamedWithItsModule) {
  SimpleIn own("own");
  EXPECT_EQ(error(),
            "target socket 'port_in' of module 'own' is bound to nothing, expected an initiator, "
            "or SystemBus::connect_target()");
}

TEST_F(UnboundSocketsTest, SoIsOneForSeveralInitiators) {
  ManyIn own("own");
  EXPECT_EQ(error(),
            "target socket 'many' of module 'own' is bound to nothing, expected an initiator, or "
            "SystemBus::connect_target()");
}

TEST_F(UnboundSocketsTest, APortIsNamedWithItsModule) {
  Holds<sc_core::sc_in<bool>> own("own");
  EXPECT_EQ(error(),
            "port 'out' of module 'own' is bound to nothing, expected a signal or another channel");
}

TEST_F(UnboundSocketsTest, AnOptionalSocketMayBeLeft) {
  Holds<tlm_utils::simple_initiator_socket_optional<AnyModule>> own("own");
  EXPECT_EQ(error(), "no error");
}

TEST_F(UnboundSocketsTest, OfACoreItIsThePortOfAUnit) {
  const hw::Machine machine = hw::find_machine("tiny");
  Core core("core", machine, make_models(machine), true);
  sc_core::sc_signal<bool> interrupt{"interrupt"};
  core.interrupt(interrupt);
  bus.connect_target(core.registers, hw::kRegistersBase, Core::kRegisterBytes);
  // All but one, which is the one that the message names.
  DmaPort* left = core.ports().back();
  for (DmaPort* port : core.ports()) {
    if (port != left) bus.connect_initiator(port->socket);
  }
  EXPECT_EQ(error(), "initiator socket 'socket' of module '" + std::string(left->name()) +
                         "' is bound to nothing, expected a target, or "
                         "SystemBus::connect_initiator()");
}

// Other reports go where they went before.
TEST_F(UnboundSocketsTest, OtherReportsAreLeftAlone) {
  expect_report("/own/report");
  EXPECT_THROW(SC_REPORT_ERROR("/own/report", "of something else"), sc_core::sc_report);
}

}  // namespace
}  // namespace systole::tlm_model
