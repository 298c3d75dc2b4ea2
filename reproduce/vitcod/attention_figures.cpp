#include <algorithm>

#include "reproduce/vitcod/rivals.h"
#include "reproduce/vitcod/vitcod.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

double number(const Json& document, const char* name) { return document.at(name).get<double>(); }

double cycles_of(const Json& document) { return document.at("cycles").get<double>(); }

double speed_up(const Json& slow, const Json& fast) { return cycles_of(slow) / cycles_of(fast); }

double stalled_cycles(const Json& document) {
  double cycles = 0.0;
  for (const auto& [cause, value] : document.at("stalled").items()) cycles += value.get<double>();
  return cycles;
}

double kept_macs(const Json& document) {
  return number(document, "kept") * (number(document, "dim") + number(document, "v_dim"));
}

double stalled_percent(const Json& document, const char* cause) {
  return 100.0 * number(document.at("stalled"), cause) / number(document, "engine_cycles");
}

double movement_percent(const Json& document, const hw::Machine& machine) {
  const double movement = number(document, "dram_read_bytes") / peak_bytes_per_cycle(machine);
  const double work = number(document, "engine_cycles") - stalled_cycles(document) +
                      number(document, "decode_cycles");
  return 100.0 * movement / (movement + work);
}

ImpliedBalance implied_balance(const Json& without, const Json& with,
                               std::pair<double, double> shares) {
  const double engines = number(without, "engine_cycles") - stalled_cycles(without);
  const double movement = engines * shares.first / (1.0 - shares.first);
  const double rate = number(without, "dram_read_bytes") / movement;
  const double less = number(with, "dram_read_bytes") / rate;
  const double decoding = less * (1.0 - shares.second) / shares.second - engines;
  // A byte of a latent head is a factor of every head's feature.
  const double macs =
      (number(with, "query_bytes") + number(with, "key_bytes")) * number(with, "head_count");
  return {rate, macs / std::max(decoding, 0.0), (less + engines + decoding) / (movement + engines)};
}

}  // namespace systole::testbench
