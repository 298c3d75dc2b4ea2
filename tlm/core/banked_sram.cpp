#include "tlm/core/banked_sram.h"

#include <algorithm>

namespace systole::tlm_model {

BankedSram::BankedSram(const hw::Machine::Sram& params, std::uint32_t word_bytes)
    : params_(params),
      word_size_(word_bytes),
      bank_size_(params.bank_bytes()),
      bytes_(std::size_t{params.kib} * 1024),
      service_(params.banks, params.ports) {}

BankedSram::BankedSram(const hw::Machine::Accumulator& params, std::uint32_t word_bytes)
    : BankedSram(params.sram(), word_bytes) {}

std::uint64_t BankedSram::serve(Client client, std::uint64_t begin, std::uint64_t end,
                                std::uint64_t words, std::uint64_t from) {
  return hw::serve_words(service_, bank_size_, begin, end, words, from, shown(client));
}

void BankedSram::serve(Client client, const hw::BankAccess& access, std::uint64_t at) {
  (void)service_.serve(at, {access, std::nullopt});
  if (!watched()) return;
  show_use(client, access.bank, 1, at, at + 1);
  if (access.crosses) show_use(client, access.bank + std::size_t{1}, 1, at, at + 1);
}

void BankedSram::watch(SignalRecorder& recorder, const std::string& path, const Clock& clock) {
  recorder_ = &recorder;
  clock_ = &clock;
  for (std::size_t bank = 0; bank < params_.banks; ++bank) {
    const std::string prefix = path + ".bank" + std::to_string(bank) + ".";
    signals_.push_back(
        {recorder.add_state(prefix + "state"),
         recorder.add_signal(prefix + "clients", static_cast<unsigned>(Client::kClients),
                             SignalRecorder::Kind::kUnion),
         recorder.add_signal(prefix + "words", 32, SignalRecorder::Kind::kNumber)});
  }
}

void BankedSram::show_use(Client client, std::size_t bank, std::uint64_t words, std::uint64_t from,
                          std::uint64_t to) {
  const BankSignals& of = signals_[bank];
  recorder_->hold(of.state, clock_->edge_ps(from), clock_->edge_ps(to), wave_state("in_use"));
  recorder_->hold(of.clients, clock_->edge_ps(from), clock_->edge_ps(to),
                  static_cast<std::uint64_t>(client));
  recorder_->add(of.words, clock_->edge_ps(to), static_cast<std::int64_t>(words));
}

void BankedSram::show(Client client, std::initializer_list<Demand> demands, std::uint64_t from,
                      std::uint64_t to) {
  if (!watched()) return;
  for (const Demand& demand : demands) {
    hw::for_each_bank(bank_size_, demand.begin, demand.end, demand.words,
                      [&](std::size_t bank, std::uint64_t share) {
                        if (share == 0) return;
                        // The pitch of the last row may lead out of the memory, its words do not.
                        show_use(client, std::min(bank, signals_.size() - 1), share, from, to);
                      });
  }
}

void BankedSram::show_wait(std::size_t bank, std::uint64_t from, std::uint64_t to) {
  if (!watched() || from >= to) return;
  recorder_->hold(signals_[bank].state, clock_->edge_ps(from), clock_->edge_ps(to),
                  wave_state("bank_conflict"));
}

}  // namespace systole::tlm_model
