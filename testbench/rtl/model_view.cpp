#include "testbench/rtl/model_view.h"

#include <memory>

#include "testbench/rtl/rtl_options.h"

namespace systole::testbench {
namespace {

constexpr int kWordBits = 32;
constexpr int kCycleBits = 64;

}  // namespace

// Verilator counts a signal's place in words of 32 bits. `emit` gets the place and the value.
template <typename Emit>
void ModelView::visit(Emit emit) const {
  std::uint32_t place = 0;
  emit(place, operation_);
  place += 1;
  emit(place, cycle_);
  place += 2;
  emit(place, contract_);
  place += 2;
  for (const IData output : outputs_) emit(place++, output);
}

void ModelView::attach(VerilatedFst& trace) {
  trace.addInitCb(
      [](void* self, VerilatedFst* fst, std::uint32_t code) {
        auto& view = *static_cast<ModelView*>(self);
        view.code_ = code;
        const auto quad = [&](std::uint32_t place, const char* name) {
          fst->declQuad(code + place, name, -1, FST_VD_IMPLICIT, FST_VT_VCD_WIRE, false, -1,
                        kCycleBits - 1, 0);
        };
        const auto word = [&](std::uint32_t place, const std::string& name) {
          fst->declBus(code + place, name.c_str(), -1, FST_VD_IMPLICIT, FST_VT_VCD_WIRE, false, -1,
                       kWordBits - 1, 0);
        };
        fst->scopeEscape(' ');
        fst->pushNamePrefix("model ");
        word(0, "operation");
        quad(1, "cycle");
        quad(3, "contract");
        for (std::size_t i = 0; i < view.outputs_.size(); ++i) {
          word(static_cast<std::uint32_t>(5 + i), "output_" + std::to_string(i));
        }
        fst->popNamePrefix();
        fst->scopeEscape('.');
      },
      this);
  trace.addFullCb(
      [](void* self, VerilatedFst::Buffer* buffer) {
        const auto& view = *static_cast<ModelView*>(self);
        std::uint32_t* const old = buffer->oldp(view.code_);
        view.visit([&](std::uint32_t place, auto value) {
          if constexpr (sizeof value == sizeof(QData)) {
            buffer->fullQData(old + place, value, kCycleBits);
          } else {
            buffer->fullIData(old + place, value, kWordBits);
          }
        });
      },
      this);
  trace.addChgCb(
      [](void* self, VerilatedFst::Buffer* buffer) {
        const auto& view = *static_cast<ModelView*>(self);
        std::uint32_t* const old = buffer->oldp(view.code_);
        view.visit([&](std::uint32_t place, auto value) {
          if constexpr (sizeof value == sizeof(QData)) {
            buffer->chgQData(old + place, value, kCycleBits);
          } else {
            buffer->chgIData(old + place, value, kWordBits);
          }
        });
      },
      this);
}

void ModelView::begin(const std::int32_t* expected, std::uint64_t contract) {
  expected_ = expected;
  contract_ = contract;
  cycle_ = 0;
  ++operation_;
}

void ModelView::set_beat(std::size_t first, std::size_t count) {
  set_words(expected_ + (expected_ == nullptr ? 0 : first), expected_ == nullptr ? 0 : count);
}

void ModelView::set_words(const std::int32_t* words, std::size_t count) {
  for (std::size_t lane = 0; lane < outputs_.size(); ++lane) {
    outputs_[lane] = lane < count ? static_cast<IData>(words[lane]) : 0;
  }
}

RtlOptions RtlOptions::for_block(const std::string& block, std::size_t outputs) const {
  const std::string path = wave_of(block);
  return {checked, path, seed, path.empty() ? nullptr : std::make_shared<ModelView>(outputs)};
}

}  // namespace systole::testbench
