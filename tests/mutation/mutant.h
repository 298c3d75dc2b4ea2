#pragma once

// Included before every source of a mutated tree: one build holds all mutants, each behind a
// number, and a process runs the one that SYSTOLE_MUTANT names (0 or nothing: the program as it was
// written). In a constant expression no mutant is active: what is computed by the compiler cannot
// be changed.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace systole::mutation {

inline constexpr int kMost = 1 << 17;
inline int selected = 0;
inline bool records = false;
inline unsigned char reached[kMost];  // by number: whether a recording process has come by

inline bool comes_by(int number) {
  if (records) reached[number] = 1;
  return selected == number;
}
constexpr bool active(int number) { return !__builtin_is_constant_evaluated() && comes_by(number); }

// Before and after everything else of a process: constructors of objects are mutated as well.
__attribute__((constructor(101))) inline void begin() {
  if (const char* number = std::getenv("SYSTOLE_MUTANT")) selected = std::atoi(number);
  records = std::getenv("SYSTOLE_MUTANTS_REACHED") != nullptr;
}
__attribute__((destructor(101))) inline void end() {
  const char* file = std::getenv("SYSTOLE_MUTANTS_REACHED");
  if (file == nullptr) return;
  if (std::FILE* out = std::fopen(file, "wb")) {
    std::fwrite(reached, 1, kMost, out);
    std::fclose(out);
  }
}

constexpr bool flip(int number, bool value) { return active(number) ? !value : value; }
template <typename T>
constexpr T more(int number, T value) {
  return active(number) ? static_cast<T>(value + 1) : value;
}

#define SYSTOLE_MUTATION(name, written, mutated)            \
  template <typename A, typename B>                         \
  constexpr auto name(int number, const A& a, const B& b) { \
    return active(number) ? (a mutated b) : (a written b);  \
  }
SYSTOLE_MUTATION(lt, <, <=)
SYSTOLE_MUTATION(le, <=, <)
SYSTOLE_MUTATION(gt, >, >=)
SYSTOLE_MUTATION(ge, >=, >)
SYSTOLE_MUTATION(eq, ==, !=)
SYSTOLE_MUTATION(ne, !=, ==)
SYSTOLE_MUTATION(add, +, -)
SYSTOLE_MUTATION(sub, -, +)
SYSTOLE_MUTATION(mul, *, +)
SYSTOLE_MUTATION(div, /, *)
SYSTOLE_MUTATION(mod, %, *)
SYSTOLE_MUTATION(both, &, |)
SYSTOLE_MUTATION(either, |, &)
SYSTOLE_MUTATION(differ, ^, &)
SYSTOLE_MUTATION(left, <<, >>)
SYSTOLE_MUTATION(right, >>, <<)
#undef SYSTOLE_MUTATION

template <int number, typename T>
constexpr const T& min_(const T& a, const T& b) {
  return active(number) ? std::max(a, b) : std::min(a, b);
}
template <int number, typename T>
constexpr T min_(std::initializer_list<T> all) {
  return active(number) ? std::max(all) : std::min(all);
}
template <int number, typename T>
constexpr const T& max_(const T& a, const T& b) {
  return active(number) ? std::min(a, b) : std::max(a, b);
}
template <int number, typename T>
constexpr T max_(std::initializer_list<T> all) {
  return active(number) ? std::min(all) : std::max(all);
}

}  // namespace systole::mutation
