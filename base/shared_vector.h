#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace systole::hw {

/// A vector whose copies share their elements until one of them changes: what is large and read
/// by many, as weights are, is copied by nobody. Threads may read copies, but not change them, at
/// the same time.
template <typename T>
class SharedVector {
 public:
  using value_type = T;

  SharedVector() = default;
  SharedVector(std::vector<T> elements)
      : elements_(elements.empty() ? nullptr
                                   : std::make_shared<std::vector<T>>(std::move(elements))) {}
  SharedVector(std::initializer_list<T> elements) : SharedVector(std::vector<T>(elements)) {}

  [[nodiscard]] const std::vector<T>& get() const noexcept {
    return elements_ == nullptr ? none() : *elements_;
  }
  operator const std::vector<T>&() const noexcept { return get(); }

  [[nodiscard]] bool empty() const noexcept { return get().empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return get().size(); }
  [[nodiscard]] const T* data() const noexcept { return get().data(); }
  [[nodiscard]] const T& operator[](std::size_t index) const { return get()[index]; }
  [[nodiscard]] auto begin() const noexcept { return get().begin(); }
  [[nodiscard]] auto end() const noexcept { return get().end(); }

  /// To change the elements: they are this copy's alone then.
  [[nodiscard]] std::vector<T>& edit() {
    if (elements_ == nullptr || elements_.use_count() != 1) {
      elements_ = std::make_shared<std::vector<T>>(get());
    }
    return *elements_;
  }

  friend bool operator==(const SharedVector& a, const SharedVector& b) {
    return a.elements_ == b.elements_ || a.get() == b.get();
  }
  friend bool operator!=(const SharedVector& a, const SharedVector& b) { return !(a == b); }

 private:
  [[nodiscard]] static const std::vector<T>& none() noexcept {
    static const std::vector<T> nothing;
    return nothing;
  }

  std::shared_ptr<std::vector<T>> elements_;  ///< null: none
};

}  // namespace systole::hw
