#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/round.h"
#include "hw/core/bank_words.h"
#include "hw/machine/machine.h"
#include "hw/memory/bank_service.h"
#include "tlm/common/signals.h"

namespace systole::tlm_model {

/// An on-chip memory: storage, and how many port cycles its clients ask of each bank.
///
/// A bank is a contiguous piece of the address range. At the scratchpad it serves `ports` words a
/// cycle, and each access has its cycle: service(). Who uses the accumulator in a cycle, and who
/// waits, hw::SumTraffic says; its accesses are counted here.
class BankedSram {
 public:
  /// `word_bytes`: what one port moves in a cycle.
  BankedSram(const hw::Machine::Sram& params, std::uint32_t word_bytes);
  BankedSram(const hw::Machine::Accumulator& params, std::uint32_t word_bytes);

  [[nodiscard]] std::uint8_t* data() noexcept { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::uint32_t word_bytes() const noexcept {
    return static_cast<std::uint32_t>(word_size_.bytes());
  }
  [[nodiscard]] const BlockSize& word_size() const noexcept { return word_size_; }
  [[nodiscard]] const BlockSize& bank_size() const noexcept { return bank_size_; }
  [[nodiscard]] std::uint32_t banks() const noexcept { return params_.banks; }

  /// Who uses a port.
  enum class Client : std::uint8_t { kLoad, kArray, kStore, kClients /**< how many there are */ };

  /// `words` port accesses of a client to the addresses [begin, end), one a cycle from `from` on,
  /// each as soon as its bank has a port free. The result is the cycle after the last one.
  std::uint64_t serve(Client client, std::uint64_t begin, std::uint64_t end, std::uint64_t words,
                      std::uint64_t from);
  /// What a request of a load brings: hw::serve_request().
  void serve_request(std::uint64_t address, std::uint64_t bytes, std::uint64_t to,
                     const BlockSize& access, std::uint64_t done);
  /// An access in cycle `at`, in which its banks are free.
  void serve(Client client, const hw::BankAccess& access, std::uint64_t at);
  /// Whether nobody has been served at the addresses [begin, end) in the cycles [from, to).
  [[nodiscard]] bool is_left_alone(std::uint64_t begin, std::uint64_t end, std::uint64_t from,
                                   std::uint64_t to) const {
    return service_.next_use(bank_size_.index(begin), bank_size_.index(end - 1), from) >= to;
  }
  /// What was served, for the client that comes after all others.
  [[nodiscard]] const hw::BankService& service() const noexcept { return service_; }

  /// `words` port accesses, spread over the addresses [begin, end).
  struct Demand {
    std::uint64_t begin, end, words;
  };
  /// Whether a waveform shows the banks.
  [[nodiscard]] bool watched() const noexcept {
    return recorder_ != nullptr && recorder_->records();
  }
  /// Adds signals of each bank below the path: its state, who uses its ports, words so far.
  void watch(SignalRecorder& recorder, const std::string& path, const Clock& clock);
  /// Shows accesses of the cycles [from, to) that have no cycle of their own. Nothing unless
  /// watched.
  void show(Client client, std::initializer_list<Demand> demands, std::uint64_t from,
            std::uint64_t to);
  /// Shows that a bank was waited for in [from, to). Nothing unless watched.
  void show_wait(std::size_t bank, std::uint64_t from, std::uint64_t to);
  /// Nobody will ask what was served before `cycle` any more.
  void prune_before(std::uint64_t cycle) { service_.prune_before(cycle); }

  /// Counts bytes of accesses.
  std::uint64_t count(std::uint64_t bytes) noexcept {
    bytes_moved_ += bytes;
    return bytes;
  }
  /// Bytes read and written so far, all banks.
  [[nodiscard]] std::uint64_t bytes_moved() const noexcept { return bytes_moved_; }

 private:
  struct BankSignals {
    SignalRecorder::Signal state, clients, words;
  };
  void show_use(Client client, std::size_t bank, std::uint64_t words, std::uint64_t from,
                std::uint64_t to);
  /// Shows what banks serve a client.
  [[nodiscard]] auto shown(Client client) {
    return [this, client](std::size_t bank, std::uint64_t words, std::uint64_t from,
                          std::uint64_t to) {
      if (watched()) show_use(client, bank, words, from, to);
    };
  }

  hw::Machine::Sram params_;
  BlockSize word_size_, bank_size_;
  std::vector<std::uint8_t> bytes_;
  hw::BankService service_;
  std::uint64_t bytes_moved_ = 0;
  SignalRecorder* recorder_ = nullptr;  ///< of the signals, by bank
  std::vector<BankSignals> signals_;
  const Clock* clock_ = nullptr;
};

// Inline, because loads call it for every request.
inline void BankedSram::serve_request(std::uint64_t address, std::uint64_t bytes, std::uint64_t to,
                                      const BlockSize& access, std::uint64_t done) {
  hw::serve_request(service_, bank_size_, address, bytes, to, access, done, shown(Client::kLoad));
}

}  // namespace systole::tlm_model
