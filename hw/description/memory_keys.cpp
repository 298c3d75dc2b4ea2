/// Keys of the system bus, of a mesh in its place, and of what is behind it: cache and main memory.

#include <utility>

#include "hw/description/key_table.h"

namespace systole::hw::key_table {
namespace {

constexpr Text kJedec = "JESD79-4, DDR4-2400T";
constexpr Text kGem5 = "default of gem5's MemCtrl";

using Bus = Machine::Bus;
using Noc = Machine::Noc;
using L2 = Machine::L2;
using Dram = Machine::Dram;
using Memory = Machine::Memory;

}  // namespace

void append_memory_keys(std::vector<MachineKey>& keys) {
  constexpr auto kBus = &Machine::bus;
  constexpr auto kNoc = &Machine::noc;
  constexpr auto kL2 = &Machine::l2;
  constexpr auto kDram = &Machine::dram;
  constexpr auto kMemory = &Machine::memory;

  // clang-format off
  std::vector<MachineKey> more = {
      integer<kBus, &Bus::clock_mhz>("bus.clock_mhz", "MHz", 1, 10000,
          "clock of the system bus", kChosen),
      power_of_two<kBus, &Bus::width_bytes>("bus.width_bytes", "bytes", 1, 256,
          "data per bus cycle", "Gemmini (128 bits)"),
      integer<kBus, &Bus::request_latency>("bus.request_latency", "bus cycles", 0, 1000,
          "from initiator to target", kChosen),
      integer<kBus, &Bus::response_latency>("bus.response_latency", "bus cycles", 0, 1000,
          "from target back to initiator", kChosen),

      integer<kNoc, &Noc::columns>("noc.columns", "routers", 0, 16,
          "width of the mesh that takes the place of the bus's channels; 0: none", kChosen),
      integer<kNoc, &Noc::rows>("noc.rows", "routers", 1, 16,
          "height of the mesh", kChosen),
      integer<kNoc, &Noc::hop_cycles>("noc.hop_cycles", "bus cycles", 1, 100,
          "of a packet's head: through a router and over the link after it", kChosen),
      power_of_two<kNoc, &Noc::link_bytes>("noc.link_bytes", "bytes", 1, 256,
          "what a link between two routers moves in a cycle", "as the bus"),
      integer<kNoc, &Noc::header_bytes>("noc.header_bytes", "bytes", 0, 64,
          "of a packet, before its data; 0: on wires beside the data", kChosen),
      integer<kNoc, &Noc::node>("noc.node", "", 0, 255,
          "where the core is, row by row; of several the first, others after it", kChosen),

      integer<kL2, &L2::kib>("l2.kib", "KiB", 0, 1048576,
          "size of the cache between bus and DRAM; 0: none", kChosen),
      integer<kL2, &L2::ways>("l2.ways", "", 1, 64,
          "lines of a set", "SiFive inclusive cache"),
      power_of_two<kL2, &L2::line_bytes>("l2.line_bytes", "bytes", 16, 4096,
          "line, the unit of tags and of traffic with memory", "SiFive inclusive cache"),
      power_of_two<kL2, &L2::banks>("l2.banks", "", 1, 64,
          "banks that are accessed independently; neighbouring lines in different ones", kChosen),
      power_of_two<kL2, &L2::bank_bytes>("l2.bank_bytes", "bytes/cycle", 1, 1024,
          "what a bank reads or writes in a bus cycle", "as the bus"),
      integer<kL2, &L2::hit_latency>("l2.hit_latency", "bus cycles", 0, 1000,
          "from the beginning of an access to its first data, or to the miss", kChosen),
      integer<kL2, &L2::mshrs>("l2.mshrs", "", 1, 1024,
          "misses in flight", "requests that one DMA port has in flight"),
      word<kL2, &L2::replacement>("l2.replacement", {"lru", "random"},
          "which line of a full set makes room", "chosen; SiFive inclusive cache: random"),

      word<kMemory, &Memory::model>("memory.model", {"dram", "fixed"},
          "main memory: the DRAM of keys dram, or one of stated latency", kChosen),
      integer<kMemory, &Memory::latency>("memory.latency", "bus cycles", 1, 10000,
          "fixed: from the last beat of a request to the first of its answer", kChosen),
      integer<kMemory, &Memory::read_beat_cycles>("memory.read_beat_cycles", "bus cycles", 1, 64,
          "fixed: from one beat of an answer to the next", kChosen),
      integer<kMemory, &Memory::queue>("memory.queue", "requests", 1, 1024,
          "fixed: that wait for their answers", kChosen),

      integer<kDram, &Dram::mib>("dram.mib", "MiB", 1, 65536,
          "size of main memory, of all channels together", kChosen),
      power_of_two<kDram, &Dram::channels>("dram.channels", "", 1, 64,
          "independent channels", kChosen),
      power_of_two<kDram, &Dram::banks>("dram.banks", "", 1, 256,
          "banks of a channel", kJedec),
      power_of_two<kDram, &Dram::bank_groups>("dram.bank_groups", "", 1, 64,
          "groups that the banks of a channel form", kJedec),
      power_of_two<kDram, &Dram::row_bytes>("dram.row_bytes", "bytes", 64, 65536,
          "row buffer of a bank", "eight x8 devices of 1 KB"),
      integer<kDram, &Dram::mega_transfers>("dram.mega_transfers", "MT/s", 100, 20000,
          "transfers per second on a channel's data bus, two per clock", kJedec),
      power_of_two<kDram, &Dram::bus_bytes>("dram.bus_bytes", "bytes", 1, 256,
          "data bus of a channel", "64-bit rank"),
      power_of_two<kDram, &Dram::burst_length>("dram.burst_length", "transfers", 2, 64,
          "transfers of one column access", kJedec),
      number<kDram, &Dram::t_cl_ns>("dram.t_cl_ns", "ns", 0.1, 1000,
          "CL: read command to first data", "JESD79-4, DDR4-2400T: 17 tCK"),
      number<kDram, &Dram::t_cwl_ns>("dram.t_cwl_ns", "ns", 0.1, 1000,
          "CWL: write command to first data", "JESD79-4, DDR4-2400: 12 tCK"),
      number<kDram, &Dram::t_rcd_ns>("dram.t_rcd_ns", "ns", 0.1, 1000,
          "tRCD: activate to column command", "JESD79-4, DDR4-2400T: 17 tCK"),
      number<kDram, &Dram::t_rp_ns>("dram.t_rp_ns", "ns", 0.1, 1000,
          "tRP: precharge to activate", "JESD79-4, DDR4-2400T: 17 tCK"),
      number<kDram, &Dram::t_ras_ns>("dram.t_ras_ns", "ns", 0.1, 1000,
          "tRAS: activate to precharge", kJedec),
      number<kDram, &Dram::t_rtp_ns>("dram.t_rtp_ns", "ns", 0.1, 1000,
          "tRTP: read command to precharge", kJedec),
      number<kDram, &Dram::t_wr_ns>("dram.t_wr_ns", "ns", 0.1, 1000,
          "tWR: last write data to precharge", kJedec),
      number<kDram, &Dram::t_wtr_ns>("dram.t_wtr_ns", "ns", 0.1, 1000,
          "tWTR_L: last write data to read command", kJedec),
      number<kDram, &Dram::t_ccd_l_ns>("dram.t_ccd_l_ns", "ns", 0.1, 1000,
          "tCCD_L: column to column command in one bank group", kJedec),
      number<kDram, &Dram::t_rrd_s_ns>("dram.t_rrd_s_ns", "ns", 0.1, 1000,
          "tRRD_S: activate to activate in another bank group", "JESD79-4, 1 KB page: 4 tCK"),
      number<kDram, &Dram::t_rrd_l_ns>("dram.t_rrd_l_ns", "ns", 0.1, 1000,
          "tRRD_L: activate to activate in one bank group", "JESD79-4, 1 KB page"),
      number<kDram, &Dram::t_faw_ns>("dram.t_faw_ns", "ns", 0.1, 1000,
          "tFAW: window that holds at most four activates", "JESD79-4, 1 KB page"),
      number<kDram, &Dram::t_rfc_ns>("dram.t_rfc_ns", "ns", 0.1, 10000,
          "tRFC: time that a refresh takes", "JESD79-4, 8 Gb devices"),
      number<kDram, &Dram::t_refi_ns>("dram.t_refi_ns", "ns", 0, 1000000,
          "tREFI: interval between refreshes, 0 for none", "JESD79-4, up to 85 C"),
      number<kDram, &Dram::controller_ns>("dram.controller_ns", "ns", 0, 10000,
          "controller front-end and PHY, once per request", kChosen),
      integer<kDram, &Dram::write_queue>("dram.write_queue", "bursts", 0, 4096,
          "writes of a channel that wait for the data bus, 0 for none", kGem5),
      integer<kDram, &Dram::write_high_percent>("dram.write_high_percent", "%", 1, 100,
          "of the write queue: from so many on, writes move before reads", kGem5),
      integer<kDram, &Dram::write_low_percent>("dram.write_low_percent", "%", 0, 99,
          "of the write queue: until so many are left", kGem5),
  };
  // clang-format on
  for (MachineKey& key : more) keys.push_back(std::move(key));
}

}  // namespace systole::hw::key_table
