#include "tlm/dma/issue_order.h"

#include <algorithm>

namespace systole::tlm_model {

std::shared_ptr<IssueOrder> IssueOrder::of_simulation() {
  static std::weak_ptr<IssueOrder> present;
  std::shared_ptr<IssueOrder> order = present.lock();
  if (order == nullptr) present = order = std::make_shared<IssueOrder>();
  return order;
}

void IssueOrder::take_turn(Port& port) {
  const bool leads = line_.empty();
  if (leads && !sc_core::sc_pending_activity_at_current_time()) return;
  const auto after = [](const Port* a, const Port* b) { return a->rank_ > b->rank_; };
  line_.insert(std::upper_bound(line_.begin(), line_.end(), &port, after), &port);
  if (!leads) {
    sc_core::wait(port.turn_);
    if (!port.leads_) return;
  }
  lead(port);
}

void IssueOrder::lead(const Port& port) {
  // One port looks when all else has happened: others would be something that happens.
  const Port* first = nullptr;
  do {
    do {
      sc_core::wait(sc_core::SC_ZERO_TIME);
    } while (sc_core::sc_pending_activity_at_current_time());
    Port& next = *line_.back();
    line_.pop_back();
    first = &next;
    next.leads_ = false;
    if (first != &port) next.turn_.notify();
  } while (first != &port);
  if (line_.empty()) return;
  line_.back()->leads_ = true;
  line_.back()->turn_.notify();
}

}  // namespace systole::tlm_model
