#pragma once

#include <array>
#include <cstdint>

namespace systole::mapper {

/// The first whole cycle not before `cycle` >= 0, without a call of the library.
[[nodiscard]] inline double rounded_up(double cycle) noexcept {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(cycle));
  return whole < cycle ? whole + 1 : whole;
}

/// Rows of bytes in DRAM that a port moves, and how far it has come.
struct ReplayRows {
  std::uint64_t address = 0;  ///< of the next row
  std::uint64_t pitch = 0;
  std::uint64_t bytes = 0;  ///< of a row
  std::uint64_t at = 0;     ///< bytes of the next row that have been asked for
  std::uint64_t left = 0;   ///< rows, the next one included
};

/// A DMA port: the requests in flight occupy a window, a slot is free once its request is done.
class ReplayPort {
 public:
  explicit ReplayPort(std::uint32_t window, bool translated = false)
      : window_(window), translated_(translated) {}

  /// Whether its addresses are virtual where the machine has a TLB, and the page of its last
  /// request.
  [[nodiscard]] bool translated() const noexcept { return translated_; }
  [[nodiscard]] std::uint64_t page() const noexcept { return page_; }
  void set_page(std::uint64_t page) noexcept { page_ = page; }
  [[nodiscard]] std::uint32_t window() const noexcept { return window_; }
  /// First cycle after the last issued request.
  [[nodiscard]] double next_issue() const noexcept { return next_issue_; }
  /// Cycle in which the request `ahead` after the next one finds a slot; `ahead` < window().
  [[nodiscard]] double slot_free(std::uint64_t ahead);
  /// Requests that issue between two cycles and are done between two others, evenly.
  void add(std::uint64_t requests, double last_issue, double first_done, double last_done);

 private:
  /// Requests up to number `end`, the end excluded.
  struct Record {
    std::uint64_t end = 0;
    double first = 0, last = 0;  ///< cycles in which the first and the last are done
  };
  static constexpr unsigned kRecords = 32;

  std::uint32_t window_;
  bool translated_;
  std::uint64_t page_ = ~std::uint64_t{0};
  double next_issue_ = 0;
  std::uint64_t issued_ = 0;
  unsigned oldest_ = 0, count_ = 0;
  std::uint64_t begin_ = 0;  ///< first request of the oldest record
  std::array<Record, kRecords> records_{};
};

}  // namespace systole::mapper
