#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// The cycle contract of a memory with banks that serve one access a cycle each, for clients of
/// different priority: in which cycle each access is served. rtl/core/systole_scratchpad.sv meets
/// it.
namespace systole::hw {

/// Where an access goes. One that ends in the next bank takes both in the same cycle.
struct BankAccess {
  std::uint32_t bank = 0;
  bool crosses = false;
};
/// The access of `bytes` bytes from `address` on, in banks of `bank_bytes` that are not shorter.
[[nodiscard]] inline BankAccess bank_access(std::uint64_t address, std::uint64_t bytes,
                                            std::uint64_t bank_bytes) {
  return {static_cast<std::uint32_t>(address / bank_bytes),
          address / bank_bytes != (address + bytes - 1) / bank_bytes};
}

/// A step of a client: up to two accesses. It is over when both have been served, the first before
/// the second where they want the same bank. One without accesses takes a cycle.
struct BankStep {
  std::optional<BankAccess> first, second;
};

/// Serves clients one after the other, those of the highest priority first: a client never
/// waits for one after it.
class BankService {
 public:
  explicit BankService(std::size_t banks) : banks_(banks) {}

  struct Served {
    std::uint64_t first = 0, second = 0;  ///< cycles; that of the step's begin without an access
    std::uint64_t end = 0;                ///< first cycle of the next step
  };
  /// A step that begins in cycle `at`. Its client's earlier steps must be over.
  Served serve(std::uint64_t at, const BankStep& step);
  /// `count` equal steps, each from the end of the one before on. Returns the end of the last.
  /// Costs a visit of each interval in which others use the banks, not of each step.
  std::uint64_t serve(std::uint64_t at, const BankStep& step, std::uint64_t count);

  /// Whether the banks of an access are free in cycle `at`.
  [[nodiscard]] bool is_free(std::uint64_t at, const BankAccess& access) const;
  /// The same; the access is served then.
  bool serves(std::uint64_t at, const BankAccess& access);

  /// No client will ask for cycles before `cycle` any more.
  void prune_before(std::uint64_t cycle);

 private:
  /// Cycles in which a bank is in use: intervals in order, not overlapping, not touching.
  class Busy {
   public:
    /// The first cycle from `at` on in which it is free.
    [[nodiscard]] std::uint64_t free_from(std::uint64_t at) const;
    /// The first cycle from `at` on in which it is in use, the highest number if none.
    [[nodiscard]] std::uint64_t next(std::uint64_t at) const;
    /// In use from `begin` to before `end`, where it was free.
    void add(std::uint64_t begin, std::uint64_t end);
    void prune_before(std::uint64_t cycle);

   private:
    struct Interval {
      std::uint64_t begin, end;
    };
    /// The first interval that ends after `at`.
    [[nodiscard]] std::size_t after(std::uint64_t at) const;

    std::vector<Interval> intervals_;
  };

  std::uint64_t serve_access(std::uint64_t at, const BankAccess& access);

  std::vector<Busy> banks_;
};

}  // namespace systole::hw
