#pragma once

namespace systole::tlm_model {

/// A module some of whose traced values follow from its state and the present time. A recorder
/// calls sample() before it looks; without one the module spends nothing on them.
class Sampled {
 public:
  virtual ~Sampled() = default;
  virtual void sample() = 0;
};

}  // namespace systole::tlm_model
