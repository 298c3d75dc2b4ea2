#include "testbench/rtl/core/scratchpad_rtl.h"

#include <algorithm>
#include <string>
#include <utility>

#include "Vscratchpad_2x16x8_checked.h"
#include "Vscratchpad_4x4x16_checked.h"
#include "base/error.h"
#include "hw/memory/bank_service.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

constexpr std::size_t kParameterReads = 2;  // a client

/// Bytes that a read of a word brings.
std::uint64_t readable(const ScratchpadSize& size, std::uint64_t address) {
  return std::min<std::uint64_t>(size.word_bytes, size.bytes() - address);
}

template <typename Model>
class Scratchpad final : public ScratchpadRtl {
 public:
  Scratchpad(const ScratchpadSize& size, const RtlOptions& options) : size_(size), dut_(options) {
    for (std::uint64_t bytes = size_.bytes(); bytes > 1; bytes /= 2) ++address_bits_;
    for (std::uint64_t bytes = size_.word_bytes; bytes > 1; bytes /= 2) ++lane_bits_;
    idle();
  }

  ScratchpadResults run(const ScratchpadClients& clients,
                        const ScratchpadResults* expected) override {
    idle();
    dut_->parameters_late_i = clients.late_parameters;
    dut_.reset();
    ScratchpadResults results;
    std::array<std::int32_t, kScratchpadClients> words{};
    dut_.show_operation(words.data(), 0);
    const auto left = [&](std::size_t client) {
      return results[client].size() < clients[client].steps.size();
    };
    bool more = true;
    while (more) {
      const std::uint64_t cycle = dut_.cycles();
      idle();
      for (std::size_t client = 0; client < kScratchpadClients; ++client) {
        if (!left(client) || clients[client].begin > cycle) continue;
        const std::size_t step = results[client].size();
        put(client, clients[client].steps[step]);
        if (expected != nullptr) {
          words[client] = static_cast<std::int32_t>((*expected)[client][step].end);
        }
      }
      dut_.settle();
      collect(clients, results, cycle);
      more = false;
      bool moved = false;
      for (std::size_t client = 0; client < kScratchpadClients; ++client) {
        if (!left(client) || clients[client].begin > cycle) {
          more = more || left(client);
          moved = moved || left(client);
          continue;
        }
        const auto& address = clients[client].steps[results[client].size()].address;
        const bool access = address[0].has_value() || address[1].has_value();
        if (!access || is_done(client)) {
          results[client].push_back({cycle + 1, {}});
          moved = true;
        }
        more = more || left(client) || results[client].back().end == cycle + 1;
      }
      dut_.show_cycle(cycle);
      dut_.show_words(words.data(), words.size());
      dut_.end_cycle(moved);
    }
    return results;
  }

  [[nodiscard]] std::uint64_t cycles() const override { return dut_.cycles(); }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  void idle() {
    dut_->load_read_i = dut_->write_valid_i = dut_->parameters_valid_i = dut_->array_valid_i = 0;
    dut_->array_reads_i = 0;
  }

  void put_bits(std::uint64_t& port, unsigned at, unsigned bits, std::uint64_t value) {
    const std::uint64_t mask = ((std::uint64_t{1} << bits) - 1) << at;
    port = (port & ~mask) | (value << at & mask);
  }

  /// A step on the client's pins.
  void put(std::size_t client, const ScratchpadStep& step) {
    if (client < kScratchpadWriters) {
      if (step.address[0]) put_write(client, *step.address[0], step.written);
    } else if (client == kParameterReads) {
      dut_->parameters_valid_i = step.address[0].has_value();
      if (step.address[0]) set_port(dut_->parameters_address_i, *step.address[0]);
    } else {
      dut_->array_valid_i = 1;
      std::uint64_t addresses = 0;
      unsigned reads = 0;
      for (unsigned i = 0; i < 2; ++i) {
        if (!step.address[i]) continue;
        reads |= 1U << i;
        put_bits(addresses, i * address_bits_, address_bits_, *step.address[i]);
      }
      dut_->array_reads_i = static_cast<CData>(reads);
      set_port(dut_->array_address_i, addresses);
    }
  }

  template <typename Port>
  static void set_port(Port& port, std::uint64_t value) {
    port = static_cast<Port>(value);
  }

  void put_write(std::size_t client, std::uint64_t address,
                 const std::vector<std::uint8_t>& bytes) {
    const unsigned word_bits = address_bits_ - lane_bits_;
    set_port(dut_->write_valid_i, dut_->write_valid_i | std::uint64_t{1} << client);
    put_bits(words_, static_cast<unsigned>(client) * word_bits, word_bits,
             address / size_.word_bytes);
    set_port(dut_->write_word_i, words_);
    const std::size_t first = client * size_.word_bytes;
    std::uint64_t here = 0, next = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t lane = (address + i) % size_.word_bytes;
      set_lane<8>(dut_->write_data_i, first + lane, bytes[i]);
      const bool in_next = address % size_.word_bytes + i >= size_.word_bytes;
      (in_next ? next : here) |= std::uint64_t{1} << lane;
    }
    put_bits(here_, static_cast<unsigned>(first), size_.word_bytes, here);
    put_bits(next_, static_cast<unsigned>(first), size_.word_bytes, next);
    set_port(dut_->write_here_i, here_);
    set_port(dut_->write_next_i, next_);
  }

  [[nodiscard]] bool is_done(std::size_t client) {
    if (client < kScratchpadWriters) return (dut_->write_done_o >> client & 1U) != 0;
    return client == kParameterReads ? dut_->parameters_done_o != 0 : dut_->array_done_o != 0;
  }

  /// What steps have read that were over in the cycle before.
  void collect(const ScratchpadClients& clients, ScratchpadResults& results, std::uint64_t cycle) {
    for (std::size_t client = kScratchpadWriters; client < kScratchpadClients; ++client) {
      if (results[client].empty() || results[client].back().end != cycle) continue;
      const ScratchpadStep& step = clients[client].steps[results[client].size() - 1];
      for (std::size_t i = 0; i < 2; ++i) {
        if (!step.address[i]) continue;
        const std::uint64_t bytes = readable(size_, *step.address[i]);
        for (std::size_t lane = 0; lane < bytes; ++lane) {
          const std::uint64_t byte =
              client == kParameterReads
                  ? get_lane<8>(dut_->parameters_data_o, lane)
                  : get_lane<8>(dut_->array_data_o, i * size_.word_bytes + lane);
          results[client].back().read[i].push_back(static_cast<std::uint8_t>(byte));
        }
      }
    }
  }

  const ScratchpadSize size_;
  VerilatedDut<Model> dut_;
  unsigned address_bits_ = 0, lane_bits_ = 0;
  std::uint64_t words_ = 0, here_ = 0, next_ = 0;  ///< on the pins of the writers
};

/// An access that was served.
struct ServedAccess {
  std::uint64_t cycle;
  std::size_t client, step, access;
};

}  // namespace

std::unique_ptr<ScratchpadRtl> make_scratchpad(const ScratchpadSize& size,
                                               const RtlOptions& options) {
  if (size.banks == 4 && size.word_bytes == 4 && size.bank_words == 16) {
    return std::make_unique<Scratchpad<Vscratchpad_4x4x16_checked>>(size, options);
  }
  if (size.banks == 2 && size.word_bytes == 16 && size.bank_words == 8) {
    return std::make_unique<Scratchpad<Vscratchpad_2x16x8_checked>>(size, options);
  }
  throw hw::InputError("scratchpad RTL: " + std::to_string(size.banks) + " banks of " +
                       std::to_string(size.bank_words) + " words, expected a size that is built");
}

ScratchpadResults model_scratchpad(const ScratchpadSize& size, const ScratchpadClients& clients,
                                   std::vector<std::uint8_t>& stored) {
  ScratchpadResults results;
  std::vector<ServedAccess> accesses;
  hw::BankService service(size.banks);
  std::array<std::size_t, kScratchpadClients> order{0, 1, 2, 3};
  if (clients.late_parameters) std::swap(order[2], order[3]);
  for (const std::size_t client : order) {
    std::uint64_t at = clients[client].begin;
    for (const ScratchpadStep& step : clients[client].steps) {
      const auto access = [&](std::size_t i) -> std::optional<hw::BankAccess> {
        if (!step.address[i]) return std::nullopt;
        const std::uint64_t bytes =
            client < kScratchpadWriters ? step.written.size() : readable(size, *step.address[i]);
        return hw::bank_access(*step.address[i], bytes, BlockSize(size.bank_bytes()));
      };
      const hw::BankService::Served served = service.serve(at, {access(0), access(1)});
      const std::size_t number = results[client].size();
      if (step.address[0]) accesses.push_back({served.first, client, number, 0});
      if (step.address[1]) accesses.push_back({served.second, client, number, 1});
      results[client].push_back({at = served.end, {}});
    }
  }
  // Those of one cycle are in other banks.
  std::sort(accesses.begin(), accesses.end(),
            [](const ServedAccess& a, const ServedAccess& b) { return a.cycle < b.cycle; });
  for (const ServedAccess& access : accesses) {
    const ScratchpadStep& step = clients[access.client].steps[access.step];
    const auto from = stored.begin() + static_cast<std::ptrdiff_t>(*step.address[access.access]);
    if (access.client < kScratchpadWriters) {
      std::copy(step.written.begin(), step.written.end(), from);
    } else {
      const std::uint64_t bytes = readable(size, *step.address[access.access]);
      results[access.client][access.step].read[access.access].assign(
          from, from + static_cast<std::ptrdiff_t>(bytes));
    }
  }
  return results;
}

void check_scratchpad(ScratchpadRtl& scratchpad, const ScratchpadSize& size,
                      const ScratchpadClients& clients, std::vector<std::uint8_t>& stored,
                      RtlCounts& counts) {
  RtlCheck check(counts, {});
  const ScratchpadResults expected = model_scratchpad(size, clients, stored);
  const ScratchpadResults found = scratchpad.run(clients, &expected);
  counts.cycles += scratchpad.cycles();
  for (std::size_t client = 0; client < kScratchpadClients; ++client) {
    for (std::size_t step = 0; step < expected[client].size(); ++step) {
      check.operation();
      check.mismatch(found[client][step].end != expected[client][step].end);
      check.mismatch(found[client][step].read != expected[client][step].read);
    }
  }
  check.assertions(scratchpad.failed());
}

}  // namespace systole::testbench
