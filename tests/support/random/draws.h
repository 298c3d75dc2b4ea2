#pragma once

namespace systole::test {

#ifdef __SANITIZE_ADDRESS__
constexpr int kFewerDraws = 5;
constexpr int kFewerFinds = 20;
#else
constexpr int kFewerDraws = 1;
constexpr int kFewerFinds = 1;
#endif

/// `count` draws of a random test; a fifth under AddressSanitizer, where a draw takes five to ten
/// times as long and is there to find wrong accesses alone.
template <typename Count>
[[nodiscard]] constexpr Count draws(Count count) {
  return count / kFewerDraws;
}

/// How many cases of a kind so many draws find at least: a fifth of the draws may find fewer than a
/// fifth of the cases.
template <typename Count>
[[nodiscard]] constexpr Count finds(Count count) {
  return count / kFewerFinds;
}

}  // namespace systole::test
