#pragma once

/// What elaboration says of sockets that nobody bound.
namespace systole::tlm_model {

/// From here on SystemC's report of a port without a binding (E109, at the first sc_start()) is
/// thrown as hw::InputError of one line: which socket or port of which module, and what was
/// expected. All other reports go to the handler that is set now. Bus and core call it; a handler
/// that is set later takes its place.
void explain_unbound_sockets();

}  // namespace systole::tlm_model
