#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "testbench/rtl/attention/attention_line_rtl.h"
#include "testbench/rtl/attention/line_work.h"
#include "testbench/rtl/drive/back_pressure.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/rtl_options.h"
#include "testbench/rtl/drive/verilated_dut.h"

/// Drives rtl/attention/systole_sparser_line.sv or systole_denser_line.sv, or RTL with their ports.
namespace systole::testbench {

/// What starts a sparser line: items and indices.
template <typename Model>
class SparserWalk {
 public:
  SparserWalk(VerilatedDut<Model>& dut, const LineWork& work) : dut_(dut), work_(work) {
    dut_->step_i = static_cast<SData>(work.cell_step);
  }
  /// `begins`: the operation begins with this cycle, so its first item is offered.
  void offer(bool begins, BackPressureInjector* injector) {
    item_.offer(dut_->item_request_o && next_ < work_.items.size(), begins ? nullptr : injector,
                [this] {
                  const LineWork::Item& item = work_.items[next_];
                  dut_->item_i = item.item;
                  dut_->item_group_i = static_cast<CData>(item.group);
                  dut_->item_begin_i = item.begin;
                  dut_->item_end_i = item.end;
                  dut_->item_last_i = next_ + 1 == work_.items.size();
                });
    index_.offer(dut_->index_request_o, injector, [this] {
      if (dut_->index_cell_o >= work_.index_count) {
        throw std::runtime_error("sparser_line RTL: wants an index that is none");
      }
      dut_->index_i = work_.indices[dut_->index_cell_o];
    });
    dut_->item_valid_i = item_.offered();
    dut_->index_valid_i = index_.offered();
  }
  [[nodiscard]] bool withheld() const {
    return (dut_->item_request_o && !item_.offered() && next_ < work_.items.size()) ||
           (dut_->index_request_o && !index_.offered());
  }
  void take() {
    if (item_.take(dut_->item_ready_o)) ++next_;
    index_.take(dut_->index_ready_o);
  }

 private:
  VerilatedDut<Model>& dut_;
  const LineWork& work_;
  OfferedBeat item_, index_;
  std::size_t next_ = 0;
};

/// What starts a denser line.
template <typename Model>
class DenserWalk {
 public:
  DenserWalk(VerilatedDut<Model>& dut, const LineWork& work, std::size_t macs) : dut_(dut) {
    const std::size_t groups = work.spmm ? work.words(macs) : 1;
    dut_->columns_i = static_cast<SData>(work.columns);
    dut_->rows_i = static_cast<SData>(work.rows);
    dut_->groups_i = static_cast<CData>(groups);
    dut_->first_row_i = work.items.front().item;
    dut_->first_group_i = static_cast<CData>(work.items.front().group);
    dut_->step_row_i = static_cast<SData>(work.item_step / groups);
    dut_->step_group_i = static_cast<CData>(work.item_step % groups);
  }
  void offer(bool begins, BackPressureInjector* /*injector*/) { dut_->walk_valid_i = begins; }
  [[nodiscard]] bool withheld() const { return false; }
  void take() {
    if (dut_->walk_valid_i && !dut_->walk_ready_o) {
      throw std::runtime_error("denser_line RTL: does not begin");
    }
  }

 private:
  VerilatedDut<Model>& dut_;
};

/// One phase of a line in the RTL.
template <typename Model, typename Walk>
class LineOperation {
 public:
  LineOperation(const char* block, VerilatedDut<Model>& dut, std::size_t macs, const LineWork& work,
                Walk walk, const BackPressure& pressure)
      : block_(block), dut_(dut), macs_(macs), work_(work), walk_(walk), injector_(pressure) {
    const std::size_t tail = (work.features - 1) % macs + 1;
    dut_->spmm_i = work.spmm;
    dut_->words_i = static_cast<CData>(work.spmm ? 1 : work.words(macs));
    dut_->tail_mask_i = static_cast<CData>((1U << tail) - 1);
  }

  /// `results`: see AttentionLineRtl. `expected`: the same by the model for the waveform, or null.
  RtlCycles run(std::int32_t* results, const std::int32_t* expected) {
    while (delivered_ < work_.results()) cycle(results, expected);
    dut_->hold_valid_i = dut_->word_valid_i = 0;
    dut_.end_operation();
    return cycles_;
  }

 private:
  static constexpr std::uint8_t kJunk = 0x5a;

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(std::string(block_) + " RTL: " + what);
  }

  template <typename Port>
  void drive_word(Port& port, const LineWork::Rows& rows, std::size_t row, std::size_t word) {
    const std::size_t first = word * macs_;
    if (row >= rows.count || first >= work_.features) fail("wants a word that is none");
    const std::int8_t* const data =
        rows.data + (rows.order == nullptr ? row : rows.order[row]) * rows.pitch + first;
    for (std::size_t mac = 0; mac < macs_; ++mac) {
      const bool used = first + mac < work_.features;
      set_lane<8>(port, mac, used ? static_cast<std::uint8_t>(data[mac]) : kJunk);
    }
  }

  void offer() {
    walk_.offer(cycles_.cycles == 0, &injector_);
    hold_.offer(dut_->hold_request_o, &injector_, [this] {
      drive_word(dut_->hold_i, work_.hold, dut_->hold_item_o, dut_->hold_word_o);
    });
    word_.offer(dut_->word_request_o, &injector_, [this] {
      drive_word(dut_->word_i, work_.stream, dut_->word_entry_o, dut_->word_o);
      if (!work_.spmm) return;
      if (step_ == work_.steps.size()) fail("wants a code too many");
      const LineWork::Step& step = work_.steps[step_];
      if (dut_->word_item_o != step.item || dut_->word_entry_o != step.entry) {
        fail("wants the code of another cell");
      }
      dut_->code_i = work_.codes[step.cell];
    });
    dut_->hold_valid_i = hold_.offered();
    dut_->word_valid_i = word_.offered();
    dut_->result_ready_i = !injector_.refuses();
  }

  void cycle(std::int32_t* results, const std::int32_t* expected) {
    offer();
    dut_.settle();
    const bool stalled = (dut_->result_valid_o && !dut_->result_ready_i) || walk_.withheld() ||
                         (dut_->hold_request_o && !hold_.offered()) ||
                         (dut_->word_request_o && !word_.offered());
    if (stalled != (dut_->stalled_o != 0)) fail("stalls without a reason, or does not");
    cycles_.stalled += stalled ? 1 : 0;
    ++cycles_.cycles;
    dut_.show_cycle(cycles_.cycles);
    walk_.take();
    hold_.take(dut_->hold_ready_o);
    const bool worked = word_.take(dut_->word_ready_o);
    if (worked && work_.spmm) ++step_;
    const bool delivers = dut_->result_valid_o && dut_->result_ready_i;
    if (delivers) collect(results, expected);
    dut_.end_cycle(worked || delivers);
  }

  void collect(std::int32_t* results, const std::int32_t* expected) {
    const std::size_t width = work_.spmm ? macs_ : 1;
    if (work_.spmm) {
      const LineWork::Item& item = work_.items[delivered_];
      if (dut_->result_item_o != item.item || dut_->result_group_o != item.group) {
        fail("delivers another group");
      }
    } else {
      const LineWork::Step& step = work_.steps[delivered_];
      if (dut_->result_item_o != step.item || dut_->result_entry_o != step.entry) {
        fail("delivers another score");
      }
    }
    for (std::size_t lane = 0; lane < macs_; ++lane) {
      const auto value = static_cast<std::int32_t>(get_lane<32>(dut_->result_o, lane));
      if (lane < width) {
        results[delivered_ * width + lane] = value;
      } else if (value != 0) {
        fail("an idle lane is not 0");
      }
    }
    if (expected != nullptr) dut_.show_words(expected + delivered_ * width, width);
    ++delivered_;
  }

  const char* block_;
  VerilatedDut<Model>& dut_;
  const std::size_t macs_;
  const LineWork& work_;
  Walk walk_;
  BackPressureInjector injector_;
  OfferedBeat hold_, word_;
  std::size_t step_ = 0, delivered_ = 0;
  RtlCycles cycles_;
};

/// What starts the line of a build.
template <bool kSparser, typename Model>
auto walk_of(VerilatedDut<Model>& dut, const LineWork& work) {
  if constexpr (kSparser) {
    return SparserWalk<Model>(dut, work);
  } else {
    return DenserWalk<Model>(dut, work, kLineMacs);
  }
}

template <typename Model, bool kSparser>
class LineUnit final : public AttentionLineRtl {
 public:
  explicit LineUnit(const RtlOptions& options) : dut_(options) {}

  [[nodiscard]] const char* block() const override {
    return kSparser ? "sparser_line" : "denser_line";
  }
  std::vector<std::int32_t> run(const LineWork& work, RtlCycles& cycles,
                                const std::int32_t* expected,
                                const BackPressure& pressure) override {
    if (work.words(kLineMacs) > kMaxWords) {
      throw hw::InputError(std::string(block()) + " RTL: rows of " + std::to_string(work.features) +
                           " features, expected at most " + std::to_string(kMaxWords * kLineMacs));
    }
    std::vector<std::int32_t> results(work.results() * (work.spmm ? kLineMacs : 1));
    cycles = LineOperation(block(), dut_, kLineMacs, work, walk_of<kSparser>(dut_, work), pressure)
                 .run(results.data(), expected);
    return results;
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench
