#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/mapped_file.h"

namespace systole::hw {

/// A vector whose copies share their elements until one of them changes: what is large and read
/// by many, as weights are, is copied by nobody. It need not hold its elements: they can be those
/// of a file, or be made when they are wanted. Threads may read copies, but not change them, at the
/// same time.
template <typename T>
class SharedVector {
 public:
  using value_type = T;

  SharedVector() = default;
  SharedVector(std::vector<T> elements) {
    if (elements.empty()) return;
    state_ = std::make_shared<State>();
    state_->size = elements.size();
    state_->elements = std::move(elements);
    state_->is_vector = true;
  }
  SharedVector(std::initializer_list<T> elements) : SharedVector(std::vector<T>(elements)) {}

  /// `size` elements that `make` returns. Whoever asks for one has all of them made, to stay;
  /// hold() has them for as long as it is wanted. `exchanged`: see exchanged().
  [[nodiscard]] static SharedVector deferred(std::size_t size, std::function<std::vector<T>()> make,
                                             const SharedVector& exchanged = {}) {
    SharedVector made;
    if (size == 0) return made;
    made.state_ = std::make_shared<State>();
    made.state_->size = size;
    made.state_->make = std::move(make);
    made.state_->exchanged = exchanged.state_;
    return made;
  }
  /// `size` elements from `first` on, which are in the file.
  [[nodiscard]] static SharedVector view(MappedFile file, const T* first, std::size_t size) {
    SharedVector made;
    if (size == 0) return made;
    made.state_ = std::make_shared<State>();
    made.state_->size = size;
    made.state_->file = std::make_unique<MappedFile>(std::move(file));
    made.state_->in_file = first;
    return made;
  }
  /// `size` elements from `first` on: of those in a file a view, of those that are made one that is
  /// made of them, else a copy.
  [[nodiscard]] SharedVector part(std::size_t first, std::size_t size) const {
    if (size == 0) return {};
    if (is_view()) return view(*state_->file, state_->in_file + first, size);
    const auto copy = [whole = *this, first, size] {
      const std::shared_ptr<const T> elements = whole.hold();
      return std::vector<T>(elements.get() + first, elements.get() + first + size);
    };
    return state_->is_vector ? SharedVector(copy()) : deferred(size, copy);
  }

  /// The same bytes as elements of another type: of those in a file a view, else made of them.
  template <typename U>
  [[nodiscard]] SharedVector<U> as() const {
    static_assert(sizeof(U) == 1 && sizeof(T) == 1);
    if (is_view()) {
      return SharedVector<U>::view(*state_->file, reinterpret_cast<const U*>(state_->in_file),
                                   state_->size);
    }
    return SharedVector<U>::deferred(size(), [of = *this] {
      const std::shared_ptr<const T> elements = of.hold();
      return std::vector<U>(elements.get(), elements.get() + of.size());
    });
  }

  /// The elements, at least until it is dropped: those that are made when they are wanted do not
  /// stay.
  [[nodiscard]] std::shared_ptr<const T> hold() const {
    if (state_ == nullptr) return nullptr;
    if (state_->is_vector || state_->in_file != nullptr) return {state_, data()};
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->is_vector) return {state_, state_->elements.data()};
    std::shared_ptr<const std::vector<T>> lent = state_->lent.lock();
    if (lent == nullptr) {
      lent = std::make_shared<const std::vector<T>>(state_->make());
      state_->lent = lent;
    }
    return {lent, lent->data()};
  }
  /// The same matrix with rows and columns exchanged, where the elements are made of that; else
  /// none. Whoever can read it needs none of them made.
  [[nodiscard]] SharedVector exchanged() const {
    SharedVector other;
    if (state_ != nullptr) other.state_ = state_->exchanged;
    return other;
  }
  /// Whether the elements are those of a file.
  [[nodiscard]] bool is_view() const noexcept {
    return state_ != nullptr && state_->in_file != nullptr && !state_->is_vector;
  }
  /// That of the copies that share their elements.
  [[nodiscard]] const void* identity() const noexcept { return state_.get(); }
  /// Of elements in a file: that they are read again soon is not likely. Host memory that they take
  /// is free until then.
  void let_go() const {
    if (is_view()) state_->file->let_go(state_->in_file, state_->size * sizeof(T));
  }

  /// As a vector: of elements that are none a copy, which stays.
  [[nodiscard]] const std::vector<T>& get() const {
    if (state_ == nullptr) return none();
    if (!state_->is_vector) state_->keep();
    return state_->elements;
  }
  operator const std::vector<T>&() const { return get(); }

  [[nodiscard]] bool empty() const noexcept { return state_ == nullptr || size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept {
    if (state_ == nullptr) return 0;
    return state_->is_vector ? state_->elements.size() : state_->size;
  }
  [[nodiscard]] const T* data() const {
    if (state_ == nullptr) return nullptr;
    return !state_->is_vector && state_->in_file != nullptr ? state_->in_file : get().data();
  }
  [[nodiscard]] const T& operator[](std::size_t index) const { return data()[index]; }
  [[nodiscard]] const T* begin() const { return data(); }
  [[nodiscard]] const T* end() const { return data() + size(); }

  /// To change the elements: they are this copy's alone then.
  [[nodiscard]] std::vector<T>& edit() {
    if (state_ == nullptr || state_.use_count() != 1 || !state_->is_vector) {
      std::shared_ptr<State> own = std::make_shared<State>();
      own->elements.assign(begin(), end());
      own->is_vector = true;
      state_ = std::move(own);
    }
    state_->exchanged = nullptr;
    return state_->elements;
  }

  friend bool operator==(const SharedVector& a, const SharedVector& b) {
    if (a.state_ == b.state_) return true;
    if (a.size() != b.size()) return false;
    const std::shared_ptr<const T> of_a = a.hold(), of_b = b.hold();
    return std::equal(of_a.get(), of_a.get() + a.size(), of_b.get());
  }
  friend bool operator!=(const SharedVector& a, const SharedVector& b) { return !(a == b); }

 private:
  struct State {
    std::atomic<bool> is_vector{false};  ///< `elements` are there
    std::vector<T> elements;
    std::size_t size = 0;              ///< of what is not there
    std::unique_ptr<MappedFile> file;  ///< keeps `in_file`
    const T* in_file = nullptr;        ///< or `make`:
    std::function<std::vector<T>()> make;
    std::weak_ptr<const std::vector<T>> lent;  ///< what hold() has made
    std::shared_ptr<State> exchanged;
    std::mutex mutex;

    void keep() {
      const std::lock_guard<std::mutex> lock(mutex);
      if (is_vector) return;
      if (in_file != nullptr) {
        elements.assign(in_file, in_file + size);
      } else if (const auto made = lent.lock()) {
        elements = *made;
      } else {
        elements = make();
      }
      make = {};
      is_vector = true;
    }
  };

  [[nodiscard]] static const std::vector<T>& none() noexcept {
    static const std::vector<T> nothing;
    return nothing;
  }

  std::shared_ptr<State> state_;  ///< null: none
};

}  // namespace systole::hw
