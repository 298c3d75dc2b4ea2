#include "model/text/beam_search.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include "model/text/sampling.h"

namespace systole::model {
namespace {

struct Candidate {
  double sum;
  std::size_t slot;
  std::int32_t token;
};

bool is_before(const Candidate& a, const Candidate& b) {
  return std::make_tuple(-a.sum, a.slot, a.token) < std::make_tuple(-b.sum, b.slot, b.token);
}

/// The `count` best continuations of a text.
std::vector<Candidate> continuations(double sum, std::size_t slot,
                                     const std::vector<std::int32_t>& logits, double scale,
                                     std::size_t count) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const std::int32_t logit : logits) total += portable_exp((logit - largest) * scale);
  const double log_total = std::log2(total), nats = std::log2(std::exp(1.0));
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    all.push_back({sum + (logits[i] - largest) * scale * nats - log_total, slot,
                   static_cast<std::int32_t>(i)});
  }
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
  std::partial_sort(all.begin(), end, all.end(), is_before);
  all.erase(end, all.end());
  return all;
}

}  // namespace

double BeamSearch::Text::score() const {
  const std::size_t count = tokens.size() + (ended ? 1 : 0);
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

BeamSearch::BeamSearch(std::size_t beams, std::int32_t end) : beams_(beams), end_(end), open_(1) {
  if (beams == 0) throw std::invalid_argument("beam search: expected a beam");
}

std::vector<BeamSearch::Continuation> BeamSearch::step(
    const std::vector<std::vector<std::int32_t>>& logits, double scale) {
  if (logits.size() != beams_) throw std::invalid_argument("beam search: a row for each slot");
  // Twice as many as there are slots: each may end its text once.
  std::vector<Candidate> candidates;
  for (std::size_t slot = 0; slot < open_.size(); ++slot) {
    const auto of_slot = continuations(open_[slot].sum, slot, logits[slot], scale, 2 * beams_);
    candidates.insert(candidates.end(), of_slot.begin(), of_slot.end());
  }
  std::sort(candidates.begin(), candidates.end(), is_before);
  std::vector<Candidate> kept;
  for (std::size_t i = 0; i < candidates.size() && kept.size() < beams_; ++i) {
    const Candidate& candidate = candidates[i];
    if (candidate.token != end_) {
      kept.push_back(candidate);
    } else if (i < beams_ && ended_.size() < beams_) {
      ended_.push_back({open_[candidate.slot].tokens, candidate.sum, true});
    }
  }
  if (ended_.size() == beams_ || kept.size() < beams_) return {};

  const bool first = open_.size() < beams_;
  std::vector<const Candidate*> by_slot(beams_, nullptr);
  std::vector<const Candidate*> moved;
  for (const Candidate& candidate : kept) {
    const Candidate*& place = by_slot[candidate.slot];
    if (place == nullptr) {
      place = &candidate;
    } else {
      moved.push_back(&candidate);
    }
  }
  std::vector<Continuation> result(beams_);
  std::vector<Text> open(beams_);
  for (std::size_t slot = 0, next = 0; slot < beams_; ++slot) {
    const Candidate& taken = by_slot[slot] != nullptr ? *by_slot[slot] : *moved[next++];
    open[slot] = open_[taken.slot];
    open[slot].tokens.push_back(taken.token);
    open[slot].sum = taken.sum;
    result[slot] = {first ? slot : taken.slot, taken.token};
  }
  open_ = std::move(open);
  return result;
}

const BeamSearch::Text& BeamSearch::best_text() const {
  const Text* best = nullptr;
  for (const std::vector<Text>* texts : {&ended_, &open_}) {
    // Beginnings count where no text has ended.
    if (texts == &open_ && best != nullptr) break;
    for (const Text& text : *texts) {
      if (best == nullptr || text.score() > best->score()) best = &text;
    }
  }
  return *best;
}

std::vector<std::int32_t> BeamSearch::best() const { return best_text().tokens; }
double BeamSearch::best_score() const { return best_text().score(); }

}  // namespace systole::model
