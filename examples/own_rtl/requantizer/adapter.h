#pragma once

/// The ports that a name alone does not map. OwnPorts, which `systole rtl add` writes, has all
/// others under the block's names, and the Verilated module as `top`.
class ActiveHighReset : public OwnPorts {
 public:
  using OwnPorts::OwnPorts;

  CData rst_ni = 0;

  void eval() {
    top.areset = !rst_ni;
    OwnPorts::eval();
  }
};
