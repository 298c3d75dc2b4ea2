#include "testbench/generation/ring_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/round.h"
#include "hw/ring/ring_map.h"
#include "mapper/ring/exchanges.h"
#include "mapper/ring/image.h"
#include "testbench/rtl/engine/engines.h"

namespace systole::testbench {
namespace {

using mapper::dfx::Pass;
using mapper::dfx::PassMaker;
using mapper::dfx::PassRow;
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

/// Register element of the logits of a row; `number`: which of the rows with logits.
std::uint32_t logits_of(const PassMaker& maker, std::uint32_t number) {
  return maker.registers().logits + number * maker.registers().logits_pitch;
}

}  // namespace

RingRun::RingRun(const hw::Machine& machine, const GenerationTask& task)
    : machine_(machine), task_(task) {
  check_text(task);
  for (std::uint32_t i = 0; i < machine.dfx.cores; ++i) {
    makers_.push_back(std::make_unique<PassMaker>(task.shape, machine, i, task.batch));
  }
  generated_.resize(task.batch);
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

void RingRun::restart() {
  for (std::vector<std::uint32_t>& text : generated_) text.clear();
  first_token_ps_ = 0;
  window_ = 0;
  position_ = turn_ = 0;
  step_ = {};
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
    std::vector<std::uint8_t> bytes(ddr.size() * sizeof(hw::Half));
    std::memcpy(bytes.data(), ddr.data(), bytes.size());
    piece.bytes = std::move(bytes);
  }
  return image;
}

std::vector<const Pass*> RingRun::next(RingHost& host) {
  std::vector<const Pass*> next;
  if (wave_ != nullptr && result_.passes != 0) wave_->end_inference();
  for (std::size_t r = step_.first_logits; r < step_.rows.size(); ++r) {
    take_logits(host, step_.rows[r], static_cast<std::uint32_t>(r - step_.first_logits));
  }
  step_ = next_step();
  if (step_.rows.empty()) return next;
  for (std::size_t i = 0; i < makers_.size(); ++i) {
    passes_[i] = makers_[i]->make(step_.rows, step_.first_logits);
    next.push_back(&passes_[i]);
  }
  ++result_.passes;
  if (task_.on_pass) task_.on_pass(step_.rows.front().position, passes_);
  if (task_.progress) task_.progress(result_.passes);
  return next;
}

std::uint32_t RingRun::max_rows() const {
  std::uint32_t rows = mapper::dfx::kMostRows;
  for (const auto& maker : makers_) rows = std::min(rows, maker->max_rows());
  return rows;
}

std::uint32_t RingRun::texts() const {
  if (task_.texts.empty()) return task_.batch;
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(task_.batch, task_.texts.size() - window_));
}

std::uint32_t RingRun::length() const {
  if (!task_.texts.empty()) return static_cast<std::uint32_t>(task_.texts[window_].size());
  return static_cast<std::uint32_t>(task_.prompt.size()) + task_.tokens -
         (machine_.dfx.last_pass ? 0 : 1);
}

std::uint32_t RingRun::token_of(std::uint32_t text, std::uint32_t position) const {
  if (!task_.texts.empty()) return task_.texts[window_ + text][position];
  const auto prompt = static_cast<std::uint32_t>(task_.prompt.size());
  return position < prompt ? task_.prompt[position] : generated_[text][position - prompt];
}

RingRun::Step RingRun::next_step() {
  if (turn_ == texts()) {
    turn_ = 0;
    ++position_;
  }
  if (position_ == length()) {
    if (task_.texts.empty()) return {};
    window_ += texts();
    position_ = 0;
    if (window_ == task_.texts.size()) return {};
  }
  const auto prompt = static_cast<std::uint32_t>(task_.prompt.size());
  const bool in_prompt = task_.texts.empty() && position_ < prompt;
  if (in_prompt && task_.batch == 1 && machine_.dfx.prefill == hw::dfx::Prefill::kBatched) {
    Step step = prompt_step();
    position_ += static_cast<std::uint32_t>(step.rows.size()) - 1;
    turn_ = 1;
    return step;
  }
  Step step;
  for (; turn_ < texts() && step.rows.size() < max_rows(); ++turn_) {
    step.rows.push_back({token_of(turn_, position_), position_, turn_});
  }
  const bool logits = !in_prompt || position_ + 1 == prompt || machine_.dfx.prompt_logits;
  step.first_logits = logits ? 0 : step.rows.size();
  return step;
}

RingRun::Step RingRun::prompt_step() const {
  const auto prompt = static_cast<std::uint32_t>(task_.prompt.size());
  const std::uint32_t end = std::min(prompt, position_ + max_rows());
  Step step;
  for (std::uint32_t i = position_; i < end; ++i) step.rows.push_back({task_.prompt[i], i, 0});
  const bool logits = end == prompt || machine_.dfx.prompt_logits;
  step.first_logits = step.rows.size() - (logits ? 1 : 0);
  return step;
}

void RingRun::take_logits(RingHost& host, const PassRow& row, std::uint32_t number) {
  std::vector<hw::Half> logits;
  if (task_.gpt != nullptr && task_.on_logits) {
    task_.on_logits(row.position, this->logits(number));
  }
  std::vector<std::uint32_t>& tokens = generated_[row.text];
  const bool in_prompt = row.position + 1 < task_.prompt.size();
  if (!task_.texts.empty() || in_prompt || tokens.size() == task_.tokens) return;
  std::uint32_t token = 0;
  if (task_.sample) {
    logits = read_logits(host, number);
    if (task_.gpt != nullptr) token = task_.sample(logits);
  } else if (task_.gpt != nullptr) {
    token = largest(number);
  }
  if (row.text == 0 && tokens.empty()) {
    first_token_ps_ = sc_core::sc_time_stamp().value();
    if (result_.first_token_ps == 0) result_.first_token_ps = first_token_ps_;
  }
  tokens.push_back(token);
  if (row.text == 0 && task_.on_token) task_.on_token(token);
}

std::uint32_t RingRun::columns_of(std::size_t core) const {
  const auto& part = makers_[core]->layout().part.vocabulary;
  const std::uint32_t columns = makers_[core]->sizes().columns;
  const std::uint32_t end = std::min(part.end * columns, task_.shape.vocabulary);
  return end - std::min(part.begin * columns, end);
}

std::vector<hw::Half> RingRun::read_logits(RingHost& host, std::uint32_t number) const {
  std::vector<hw::Half> all(task_.shape.vocabulary);
  std::vector<RingHost::Range> ranges;
  std::size_t done = 0;
  for (std::uint32_t i = 0; i < makers_.size(); ++i) {
    const std::uint64_t at = hw::dfx::addresses_of(machine_, i).vectors +
                             logits_of(*makers_[i], number) * sizeof(hw::Half);
    const std::uint32_t bytes = columns_of(i) * sizeof(hw::Half);
    if (bytes == 0) continue;
    ranges.push_back({at, reinterpret_cast<std::uint8_t*>(all.data() + done), bytes});
    done += columns_of(i);
  }
  host.read(ranges);
  return all;
}

std::vector<hw::Half> RingRun::logits(std::uint32_t number) const {
  std::vector<hw::Half> all;
  for (std::size_t i = 0; i < makers_.size(); ++i) {
    const hw::Half* const own = system_->core(i).vector_data() + logits_of(*makers_[i], number);
    all.insert(all.end(), own, own + columns_of(i));
  }
  return all;
}

std::uint32_t RingRun::largest(std::uint32_t number) const {
  const PassMaker& maker = *makers_.front();
  const hw::Half* winner = system_->core(0).vector_data() + maker.registers().winners +
                           number * maker.registers().logits_pitch;
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
  result.tokens = generated_.front();
  result.others.assign(generated_.begin() + 1, generated_.end());
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
