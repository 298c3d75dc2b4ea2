#include "model/text/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace systole::model {
namespace {

using Ids = std::vector<std::int32_t>;
using testing::ElementsAre;

constexpr double kScale = 1e-4;
constexpr std::int32_t kEnd = 1;

/// A language whose next word depends on all words before it.
class Language {
 public:
  Language(std::uint32_t seed, std::size_t vocabulary) : seed_(seed), vocabulary_(vocabulary) {}

  [[nodiscard]] Ids logits(const Ids& text) const {
    std::seed_seq sequence(text.begin(), text.end());
    std::vector<std::uint32_t> mixed(1);
    sequence.generate(mixed.begin(), mixed.end());
    std::mt19937 engine(mixed[0] ^ seed_);
    Ids logits(vocabulary_);
    for (std::int32_t& logit : logits) logit = static_cast<std::int32_t>(engine() % 60000) - 30000;
    return logits;
  }
  /// log2 of the probability of `token` after `text`.
  [[nodiscard]] double bits(const Ids& text, std::int32_t token) const {
    double total = 0;
    const Ids all = logits(text);
    for (const std::int32_t logit : all) total += std::exp(logit * kScale);
    return std::log2(std::exp(all[static_cast<std::size_t>(token)] * kScale) / total);
  }
  [[nodiscard]] std::size_t vocabulary() const { return vocabulary_; }

 private:
  std::uint32_t seed_;
  std::size_t vocabulary_;
};

struct Found {
  Ids text;
  double score = 0.0;
};

/// The definition, with whole texts and no slots.
Found plainly(const Language& language, std::size_t beams, std::size_t steps) {
  struct Text {
    Ids ids;
    double sum;
  };
  std::vector<Text> open = {{{}, 0.0}}, ended;
  for (std::size_t step = 0; step < steps && ended.size() < beams; ++step) {
    std::vector<Text> next;
    for (const Text& text : open) {
      for (std::size_t w = 0; w < language.vocabulary(); ++w) {
        const auto token = static_cast<std::int32_t>(w);
        Text longer = text;
        longer.sum += language.bits(text.ids, token);
        longer.ids.push_back(token);
        next.push_back(longer);
      }
    }
    std::stable_sort(next.begin(), next.end(),
                     [](const Text& a, const Text& b) { return a.sum > b.sum; });
    std::vector<Text> kept;
    for (std::size_t i = 0; i < next.size() && kept.size() < beams; ++i) {
      if (next[i].ids.back() != kEnd) {
        kept.push_back(next[i]);
      } else if (i < beams && ended.size() < beams) {
        ended.push_back(next[i]);
      }
    }
    if (ended.size() < beams) open = kept;
  }
  Found best{{}, -1e9};
  for (Text text : ended.empty() ? open : ended) {
    const double score = text.sum / static_cast<double>(text.ids.size());
    if (score <= best.score) continue;
    if (!ended.empty()) text.ids.pop_back();
    best = {text.ids, score};
  }
  return best;
}

/// By slots, as a machine does it: what a slot holds is copied from its parent. Checks that no slot
/// is written from which another still has to be copied.
Found by_slots(const Language& language, std::size_t beams, std::size_t steps) {
  BeamSearch search(beams, kEnd);
  std::vector<Ids> slots(beams);
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<Ids> logits;
    for (const Ids& text : slots) logits.push_back(language.logits(text));
    const auto next = search.step(logits, kScale);
    if (next.empty()) break;
    EXPECT_EQ(next.size(), beams);
    for (std::size_t s = 0; s < beams; ++s) {
      // Copies run in any order: a parent stays where it is.
      EXPECT_EQ(next[next[s].parent].parent, next[s].parent);
      slots[s] = slots[next[s].parent];
    }
    for (std::size_t s = 0; s < beams; ++s) slots[s].push_back(next[s].token);
    const std::set<Ids> different(slots.begin(), slots.end());
    EXPECT_EQ(different.size(), beams) << "two beams with the same text";
  }
  return {search.best(), search.best_score()};
}

TEST(BeamSearch, FindsWhatItsDefinitionFinds) {
  std::size_t ended = 0, better = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Language language(seed, 4 + seed % 9);
    const std::size_t beams = 1 + seed % std::min<std::size_t>(5, language.vocabulary() / 2);
    const std::size_t steps = 1 + seed % 7;
    const Found found = by_slots(language, beams, steps),
                expected = plainly(language, beams, steps);
    EXPECT_EQ(found.text, expected.text) << "seed " << seed;
    EXPECT_NEAR(found.score, expected.score, 1e-9) << "seed " << seed;
    ended += found.text.size() < steps ? 1 : 0;
    better += found.text != by_slots(language, 1, steps).text ? 1 : 0;
  }
  // The sweep has both kinds of ends, and texts that the likeliest token alone does not find.
  EXPECT_GT(ended, 60U);
  EXPECT_LT(ended, 280U);
  EXPECT_GT(better, 60U);
}

TEST(BeamSearch, IsTheLikeliestTokenEachTimeWithOneBeam) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Language language(seed, 8);
    Ids text;
    for (std::size_t step = 0; step < 9; ++step) {
      const Ids logits = language.logits(text);
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      if (best == kEnd) break;
      text.push_back(static_cast<std::int32_t>(best));
    }
    EXPECT_EQ(by_slots(language, 1, 9).text, text) << "seed " << seed;
  }
}

// The likeliest first word leads to unlikely ones: two beams see what one does not.
TEST(BeamSearch, KeepsABeginningThatIsNotTheLikeliest) {
  BeamSearch one(1, kEnd), two(2, kEnd);
  const Ids first = {-900000, -900000, 10000, 9000}, flat = {-900000, -900000, 0, 0},
            steep = {-900000, -900000, 0, -90000};
  static_cast<void>(one.step({first}, kScale));
  static_cast<void>(one.step({flat}, kScale));
  const auto begun = two.step({first, first}, kScale);
  ASSERT_EQ(begun.size(), 2U);
  EXPECT_EQ(begun[0].token, 2);
  EXPECT_EQ(begun[1].token, 3);
  EXPECT_EQ(begun[1].parent, 1U) << "all slots hold the same before the first step";
  static_cast<void>(two.step({flat, steep}, kScale));
  EXPECT_THAT(one.best(), ElementsAre(2, 2));
  EXPECT_THAT(two.best(), ElementsAre(3, 2));
}

TEST(BeamSearch, RefusesOtherRowsThanSlots) {
  EXPECT_THROW(BeamSearch(0, kEnd), std::invalid_argument);
  BeamSearch search(2, kEnd);
  EXPECT_THROW(static_cast<void>(search.step({{1, 2, 3}}, kScale)), std::invalid_argument);
}

}  // namespace
}  // namespace systole::model
