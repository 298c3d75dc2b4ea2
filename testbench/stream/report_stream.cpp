#include "testbench/stream/report_stream.h"

#include <fmt/format.h>

#include <utility>

#include "testbench/common/text.h"
#include "testbench/report/machine_json.h"
#include "testbench/report/measurement.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

std::string shape_text(const StreamRequest& request) {
  const hw::stream::LayerShape& shape = request.shape;
  if (request.product) {
    return fmt::format("{}x{}x{}", shape.sequence, shape.projection, shape.embedding);
  }
  std::string text = fmt::format("{} tokens, width {}, {} of {} features", shape.sequence,
                                 shape.embedding, counted(request.heads, "head"), shape.projection);
  if (shape.hidden != 0) text += fmt::format(", feed-forward {}", shape.hidden);
  return text;
}

}  // namespace

double StreamReport::utilisation() const {
  const double offered = static_cast<double>(result.cycles) * machine.stream.units *
                         static_cast<double>(machine.stream.length);
  return static_cast<double>(result.macs) / offered;
}

std::string stream_text(const StreamReport& report) {
  const StreamResult& result = report.result;
  FactList facts;
  facts.add("machine", report.machine.name);
  facts.add("layers", shape_text(report.request));
  facts.add("cycles", fmt::format("{}, {}", grouped(result.cycles),
                                  with_prefix(static_cast<double>(result.cycles) /
                                                  (report.machine.core.clock_mhz * 1e6),
                                              "s")));
  facts.add("array",
            fmt::format("{} of its multiply-accumulates used", percent(report.utilisation())));
  if (report.request.functional) {
    facts.add("checked", fmt::format("{} of {} mismatched", grouped(result.check.mismatches),
                                     counted(result.check.bytes, "byte")));
    if (result.check.mismatches != 0) facts.add("first", result.check.first);
  }
  Table table("layer | phase | >tiles | >first in | >last in | >last out | >cycles");
  for (const StreamResult::Layer& layer : result.layers) {
    for (const hw::stream::PhaseTimes& times : layer.times.phases) {
      table.add({&times == &layer.times.phases.front() ? layer.name : "",
                 std::string(name_of(times.phase)), grouped(times.tiles), grouped(times.first_in),
                 grouped(times.last_in), grouped(times.last_out),
                 &times == &layer.times.phases.front() ? grouped(layer.cycles()) : ""});
    }
  }
  return facts.text() + "\n" + table.text() + "\n" + block_table(result.blocks);
}

ordered_json stream_json(const StreamReport& report) {
  const StreamResult& result = report.result;
  const StreamRequest& request = report.request;
  ordered_json layers = ordered_json::array();
  for (const StreamResult::Layer& layer : result.layers) {
    ordered_json phases = ordered_json::array();
    for (const hw::stream::PhaseTimes& times : layer.times.phases) {
      phases.push_back({{"phase", name_of(times.phase)},
                        {"tiles", times.tiles},
                        {"first_in", times.first_in},
                        {"last_in", times.last_in},
                        {"last_out", times.last_out}});
    }
    layers.push_back({{"name", layer.name},
                      {"begin", layer.times.begin},
                      {"cycles", layer.cycles()},
                      {"phases", std::move(phases)}});
  }
  return {{"machine", report.machine.name},
          {"tokens", request.shape.sequence},
          {"width", request.shape.embedding},
          {"features", request.shape.projection},
          {"hidden", request.shape.hidden},
          {"heads", request.product ? 0 : request.heads},
          {"functional", request.functional},
          {"cycles", result.cycles},
          {"macs", result.macs},
          {"utilisation", report.utilisation()},
          {"checked_bytes", result.check.bytes},
          {"mismatched_bytes", result.check.mismatches},
          {"layers", std::move(layers)},
          {"blocks", accounts_json(result.blocks)},
          {"machine_keys", machine_json(report.machine)}};
}

}  // namespace systole::testbench
