#include "tlm/core/load_unit.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/round.h"
#include "hw/dma/sum_loads.h"
#include "hw/number/weight_groups.h"
#include "hw/program/program_ranges.h"

namespace systole::tlm_model {

LoadUnit::LoadUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
                   CommandProcessor& processor, LocalMemory& memory, bool functional,
                   const DmaFactory& make_dma)
    : ExecutionUnit(
          name, hw::Unit::kLoad, processor,
          {{"memory", "latency, a full request window, or contention on the way to memory"},
           {"stages", "the last rows went through the stages before the anchor, or the expander"}}),
      dma(make_dma("dma", machine, DmaUse::kLoad)),
      functional_(functional),
      access_size_(hw::load_access_size(machine)),
      memory_(memory),
      machine_(machine) {
  SC_HAS_PROCESS(LoadUnit);
  SC_METHOD(complete_due);
  sensitive << place_;
  dont_initialize();
}

DmaPort::Places::Placed LoadUnit::placed(hw::SumTraffic::Request request) {
  hw::SumTraffic::Placed placed = memory_.sums.placed(request);
  if (!placed.is_final && memory_.sums.known() < cycle()) {
    memory_.advance_sums(cycle());
    placed = memory_.sums.placed(request);
  }
  return {placed.cycle, placed.is_final};
}

void LoadUnit::look_again(const DmaPort::Places::Placed& at) {
  const std::uint64_t next = hw::SumTraffic::known_at(at.cycle - 1, cycle());
  place_.notify(processor().clock().edge(next) - sc_core::sc_time_stamp());
}

// In any order: one that was asked for later may not have to wait.
void LoadUnit::complete_due() {
  for (auto load = placing_.begin(); load != placing_.end();) {
    const DmaPort::Places::Placed at = placed(load->last);
    if (!at.is_final) {
      look_again(at);
      ++load;
      continue;
    }
    processor().complete_at(*load->entry, load->started, load->released, at.cycle);
    all_complete_ = std::max(all_complete_, at.cycle);
    load = placing_.erase(load);
  }
  if (placing_.empty()) placed_.notify();
}

void LoadUnit::widen(const hw::cmd::Load& load, std::uint64_t row, const std::uint8_t* from) {
  std::int32_t* to = memory_.accumulators() + load.to.address + row * load.to.pitch;
  const auto copy = [&](auto type) {
    for (std::uint32_t i = 0; i < load.n; ++i) {
      decltype(type) value;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      to[i] = static_cast<std::int32_t>(value);
    }
  };
  switch (load.type) {
    case hw::DType::kS8:
      copy(std::int8_t{});
      break;
    case hw::DType::kU8:
      copy(std::uint8_t{});
      break;
    case hw::DType::kS16:
      copy(std::int16_t{});
      break;
    case hw::DType::kU16:
      copy(std::uint16_t{});
      break;
    case hw::DType::kS32:
      copy(std::int32_t{});
      break;
  }
  if (memory_.accumulator_engine != nullptr) {
    const std::uint64_t first = load.to.address + row * load.to.pitch;
    memory_.accumulator_engine->begin_at(cycle());
    memory_.accumulator_engine->write({first, 1, load.n, load.n}, to, load.n, false);
  }
}

void LoadUnit::expand(const hw::cmd::Load& load, const hw::TensorRows& groups) {
  const std::uint64_t count = hw::read_rows(load).rows, pitch = load.to.pitch;
  const auto* const from = static_cast<const std::uint8_t*>(groups.data);
  for (std::uint64_t i = 0; i < count; ++i) {
    hw::expand_group(load.format, from + i * groups.pitch, load.n,
                     memory_.scratchpad.data() + load.to.address + i * hw::kGroupWeights * pitch,
                     pitch);
  }
}

std::uint64_t LoadUnit::gather(const hw::cmd::Load& load, std::uint8_t* to, std::uint64_t pitch,
                               std::uint64_t& beats, const OnRow& on_row) {
  runs_.clear();
  rows_.clear();
  const bool patches = load.window->window.gather == hw::Gather::kPatches;
  for (std::uint64_t row = 0; row < load.m; ++row) {
    const std::size_t before = runs_.size();
    if (to != nullptr && patches) std::memset(to + row * pitch, 0, load.n);
    hw::for_each_run(*load.window, row, load.n, load.from.pitch, [&](const hw::WindowRun& run) {
      // Runs that are reduced stand one after the other until then.
      const std::uint64_t at = patches ? run.col : (runs_.size() - before) * std::uint64_t{load.n};
      runs_.push_back({load.from.address + run.offset,
                       to == nullptr ? nullptr : to + row * pitch + at, run.bytes, false});
      beats += blocks_touched(load.from.address + run.offset, run.bytes, machine_.bus.width_bytes);
    });
    if (runs_.size() == before) continue;
    runs_.back().ends_row = true;
    rows_.push_back(row);
  }
  // Rows of padding alone are complete with what came before them.
  std::uint64_t next = 0, last = cycle();
  const auto complete = [&](std::uint64_t end) {
    for (; next < end; ++next) on_row(next, last);
  };
  const std::uint64_t done = dma->read_runs(runs_, [&](const DmaPort::Arrival& arrival) {
    if (!arrival.ends_row) return;
    complete(rows_[arrival.row]);
    last = std::max(last, arrival.row_done);
    complete(rows_[arrival.row] + 1);
  });
  complete(load.m);
  return std::max(done, last);
}

void LoadUnit::reduce(const hw::cmd::Load& load, std::uint64_t row, const std::uint8_t* from) {
  const bool sum = load.window->window.gather == hw::Gather::kSum;
  sums_.assign(load.n, sum ? 0 : std::numeric_limits<std::int32_t>::min());
  hw::for_each_run(*load.window, row, load.n, load.from.pitch, [&](const hw::WindowRun&) {
    for (std::uint32_t i = 0; i < load.n; ++i, ++from) {
      const std::int32_t value = load.type == hw::DType::kU8
                                     ? std::int32_t{*from}
                                     : std::int32_t{static_cast<std::int8_t>(*from)};
      sums_[i] = sum ? sums_[i] + value : std::max(sums_[i], value);
    }
  });
  const std::uint64_t first = load.to.address + row * load.to.pitch;
  std::copy(sums_.begin(), sums_.end(), memory_.accumulators() + first);
  if (memory_.accumulator_engine != nullptr) {
    memory_.accumulator_engine->begin_at(cycle());
    memory_.accumulator_engine->write({first, 1, load.n, load.n}, sums_.data(), load.n, false);
  }
}

bool LoadUnit::post(const hw::cmd::Load& load, bool to_accumulator) {
  if (memory_.values == nullptr) return false;
  ValueQueue& queue = *memory_.values;
  const hw::ReadRows read = hw::read_rows(load);
  ValueQueue::Span span{load.from.address, (read.rows - 1) * load.from.pitch + read.bytes};
  std::uint64_t begin = 0;  // of what is read of a picture
  if (load.window) {
    const hw::WindowSpan window = hw::window_span(*load.window, load.m, load.from.pitch);
    begin = window.begin;
    span = {load.from.address + begin, window.end - begin};
  }
  const std::uint8_t* const from = queue.at(span);
  if (from == nullptr) {
    // Its requests will be answered with an error.
    queue.await();
    return false;
  }
  queue.post([this, load, to_accumulator, picture = from - begin] {
    compute(load, to_accumulator, picture);
  });
  return true;
}

void LoadUnit::compute(const hw::cmd::Load& load, bool to_accumulator, const std::uint8_t* from) {
  const hw::ReadRows read = hw::read_rows(load);
  const std::uint64_t pitch = load.from.pitch;
  if (load.packed()) return expand(load, {from, pitch});
  std::uint8_t* to = memory_.scratchpad.data() + load.to.address;
  for (std::uint64_t row = 0; row < load.m; ++row, to += load.to.pitch) {
    if (load.window && to_accumulator) {
      staging_.clear();
      hw::for_each_run(*load.window, row, load.n, pitch, [&](const hw::WindowRun& run) {
        staging_.insert(staging_.end(), from + run.offset, from + run.offset + run.bytes);
      });
      reduce(load, row, staging_.data());
    } else if (load.window) {
      std::memset(to, 0, load.n);
      hw::for_each_run(*load.window, row, load.n, pitch, [&](const hw::WindowRun& run) {
        std::memcpy(to + run.col, from + run.offset, run.bytes);
      });
    } else if (to_accumulator) {
      widen(load, row, from + row * pitch);
    } else {
      std::memcpy(to, from + row * pitch, read.bytes);
    }
  }
}

std::optional<std::uint64_t> LoadUnit::execute(Entry& entry) {
  const auto& load = *entry.command.as<hw::cmd::Load>();
  if (load.pre) {
    all_complete_ = execute_stages(load, entry.command.as<hw::cmd::LoadAccumulator>() != nullptr);
    return all_complete_;
  }
  const bool to_accumulator = entry.command.as<hw::cmd::LoadAccumulator>() != nullptr;
  const hw::ReadRows read = hw::read_rows(load);
  // Where the rows go, in bytes of their memory.
  BankedSram& sram = to_accumulator ? memory_.accumulator : memory_.scratchpad;
  const hw::WordCode& code = to_accumulator ? memory_.accumulator_code : memory_.scratchpad_code;
  const std::uint64_t scale = to_accumulator ? 4 : 1;
  const std::uint64_t first = load.to.address * scale;
  const std::uint64_t pitch = load.to.pitch * scale;
  const std::uint64_t local_bytes = load.n * scale;
  const std::uint64_t at_once = load.packed() ? hw::kGroupWeights : 1;  // rows of one that is read
  const std::uint64_t words = at_once * ((local_bytes + sram.word_bytes() - 1) / sram.word_bytes());
  const bool with_values = functional_ && !post(load, to_accumulator);
  DmaPort::Rows rows{load.from.address, load.from.pitch, nullptr, pitch, read.rows, read.bytes};
  const bool staged = to_accumulator || load.packed();
  if (with_values && staged) {
    rows.data_pitch = read.bytes * (load.window ? load.window->window.pixels() : 1);
    staging_.resize(read.rows * rows.data_pitch);
    rows.data = staging_.data();
  } else if (with_values) {
    rows.data = sram.data() + first;
  }
  const std::uint64_t started = cycle();
  hw::ExpansionCycles expansion;
  std::uint64_t taken = started;        // cycle at which the expander has the last row
  std::uint64_t before_last = started;  // and at which they had the one before
  if (load.packed()) {
    expansion = hw::expansion_cycles(load.n, machine_.dma.expander_lanes, sram.word_bytes());
    taken = std::max(taken, expander_free_);
  }
  std::uint64_t& moved = to_accumulator ? events().accumulator_bytes : events().scratchpad_bytes;
  StoredUse use;
  const bool observed = with_values && memory_.observer != nullptr;
  const bool as_it_arrives = hw::is_written_by_request(load, to_accumulator);
  const std::uint64_t settling = to_accumulator ? hw::kSumLoadCycles : 0;
  // Else all has been done when its last request has arrived.
  const bool looks_at_rows =
      observed || recorder() != nullptr || code.protection != hw::Protection::kNone;
  const OnRow on_row = [&](std::uint64_t row, std::uint64_t arrived) {
    std::uint64_t there = arrived;
    if (load.packed()) {
      before_last = taken;
      taken = std::max(taken, arrived) + expansion.per_group;
      there = taken + expansion.fill;
    } else if (with_values && to_accumulator && load.window) {
      reduce(load, row, rows.data + row * rows.data_pitch);
    } else if (with_values && to_accumulator) {
      widen(load, row, rows.data + row * read.bytes);
    }
    there += settling;
    const std::uint64_t at = first + row * at_once * pitch;
    std::uint64_t accesses = as_it_arrives ? 0 : words;
    for (std::uint64_t i = 0; i < at_once; ++i) {
      const std::uint64_t begin = at + i * pitch;
      accesses += hw::reads_before_write(code, begin, begin + local_bytes, sram.word_bytes());
    }
    if (recorder() != nullptr) recorder()->add(arrived_, ps(there), at_once);
    if (observed) use.cycles.insert(use.cycles.end(), at_once, there);
    const std::uint64_t end = at + (at_once - 1) * pitch + local_bytes;
    const std::uint64_t from = there - std::min(there, accesses);
    if (to_accumulator) {
      sram.show(BankedSram::Client::kLoad, {{at, end, accesses}}, from, there);
    } else {
      (void)sram.serve(BankedSram::Client::kLoad, at, end, accesses, from);
    }
    moved += sram.count(accesses * sram.word_bytes());
  };
  const bool is_placed = memory_.sums.serves() && hw::is_placed_by_beat(load, to_accumulator);
  hw::SumTraffic::Request last = 0;  // of those to place: that which arrives last
  std::uint64_t last_done = 0;
  std::uint64_t arrived_bytes = 0;  // of the row
  const DmaPort::OnArrival write_requests = [&](const DmaPort::Arrivals& arrivals) {
    std::uint64_t words_moved = 0;
    arrivals.for_each([&, first, pitch, from = load.from, access = access_size_,
                       word = sram.word_size()](const DmaPort::Arrival& arrival) {
      const std::uint64_t address = from.address + arrival.row * from.pitch + arrived_bytes;
      const std::uint64_t at = first + arrival.row * pitch + arrived_bytes;
      sram.serve_request(address, arrival.bytes, at, access, arrival.cycle);
      words_moved += word.touched(address, arrival.bytes);
      arrived_bytes = arrival.ends_row ? 0 : arrived_bytes + arrival.bytes;
      if (arrival.ends_row && looks_at_rows) on_row(arrival.row, arrival.row_done);
    });
    moved += sram.count(words_moved * sram.word_bytes());
  };
  const DmaPort::OnArrival on_arrival = [&](const DmaPort::Arrival& arrival) {
    if (is_placed) {
      const std::uint64_t element = hw::bytes_of(load.type);
      const std::uint64_t row = load.to.address + arrival.row * load.to.pitch;
      places_.last_request = memory_.sums.add(
          load.from.address + arrival.row * load.from.pitch + arrived_bytes, arrival.bytes,
          machine_.bus.width_bytes, row * element + arrived_bytes, element, arrival.cycle);
      if (arrival.cycle >= last_done) last = places_.last_request;
      last_done = std::max(last_done, arrival.cycle);
    }
    arrived_bytes = arrival.ends_row ? 0 : arrived_bytes + arrival.bytes;
    if (arrival.ends_row) on_row(arrival.row, arrival.row_done);
  };
  std::uint64_t beats = 0;
  std::uint64_t done = 0;
  if (load.window) {
    done = gather(load, rows.data, rows.data_pitch, beats, on_row);
  } else {
    const BlockSize beat(machine_.bus.width_bytes);
    for (std::uint64_t row = 0; row < read.rows; ++row) {
      beats += beat.touched(rows.address + row * rows.pitch, read.bytes);
    }
    rows.settling = settling;
    if (is_placed) {
      rows.places = &places_;
      memory_.advance_sums(cycle());
    }
    done = dma->read_rows(rows, as_it_arrives ? write_requests : on_arrival);
  }
  dma->synchronise();
  std::uint64_t in_expander = 0;
  if (load.packed()) {
    const std::uint64_t elements = std::uint64_t{load.m} * load.n;
    if (with_values) expand(load, {staging_.data(), read.bytes});
    // The table of energies has no figure for an expanded weight: it counts as an element of a
    // stage, which takes more.
    events().postop_elements = elements;
    expanded_ += elements;
    // The next load may be requested once the expander has room for it after the last group.
    expander_free_ = taken;
    in_expander = before_last - std::min(before_last, cycle());
    wait_cycles(in_expander);
    done = std::max(done, taken + expansion.fill);
  }
  done += settling;
  if (observed) {
    use.space = to_accumulator ? hw::Space::kAccumulator : hw::Space::kScratchpad;
    use.write = true;
    use.first_step = use.last_step = memory_.observer->last_step();
    use.address = first;
    use.pitch = pitch;
    use.rows = load.m;
    use.bytes = local_bytes;
    memory_.observer->use(std::move(use));
  }
  // Of the cycles in the unit, those that the data need on the bus are work; the rest is waiting
  // for memory: latency, a full request window, contention.
  const std::uint64_t elapsed = cycle() - started;
  const std::uint64_t busy = std::min(elapsed - in_expander, beats);
  account_busy(busy);
  account_stall(in_expander, kStages);
  account_stall(elapsed - in_expander - busy, kMemory);
  if (is_placed) {
    if (const DmaPort::Places::Placed at = placed(last); at.is_final) {
      done = std::max(done, at.cycle);
    } else {
      placing_.push_back({&entry, started, cycle(), last});
      look_again(at);
      return std::nullopt;
    }
  }
  all_complete_ = std::max(all_complete_, done);
  return done;
}

void LoadUnit::watch(SignalRecorder& recorder) {
  ExecutionUnit::watch(recorder);
  arrived_ = recorder.add_signal(std::string(name()) + ".rows", 32, SignalRecorder::Kind::kNumber);
}

std::vector<hw::Counter> LoadUnit::counters() const {
  return {
      {"stage_operations", "elements", "elements times stages before the anchor",
       stage_operations_},
      {"expanded", "weights", "of groups that became int8", expanded_},
      {"requests", "requests", "read requests issued", dma->stats().requests},
      {"read_bytes", "bytes", "bytes read from memory", dma->stats().bytes},
      {"window_full", "cycles", "a request waited for one of the outstanding ones",
       dma->stats().window_wait_cycles},
      {"tlb_misses", "misses", "a page that the shared table did not hold",
       dma->stats().tlb_misses},
      {"tlb_wait", "cycles", "a request waited for its translation", dma->stats().tlb_wait_cycles}};
}

}  // namespace systole::tlm_model
