#include "tlm/common/unbound_sockets.h"

#include <cstring>
#include <string>
#include <systemc>
#include <tlm>

#include "base/error.h"

namespace systole::tlm_model {
namespace {

sc_core::sc_report_handler_proc other_reports = &sc_core::sc_report_handler::default_handler;

/// The name between the first quotes of "port not bound: port 'system.cpu.socket' (sc_port)".
std::string quoted_name(const std::string& message) {
  const std::size_t begin = message.find('\'');
  const std::size_t end = message.find('\'', begin + 1);
  if (begin == std::string::npos || end == std::string::npos) return "";
  return message.substr(begin + 1, end - begin - 1);
}

/// The socket that the port is or belongs to: that of a target socket is beside it and has its
/// name, with an ending. Null: none.
const tlm::tlm_base_socket_if* socket_of(std::string& name) {
  const auto find = [](const std::string& object) {
    return dynamic_cast<const tlm::tlm_base_socket_if*>(sc_core::sc_find_object(object.c_str()));
  };
  if (const auto* const socket = find(name)) return socket;
  const std::size_t ending = name.rfind("_port");
  if (ending == std::string::npos) return nullptr;
  const auto* const socket = find(name.substr(0, ending));
  if (socket != nullptr) name.resize(ending);
  return socket;
}

std::string explain(const std::string& message) {
  std::string name = quoted_name(message);
  const tlm::tlm_base_socket_if* const socket = socket_of(name);
  const std::size_t dot = name.rfind('.');
  const std::string of = dot == std::string::npos ? "" : " of module '" + name.substr(0, dot) + "'";
  const std::string what = "'" + name.substr(dot == std::string::npos ? 0 : dot + 1) + "'" + of +
                           " is bound to nothing, expected ";
  if (socket == nullptr) return "port " + what + "a signal or another channel";
  const bool initiates =
      (socket->get_socket_category() & tlm::TLM_INITIATOR_SOCKET) == tlm::TLM_INITIATOR_SOCKET;
  return initiates ? "initiator socket " + what + "a target, or SystemBus::connect_initiator()"
                   : "target socket " + what + "an initiator, or SystemBus::connect_target()";
}

void on_report(const sc_core::sc_report& report, const sc_core::sc_actions& actions) {
  if (std::strcmp(report.get_msg_type(), sc_core::SC_ID_COMPLETE_BINDING_) == 0) {
    throw hw::InputError(explain(report.get_msg()));
  }
  other_reports(report, actions);
}

}  // namespace

void explain_unbound_sockets() {
  const sc_core::sc_report_handler_proc before =
      sc_core::sc_report_handler::set_handler(&on_report);
  if (before != &on_report && before != nullptr) other_reports = before;
}

}  // namespace systole::tlm_model
