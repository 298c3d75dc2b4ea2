#include "testbench/generation/ring_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/round.h"
#include "hw/ring/ring_map.h"
#include "mapper/ring/image.h"
#include "testbench/rtl/engine/engines.h"

namespace systole::testbench {
namespace {

using mapper::dfx::Pass;
using mapper::dfx::PassMaker;
using tlm_model::dfx::RingHost;
using tlm_model::dfx::RingPlace;

/// Begin of a core's programs in its DDR: a multiple of it, after the tables.
constexpr std::uint64_t kProgramAlignment = 4096;

void check_text(const GenerationTask& task) {
  if (!task.texts.empty()) return;
  const std::size_t all = task.prompt.size() + task.tokens;
  if (task.prompt.empty() || task.tokens == 0 || all > task.shape.positions) {
    throw hw::InputError(fmt::format(
        "text: found {} tokens of prompt and {} to generate, expected at least one of each and at "
        "most {} together",
        task.prompt.size(), task.tokens, task.shape.positions));
  }
}

}  // namespace

RingRun::RingRun(const hw::Machine& machine, const GenerationTask& task)
    : machine_(machine), task_(task) {
  check_text(task);
  for (std::uint32_t i = 0; i < machine.dfx.cores; ++i) {
    makers_.push_back(std::make_unique<PassMaker>(task.shape, machine, i));
  }
  passes_.resize(makers_.size());
}

std::vector<RingPlace> RingRun::places(const std::function<RtlOptions(std::uint32_t core)>& rtl,
                                       RtlReport& report) const {
  const auto is_rtl = [](hw::Backend backend) { return backend == hw::Backend::kRtl; };
  HalfBackends backends;
  backends.mpu_tree = is_rtl(machine_.backend.mpu_tree);
  backends.fp16_mul = is_rtl(machine_.backend.fp16_mul);
  backends.fp16_add = is_rtl(machine_.backend.fp16_add);
  std::vector<RingPlace> places;
  for (std::uint32_t i = 0; i < machine_.dfx.cores; ++i) {
    RtlOptions options = rtl(i);
    options.own = task_.rtl.own;
    RingPlace& place = places.emplace_back();
    place.register_elements = makers_[i]->register_elements();
    place.program = round_up(makers_[i]->layout().ddr.bytes, kProgramAlignment);
    place.engines.matrix =
        make_matrix_lane_engine(machine_.matrix.unit(), backends, options, report);
    place.engines.vector = make_half_vector_engine(backends, options, report);
    place.engines.router = make_router_engine(is_rtl(machine_.backend.ring_router),
                                              machine_.ring.router_cycles, options, report);
  }
  return places;
}

void RingRun::attach(tlm_model::dfx::RingSystem& system) {
  system_ = &system;
  for (std::size_t i = 0; i < system.cores(); ++i) system.core(i).observer = task_.observer;
  if (task_.gpt == nullptr) return;
  const auto put = [](const std::vector<hw::Half>& image, tlm_model::Dram& memory) {
    std::memcpy(&memory.stored(0), image.data(), image.size() * sizeof(hw::Half));
  };
  const bool same_ddr = machine_.dfx.lm_head == hw::dfx::Placement::kHbm;
  std::vector<hw::Half> ddr;
  for (std::size_t i = 0; i < makers_.size(); ++i) {
    const mapper::dfx::CoreLayout& layout = makers_[i]->layout();
    put(mapper::dfx::hbm_image(*task_.gpt, machine_, layout), system.core(i).hbm);
    if (!system.core(i).ddr) continue;
    if (i == 0 || !same_ddr) ddr = mapper::dfx::ddr_image(*task_.gpt, machine_, layout);
    put(ddr, *system.core(i).ddr);
  }
}

hw::MemoryImage RingRun::ddr_image(const std::vector<std::uint64_t>& bases) const {
  hw::MemoryImage image;
  for (std::size_t i = 0; task_.gpt != nullptr && i < makers_.size(); ++i) {
    const std::vector<hw::Half> ddr =
        mapper::dfx::ddr_image(*task_.gpt, machine_, makers_[i]->layout());
    hw::MemoryPiece& piece = image.emplace_back();
    piece.address = bases.at(i);
    piece.bytes.resize(ddr.size() * sizeof(hw::Half));
    std::memcpy(piece.bytes.data(), ddr.data(), piece.bytes.size());
  }
  return image;
}

std::vector<const Pass*> RingRun::next(RingHost& host) {
  std::vector<const Pass*> next;
  if (wave_ != nullptr && result_.passes != 0) wave_->end_inference();
  if (has_logits_) take_logits(host);
  const Step step = task_.texts.empty() ? generation_step() : text_step();
  if (step.ids.empty()) return next;
  position_ = step.position + static_cast<std::uint32_t>(step.ids.size());
  has_logits_ = step.logits;
  for (std::size_t i = 0; i < makers_.size(); ++i) {
    passes_[i] = makers_[i]->make(step.ids, step.position, step.logits);
    next.push_back(&passes_[i]);
  }
  ++result_.passes;
  if (task_.on_pass) task_.on_pass(step.position, passes_);
  if (task_.progress) task_.progress(result_.passes);
  return next;
}

RingRun::Step RingRun::generation_step() const {
  const auto prompt = static_cast<std::uint32_t>(task_.prompt.size());
  const std::uint32_t end = prompt + task_.tokens - (machine_.dfx.last_pass ? 0 : 1);
  if (position_ >= end) return {};
  if (position_ >= prompt) return {{result_.tokens.back()}, position_, true};
  const std::uint32_t rows = std::min(prompt - position_, makers_.front()->max_rows());
  const auto first = task_.prompt.begin() + position_;
  return {
      {first, first + rows}, position_, position_ + rows == prompt || machine_.dfx.prompt_logits};
}

RingRun::Step RingRun::text_step() {
  if (position_ == task_.texts[text_].size()) {
    position_ = 0;
    ++text_;
  }
  if (text_ == task_.texts.size()) return {};
  return {{task_.texts[text_][position_]}, position_, true};
}

void RingRun::take_logits(RingHost& host) {
  std::vector<hw::Half> logits;
  if (task_.gpt != nullptr && task_.on_logits) task_.on_logits(position_ - 1, this->logits());
  const bool in_prompt = position_ < task_.prompt.size();
  if (!task_.texts.empty() || in_prompt || result_.tokens.size() == task_.tokens) return;
  std::uint32_t token = 0;
  if (task_.sample) {
    logits = read_logits(host);
    if (task_.gpt != nullptr) token = task_.sample(logits);
  } else if (task_.gpt != nullptr) {
    token = largest();
  }
  if (result_.tokens.empty()) result_.first_token_ps = sc_core::sc_time_stamp().value();
  result_.tokens.push_back(token);
  if (task_.on_token) task_.on_token(token);
}

std::uint32_t RingRun::columns_of(std::size_t core) const {
  const auto& part = makers_[core]->layout().part.vocabulary;
  const std::uint32_t columns = makers_[core]->sizes().columns;
  const std::uint32_t end = std::min(part.end * columns, task_.shape.vocabulary);
  return end - std::min(part.begin * columns, end);
}

std::vector<hw::Half> RingRun::read_logits(RingHost& host) const {
  std::vector<hw::Half> all(task_.shape.vocabulary);
  std::vector<RingHost::Range> ranges;
  std::size_t done = 0;
  for (std::uint32_t i = 0; i < makers_.size(); ++i) {
    const std::uint64_t at = hw::dfx::addresses_of(machine_, i).vectors +
                             makers_[i]->registers().logits * sizeof(hw::Half);
    const std::uint32_t bytes = columns_of(i) * sizeof(hw::Half);
    if (bytes == 0) continue;
    ranges.push_back({at, reinterpret_cast<std::uint8_t*>(all.data() + done), bytes});
    done += columns_of(i);
  }
  host.read(ranges);
  return all;
}

std::vector<hw::Half> RingRun::logits() const {
  std::vector<hw::Half> all;
  for (std::size_t i = 0; i < makers_.size(); ++i) {
    const hw::Half* const own = system_->core(i).vector_data() + makers_[i]->registers().logits;
    all.insert(all.end(), own, own + columns_of(i));
  }
  return all;
}

std::uint32_t RingRun::largest() const {
  const PassMaker& maker = *makers_.front();
  const hw::Half* winner = system_->core(0).vector_data() + maker.registers().winners;
  const hw::Half* best = nullptr;
  for (std::size_t i = 0; i < makers_.size(); ++i, winner += maker.sizes().depth) {
    const bool has_columns = winner[3].bits != 0;
    if (!has_columns) continue;
    if (best == nullptr || hw::to_float(best[0]) < hw::to_float(winner[0])) best = winner;
  }
  return best[1].bits | static_cast<std::uint32_t>(best[2].bits) << 16;
}

Generation RingRun::result() const {
  Generation result = result_;
  const auto& ends = system_->host.ends();
  if (ends.size() > 1) result.last_pass_ps = ends.back() - ends[ends.size() - 2];
  result.host_ps = system_->host.host_ps();
  result.phases = system_->core(0).phases();
  result.weight_bytes = makers_.front()->layout().hbm.weight_bytes;
  result.hbm_bytes = makers_.front()->layout().hbm.bytes;
  result.hbm_read_bytes = system_->core(0).timing().hbm_bytes();
  for (std::size_t i = 0; system_->cores() > 1 && i < system_->cores(); ++i) {
    result.link_bytes.push_back(system_->link_bytes(i));
  }
  return result;
}

}  // namespace systole::testbench
