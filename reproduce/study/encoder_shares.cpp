#include "reproduce/study/encoder_shares.h"

#include <string>

namespace systole::testbench {

using Json = nlohmann::ordered_json;

double percent_of(const Json& encoder, const std::vector<TimeClass>& kinds) {
  double part = 0, all = 0;
  for (const auto& [name, cycles] : encoder.at("classes").items()) all += cycles.get<double>();
  for (const TimeClass kind : kinds) {
    part += encoder.at("classes").at(std::string(name_of(kind))).get<double>();
  }
  return 100.0 * part / all;
}

double matmul_percent(const Json& encoder) {
  return percent_of(encoder, {TimeClass::kMatmul, TimeClass::kGelu});
}

double per_layer(const Json& encoder, const char* name) {
  return encoder.at(name).get<double>() / encoder.at("layers").get<double>();
}

double array_percent(const Json& encoder) {
  return 100.0 * encoder.at("macs").get<double>() / encoder.at("macs_per_cycle").get<double>() /
         encoder.at("cycles").get<double>();
}

}  // namespace systole::testbench
