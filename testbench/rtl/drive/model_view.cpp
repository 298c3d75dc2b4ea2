#include "testbench/rtl/drive/model_view.h"

#include <memory>

#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {
namespace {

constexpr int kWordBits = 32;

}  // namespace

// Verilator counts a signal's place in words of 32 bits; every signal here is one word, because it
// writes wider ones to places that may not be aligned for them. `emit` gets the place and the
// value.
template <typename Emit>
void ModelView::visit(Emit emit) const {
  std::uint32_t place = 0;
  for (const IData counter : {operation_, cycle_, contract_}) emit(place++, counter);
  for (const IData output : outputs_) emit(place++, output);
}

void ModelView::attach(VerilatedFst& trace) {
  trace.addInitCb(
      [](void* self, VerilatedFst* fst, std::uint32_t code) {
        auto& view = *static_cast<ModelView*>(self);
        view.code_ = code;
        std::vector<std::string> names = {"operation", "cycle", "contract"};
        for (std::size_t i = 0; i < view.outputs_.size(); ++i) {
          names.push_back("output_" + std::to_string(i));
        }
        fst->scopeEscape(' ');
        fst->pushNamePrefix("model ");
        for (const std::string& name : names) {
          fst->declBus(code++, name.c_str(), -1, FST_VD_IMPLICIT, FST_VT_VCD_WIRE, false, -1,
                       kWordBits - 1, 0);
        }
        fst->popNamePrefix();
        fst->scopeEscape('.');
      },
      this);
  trace.addFullCb(
      [](void* self, VerilatedFst::Buffer* buffer) {
        const auto& view = *static_cast<ModelView*>(self);
        std::uint32_t* const old = buffer->oldp(view.code_);
        view.visit([&](std::uint32_t place, IData value) {
          buffer->fullIData(old + place, value, kWordBits);
        });
      },
      this);
  trace.addChgCb(
      [](void* self, VerilatedFst::Buffer* buffer) {
        const auto& view = *static_cast<ModelView*>(self);
        std::uint32_t* const old = buffer->oldp(view.code_);
        view.visit([&](std::uint32_t place, IData value) {
          buffer->chgIData(old + place, value, kWordBits);
        });
      },
      this);
}

void ModelView::begin(const std::int32_t* expected, std::uint64_t contract) {
  expected_ = expected;
  contract_ = static_cast<IData>(contract);
  cycle_ = 0;
  ++operation_;
  if (!time_) return;
  static_cast<void>(end_operation());
  first_cycle_ = time_->cycle();
  shown_ = first_cycle_ != SystemTime::kNone && time_->edge_ps(first_cycle_) >= free_ps_;
}

void ModelView::set_cycle(std::uint64_t cycle) {
  cycle_ = static_cast<IData>(cycle);
  in_cycle_ = true;
  now_ = first_cycle_ + cycle - 1;
}

std::optional<std::uint64_t> ModelView::edge_ps(int level) const {
  if (!shown_ || !in_cycle_) return std::nullopt;
  const std::uint64_t begin = time_->edge_ps(now_);
  return level == 0 ? begin : (begin + time_->edge_ps(now_ + 1)) / 2;
}

std::optional<std::uint64_t> ModelView::end_operation() {
  if (!shown_) return std::nullopt;
  shown_ = in_cycle_ = false;
  const std::uint64_t end = time_->edge_ps(now_ + 1);
  free_ps_ = end + 1;
  return end;
}

void ModelView::set_beat(std::size_t first, std::size_t count) {
  set_words(expected_ + (expected_ == nullptr ? 0 : first), expected_ == nullptr ? 0 : count);
}

void ModelView::set_words(const std::int32_t* words, std::size_t count) {
  for (std::size_t lane = 0; lane < outputs_.size(); ++lane) {
    outputs_[lane] = lane < count ? static_cast<IData>(words[lane]) : 0;
  }
}

std::string RtlOptions::wave_of(const std::string& block) const {
  const auto place = places.find(block);
  if (place != places.end()) return place->second;
  return wave.empty() ? "" : wave + "." + block + ".fst";
}

RtlOptions RtlOptions::for_block(const std::string& block, std::size_t outputs) const {
  const std::string path = wave_of(block);
  RtlOptions one{checked, path, seed};
  one.time = time;
  one.window = window;
  if (!path.empty()) one.view = std::make_shared<ModelView>(outputs, time);
  return one;
}

}  // namespace systole::testbench
