#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Ours beside published.
namespace systole::testbench {

/// How far ours may be from a published figure.
struct Tolerance {
  enum class Kind {
    kRelative,  ///< by `amount` of the published figure; 0: equal
    kAbsolute,  ///< by `amount`, in the figure's unit
    kAtMost,    ///< any way below it
    kAtLeast,   ///< any way above it
  };
  Kind kind = Kind::kRelative;
  double amount = 0.0;
};

inline constexpr Tolerance kExactly{Tolerance::Kind::kRelative, 0.0};
inline constexpr Tolerance kAtMost{Tolerance::Kind::kAtMost, 0.0};
inline constexpr Tolerance kAtLeast{Tolerance::Kind::kAtLeast, 0.0};

/// What it says that ours meets a figure.
enum class Claim {
  kPublished,    ///< others printed or measured it, and ours predicts it
  kCalibrated,   ///< a parameter of ours was set with it: it has to fit
  kFollows,      ///< arithmetic from the paper's own numbers, or a closed form or bound of ours
  kEstimate,     ///< a house model of energy or area beside a figure of silicon: not to be met
  kMeasured,     ///< ours was measured on this computer, the figure on another: not to be met
  kRecollected,  ///< a figure, or what ours rests on, that no source at hand confirms: not to be
                 ///< met
};
inline constexpr std::size_t kClaims = 6;
/// The first of them can pass or fail.
inline constexpr std::size_t kJudgedClaims = 3;

/// "published", "calibrated", "follows", "estimate", "measured here", "recollected".
[[nodiscard]] std::string_view claim_name(Claim claim);
/// Whether ours can pass or fail.
[[nodiscard]] inline bool is_judged(Claim claim) {
  return static_cast<std::size_t>(claim) < kJudgedClaims;
}

/// Where a figure is from.
struct Source {
  std::string text;
  Claim claim = Claim::kPublished;

  Source(const char* where = "") : text(where) {}
  Source(std::string_view where, Claim what = Claim::kPublished) : text(where), claim(what) {}
};

/// A figure that others published, or that follows from what they published.
struct Published {
  double value = 0.0;
  std::string unit;  ///< "cycles", "x", "%", ...
  Source source;
  /// None: a reference, of other hardware or another regime, to be read beside ours and not to be
  /// met.
  std::optional<Tolerance> tolerance = {};
  /// Digits after the point with which it is printed; none: three significant ones.
  std::optional<int> decimals = {};
};

enum class Verdict { kPass, kFail, kReference };

/// "pass", "fail", "reference".
[[nodiscard]] std::string_view verdict_name(Verdict verdict);

struct ResultRow {
  std::string name;
  std::optional<double> ours;  ///< measured or counted in this run; none: not claimed
  std::optional<double> published;
  std::string unit;
  std::string source;  ///< of `published`
  Claim claim = Claim::kPublished;
  std::optional<Tolerance> tolerance;
  std::optional<int> decimals;  ///< of `published`, and so of `ours` beside it

  /// Without a published figure, a tolerance or a figure of ours it is a reference; so is every
  /// estimate, what was measured here and what is recollected; also if the tolerance is an absolute
  /// one of more than half of the figure, which says too little.
  [[nodiscard]] Verdict verdict() const;
  /// Ours relative to published, less 1; none where one of them is missing, or published is 0.
  [[nodiscard]] std::optional<double> difference() const;
  /// "within 5 %", "within 4 points", "equal", "at most", "at least"; empty without a tolerance.
  [[nodiscard]] std::string bound() const;
};

/// A row of what was published, with ours.
[[nodiscard]] ResultRow compare(std::string name, std::optional<double> ours,
                                const Published& published);
/// A row that has nothing to compare with.
[[nodiscard]] ResultRow measured(std::string name, double ours, std::string unit);

}  // namespace systole::testbench
