#include "tlm/core/banked_sram.h"

#include <algorithm>

#include "hw/program/bank_words.h"

namespace systole::tlm_model {

BankedSram::BankedSram(const hw::Machine::Sram& params, std::uint32_t word_bytes)
    : params_(params),
      word_bytes_(word_bytes),
      bank_bytes_(std::uint64_t{params.kib} * 1024 / params.banks),
      bytes_(std::size_t{params.kib} * 1024),
      uses_(params.banks) {}

std::uint64_t BankedSram::record(std::uint64_t begin, std::uint64_t end, std::uint64_t words,
                                 std::uint64_t from, std::uint64_t to) {
  hw::for_each_bank(bank_bytes_, begin, end, words, [&](std::size_t bank, std::uint64_t share) {
    if (share > 0) uses_[bank].push_back({from, std::max(to, from + 1), share});
  });
  return count(words * word_bytes_);
}

std::uint64_t BankedSram::used(std::size_t bank, std::uint64_t from, std::uint64_t to) const {
  std::uint64_t words = 0;
  for (const Use& use : uses_[bank]) {
    const std::uint64_t begin = std::max(from, use.from);
    const std::uint64_t end = std::min(to, use.to);
    if (begin < end) words += use.words * (end - begin) / (use.to - use.from);
  }
  return words;
}

std::uint64_t BankedSram::shortage(std::initializer_list<Demand> demands, std::uint64_t from,
                                   std::uint64_t to, Yield yield) const {
  std::vector<std::uint64_t> wanted(params_.banks, 0);
  for (const Demand& demand : demands) {
    hw::for_each_bank(bank_bytes_, demand.begin, demand.end, demand.words,
                      [&](std::size_t bank, std::uint64_t share) {
                        // The pitch of the last row may lead out of the memory.
                        if (bank < wanted.size()) wanted[bank] += share;
                      });
  }
  const std::uint64_t capacity = (to - from) * params_.ports;
  std::uint64_t worst = 0;
  for (std::size_t bank = 0; bank < wanted.size(); ++bank) {
    if (wanted[bank] == 0) continue;
    if (yield == Yield::kToRecorded) wanted[bank] += used(bank, from, to);
    if (wanted[bank] > capacity) {
      worst = std::max(worst, (wanted[bank] - capacity + params_.ports - 1) / params_.ports);
    }
  }
  return worst;
}

void BankedSram::prune_before(std::uint64_t cycle) {
  for (auto& bank : uses_) {
    while (!bank.empty() && bank.front().to <= cycle) bank.pop_front();
  }
}

}  // namespace systole::tlm_model
