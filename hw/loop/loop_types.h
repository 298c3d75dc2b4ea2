#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// What the parts of a loop core (hw/loop/loop_core.h) hand to one another.
namespace systole::hw::loop {

/// C[M x N] (+)= A[M x K] B[K x N] of one loop, all sides in blocks of the array's side, as the
/// host configures it. Rows of a matrix are `pitch` bytes apart in memory.
struct LoopCall {
  std::uint32_t m = 0, n = 0, k = 0;              ///< blocks
  std::uint32_t m_pad = 0, n_pad = 0, k_pad = 0;  ///< elements that the last block lacks
  std::uint64_t a = 0, b = 0;                     ///< byte addresses
  std::uint64_t d = 0;                            ///< of int32 sums to begin with; 0: none
  std::uint64_t c = 0;  ///< of the result; 0: the sums stay for the next loop
  std::uint32_t a_pitch = 0, b_pitch = 0, d_pitch = 0, c_pitch = 0;
  std::uint32_t c_bytes = 1;  ///< of an element of the result; 4: sums as they are
  bool accumulate = false;    ///< add to what the accumulator holds, from the first block on
};

/// What a host or the unroller puts into the command queues.
enum class Kind : std::uint8_t {
  kConfigureArray,
  kConfigureLoad,
  kConfigureStore,
  kLoad,
  kPreload,
  kCompute,
  kStore,
  kLoopField,  ///< one of the commands that configure a loop
  kLoopRun,    ///< the last of them
};
[[nodiscard]] inline bool configures(Kind kind) { return kind <= Kind::kConfigureStore; }

/// Rows of a local memory: [begin, end). Rows of the accumulator begin at kAccumulatorRow.
struct Rows {
  std::uint32_t begin = 0, end = 0;
  [[nodiscard]] bool overlaps(const Rows& other) const {
    return begin < other.end && other.begin < end;
  }
};
inline constexpr std::uint32_t kAccumulatorRow = 1U << 31;

struct Command {
  Kind kind = Kind::kLoopField;
  bool unrolled = false;             ///< made by the unroller: counts in its limits
  bool garbage = false;              ///< kPreload: the weights stay as they are
  bool accumulate = false;           ///< kPreload: the result is added to the sums
  bool accumulator = false;          ///< kLoad: into the accumulator, rows of int32
  bool full = false;                 ///< kStore: sums as they are
  std::uint16_t slot = 0;            ///< in the reservation station
  std::uint32_t rows = 0, cols = 0;  ///< kLoad, kStore; kCompute: rows; kPreload: rows of weights
  std::uint32_t pitch = 0;           ///< kLoad, kStore: bytes
  std::uint64_t address = 0;         ///< kLoad, kStore: in memory
  std::uint32_t block_rows = 16;     ///< kLoad, kStore: from one block of columns to the next
  std::uint32_t row = 0;             ///< first local row: destination, source, weights, operand A
  std::uint32_t c_row = 0, c_rows = 0;  ///< kPreload: where results go
  std::size_t call = 0;                 ///< kLoopRun: which loop
};

/// The classes of the reservation station, each with its own entries and controller.
enum Class : std::uint8_t { kLoadClass, kComputeClass, kStoreClass };
inline constexpr std::size_t kClasses = 3;

/// A queue of registers: what is pushed in a cycle can be taken from the next one on.
template <typename Item, std::size_t kMost>
class Fifo {
 public:
  explicit Fifo(std::size_t capacity = kMost) : capacity_(capacity) {}
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] bool full() const noexcept { return size_ == capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Item& front() noexcept { return items_[first_]; }
  [[nodiscard]] const Item& at(std::size_t i) const noexcept {
    return items_[(first_ + i) % kMost];
  }
  void pop() noexcept {
    first_ = (first_ + 1) % kMost;
    --size_;
  }
  void push(const Item& item) noexcept {
    items_[(first_ + size_) % kMost] = item;
    ++size_;
  }

 private:
  std::array<Item, kMost> items_{};
  std::size_t first_ = 0, size_ = 0, capacity_;
};

}  // namespace systole::hw::loop
