#include "testbench/common/mesh_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "hw/noc/mesh_nodes.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

/// Links of a mesh that a table shows.
constexpr std::ptrdiff_t kShownLinks = 8;

}  // namespace

std::vector<hw::BlockReport> with_busiest_links(std::vector<hw::BlockReport> blocks) {
  for (hw::BlockReport& block : blocks) {
    const auto count = static_cast<std::ptrdiff_t>(block.parts.size()) - kShownLinks;
    if (block.name != "noc" || count < 2) continue;
    std::stable_sort(block.parts.begin(), block.parts.end(),
                     [](const hw::BlockReport& a, const hw::BlockReport& b) {
                       return a.time->busy > b.time->busy;
                     });
    hw::BlockReport others{fmt::format("{} others", count), block.parts.front().time, {}, {}};
    std::uint64_t busy = 0;
    for (auto link = block.parts.begin() + kShownLinks; link != block.parts.end(); ++link) {
      busy += link->time->busy;
    }
    others.time->busy = busy / static_cast<std::uint64_t>(count);
    others.time->idle = others.time->total - others.time->busy;
    block.parts.erase(block.parts.begin() + kShownLinks, block.parts.end());
    block.parts.push_back(std::move(others));
  }
  return blocks;
}

std::string mesh_text(const hw::CoreSystem& system) {
  const hw::Machine& machine = system.machine;
  const hw::Machine::Noc& noc = machine.noc;
  std::map<std::uint32_t, std::string> at;
  const auto add = [&](std::uint32_t node, const std::string& what) {
    std::string& text = at[node];
    text += (text.empty() ? "" : ", ") + what;
  };
  add(hw::kHostNode, "host");
  if (system.cores.empty()) add(noc.node, "core");
  for (const hw::CoreSite& core : system.cores) add(core.machine.noc.node, core.name);
  for (std::uint32_t i = 0; i < machine.dram.channels; ++i) {
    add(hw::channel_node(machine, i), fmt::format("channel {}", i));
  }
  Table table("node | >column | >row | what is there");
  for (const auto& [node, what] : at) {
    table.add({std::to_string(node), std::to_string(node % noc.columns),
               std::to_string(node / noc.columns), what});
  }
  return table.text() +
         fmt::format(
             "\nMesh of {} x {} routers at {} MHz, {} cycles a hop. Links of {} bytes between "
             "routers, of\n{} bytes to what is at a node. A request and its answer are packets "
             "with a header of {} bytes:\nalong the row first, each link to the first that "
             "asks. There are no priorities.\n",
             noc.columns, noc.rows, machine.bus.clock_mhz, noc.hop_cycles, noc.link_bytes,
             machine.bus.width_bytes, noc.header_bytes);
}

}  // namespace systole::testbench
