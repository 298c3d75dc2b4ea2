#include "tlm/host/trace_player.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/error.h"

namespace systole::tlm_model {
namespace {

/// Bus cycles that the player may be ahead of simulated time: calendars keep that much.
constexpr std::uint64_t kAhead = 256;
constexpr std::uint64_t kNotAnswered = ~std::uint64_t{0};

}  // namespace

TracePlayer::TracePlayer(const sc_core::sc_module_name& name, const hw::Machine& machine,
                         const std::vector<BusTransaction>& trace, std::size_t initiators,
                         Timing timing, std::uint32_t outstanding)
    : sc_module(name),
      sockets("initiator", initiators),
      clock_(machine.bus.clock_mhz),
      trace_(trace),
      timing_(timing),
      outstanding_(outstanding),
      flows_(initiators),
      answers_(trace.size(), kNotAnswered) {
  for (std::size_t i = 0; i < trace.size(); ++i) flows_[trace[i].initiator].positions.push_back(i);
  SC_HAS_PROCESS(TracePlayer);
  SC_THREAD(run);
}

void TracePlayer::run() {
  if (timing_ == Timing::kElapsed) {
    play_elapsed();
  } else {
    play_dependent();
  }
}

// Calls are not sorted by time: an initiator may be ahead of simulated time. Simulated time follows
// the earliest call to come, so that the calls find what they found when they were recorded.
void TracePlayer::play_elapsed() {
  std::vector<std::uint64_t> floors(trace_.size());
  std::uint64_t floor = kNotAnswered;
  for (std::size_t i = trace_.size(); i-- > 0;) {
    floor = std::min(floor, trace_[i].asked);
    floors[i] = floor;
  }
  for (std::size_t i = 0; i < trace_.size(); ++i) {
    ask(i, std::max(trace_[i].asked, slot_free(flows_[trace_[i].initiator])), floors[i]);
  }
}

void TracePlayer::play_dependent() {
  const std::vector<std::size_t> dependences = find_dependences();
  using Ready = std::pair<std::uint64_t, std::size_t>;  // cycle, position
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  std::vector<const Flow*> waiting;  // the next of each depends on what was not asked for yet
  const auto offer = [&](const Flow& flow) {
    if (flow.next == flow.positions.size()) return;
    const std::size_t position = flow.positions[flow.next], on = dependences[position];
    if (on != kNone && answers_[on] == kNotAnswered) {
      waiting.push_back(&flow);
      return;
    }
    const std::uint64_t recorded = trace_[position].asked;
    std::uint64_t asked = slot_free(flow);
    if (flow.next != 0) {
      const std::uint64_t apart = recorded - trace_[flow.positions[flow.next - 1]].asked;
      // Without an answer before it, as long after the one before.
      asked = std::max(asked,
                       flow.last_asked + (on == kNone ? apart : std::min<std::uint64_t>(apart, 1)));
    } else if (on == kNone) {
      asked = std::max(asked, recorded);
    }
    if (on != kNone) asked = std::max(asked, answers_[on] + (recorded - trace_[on].answered));
    ready.emplace(asked, position);
  };
  for (const Flow& flow : flows_) offer(flow);
  while (!ready.empty()) {
    const auto [asked, position] = ready.top();
    ready.pop();
    ask(position, asked, asked);
    offer(flows_[trace_[position].initiator]);
    std::vector<const Flow*> again;
    again.swap(waiting);
    for (const Flow* const flow : again) offer(*flow);
  }
}

std::vector<std::size_t> TracePlayer::find_dependences() const {
  using Answer = std::pair<std::uint64_t, std::size_t>;  // cycle, position
  std::vector<Answer> all;
  for (std::size_t i = 0; i < trace_.size(); ++i) all.emplace_back(trace_[i].answered, i);
  std::sort(all.begin(), all.end());
  std::vector<std::vector<Answer>> own(flows_.size());
  for (const Answer& answer : all) own[trace_[answer.second].initiator].push_back(answer);
  std::vector<std::size_t> dependences(trace_.size(), kNone);
  for (std::size_t i = 0; i < trace_.size(); ++i) {
    const std::uint32_t initiator = trace_[i].initiator;
    const bool is_first = flows_[initiator].positions.front() == i;
    const std::vector<Answer>& answers = is_first ? all : own[initiator];
    const auto after = std::lower_bound(answers.begin(), answers.end(), Answer{trace_[i].asked, i});
    if (after != answers.begin()) dependences[i] = (after - 1)->second;
  }
  return dependences;
}

std::uint64_t TracePlayer::slot_free(const Flow& flow) const {
  if (outstanding_ == 0 || flow.next < outstanding_) return 0;
  return answers_[flow.positions[flow.next - outstanding_]];
}

void TracePlayer::ask(std::size_t position, std::uint64_t asked, std::uint64_t floor) {
  if (floor > clock_.cycle_from(sc_core::sc_time_stamp()) + kAhead) clock_.wait_until(floor);
  const BusTransaction& transaction = trace_[position];
  const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
  tlm::tlm_generic_payload payload;
  payload.set_command(transaction.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
  payload.set_address(transaction.address);
  payload.set_data_length(transaction.bytes);
  payload.set_streaming_width(transaction.bytes);
  sc_core::sc_time delay = from_ps(std::max(clock_.edge_ps(asked), now) - now);
  sockets[transaction.initiator]->b_transport(payload, delay);
  answers_[position] = clock_.cycle_from(sc_core::sc_time_stamp() + delay);
  Flow& flow = flows_[transaction.initiator];
  flow.last_asked = asked;
  ++flow.next;
  ++played_;
}

}  // namespace systole::tlm_model
