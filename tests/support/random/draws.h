#pragma once

namespace systole::test {

/// `count` draws of a random test, or what they have to find; a fifth of both under AddressSanitizer,
/// where a draw takes five to ten times as long and is there to find wrong accesses alone.
template <typename Count>
[[nodiscard]] constexpr Count draws(Count count) {
#ifdef __SANITIZE_ADDRESS__
  return count / 5;
#else
  return count;
#endif
}

}  // namespace systole::test
