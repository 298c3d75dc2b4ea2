#pragma once

#include <verilated.h>
#include <verilated_fst_c.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "testbench/rtl/drive/model_view.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// Whether a model was built with --trace-fst.
template <typename Model, typename = void>
inline constexpr bool kTraceable = false;
template <typename Model>
inline constexpr bool kTraceable<
    Model, std::void_t<decltype(std::declval<Model&>().trace(std::declval<VerilatedFstC*>(), 0))>> =
    true;

/// Owns one Verilated block with clk_i and rst_ni, its context and, if asked for, its FST trace.
/// Each has its own context, so that blocks never share time, errors or seeds.
template <typename Model>
class VerilatedDut {
 public:
  explicit VerilatedDut(const RtlOptions& options) : view_(options.view) {
    context_->fatalOnError(false);  // an assertion must fail one test, not abort the process
    context_->errorLimit(kErrorLimit);
    context_->randReset(kRandomReset);
    context_->randSeed(static_cast<int>(options.seed));
    context_->traceEverOn(kTraceable<Model> && !options.wave.empty());
    model_ = std::make_unique<Model>(context_.get(), "dut");
    if constexpr (kTraceable<Model>) {
      if (!options.wave.empty()) {
        trace_ = std::make_unique<VerilatedFstC>();
        model_->trace(trace_.get(), kAllLevels);
        if (view_) view_->attach(*trace_->spTrace());
        trace_->open(options.wave.c_str());
        if (!trace_->isOpen()) throw std::runtime_error(options.wave + ": cannot be written");
      }
    }
    reset();
  }
  VerilatedDut(const VerilatedDut&) = delete;
  VerilatedDut& operator=(const VerilatedDut&) = delete;
  ~VerilatedDut() {
    make_current();
    model_->final();
    if (trace_) trace_->close();
    model_.reset();  // while the context is current: the scopes of the model leave that one
  }

  Model* operator->() { return model_.get(); }
  Model& operator*() { return *model_; }

  // What the waveform shows of the model, if there is one: see ModelView.
  void show_operation(const std::int32_t* expected, std::uint64_t contract) {
    if (view_) view_->begin(expected, contract);
  }
  void show_cycle(std::uint64_t cycle) {
    if (view_) view_->set_cycle(cycle);
  }
  void show_beat(std::size_t first, std::size_t count) {
    if (view_) view_->set_beat(first, count);
  }
  void show_words(const std::int32_t* words, std::size_t count) {
    if (view_ && words != nullptr) view_->set_words(words, count);
  }
  [[nodiscard]] bool is_shown() const { return view_ != nullptr; }

  /// Clock cycles since the last reset.
  [[nodiscard]] std::uint64_t cycles() const { return cycles_; }
  /// True once an assertion has fired.
  [[nodiscard]] bool failed() const { return context_->gotError() || context_->errorCount() > 0; }

  void reset() {
    // Asserted after a first evaluation, because asynchronous resets act on the edge.
    model_->rst_ni = 1;
    half_period(0);
    model_->rst_ni = 0;
    for (int i = 0; i < 2; ++i) tick();
    model_->rst_ni = 1;
    settle();
    cycles_ = idle_ = 0;
  }

  /// Lets the outputs of this cycle follow its inputs.
  void settle() {
    make_current();
    model_->clk_i = 0;
    model_->eval();
  }

  /// The rising edge that ends this cycle, and the registers' new values.
  void tick() {
    half_period(0);
    half_period(1);
    ++cycles_;
    if (view_) view_->end_cycle();
  }

  /// The operation is over, and the inputs are those of a block without one.
  void end_operation() {
    if (!trace_ || !view_) return;
    const auto end = view_->end_operation();
    if (!end) return;
    settle();
    trace_->dump(*end);
  }

  /// Ends a cycle whose inputs have settled. `moved`: a beat was taken, delivered, or held by the
  /// testbench. Throws std::runtime_error once nothing has moved for longer than any block takes
  /// for a row of 65536 elements.
  void end_cycle(bool moved) {
    if (trace_ || view_) {
      tick();
    } else {  // saves an evaluation
      make_current();
      model_->clk_i = 1;
      model_->eval();
      context_->timeInc(2 * kHalfPeriod);
      ++cycles_;
    }
    idle_ = moved ? 0 : idle_ + 1;
    if (idle_ > kHang) throw std::runtime_error(std::string(model_->modelName()) + " hangs");
  }

 private:
  static constexpr std::uint64_t kHang = 100'000;
  static constexpr int kErrorLimit = 1000;
  static constexpr int kRandomReset = 2;
  static constexpr int kAllLevels = 99;
  static constexpr std::uint64_t kHalfPeriod = 500;  ///< ps: a clock of 1 GHz

  /// Assertions count in the thread's current context, which may be that of another block.
  void make_current() { Verilated::threadContextp(context_.get()); }

  void half_period(int level) {
    make_current();
    model_->clk_i = static_cast<CData>(level);
    model_->eval();
    if (trace_) dump(level);
    context_->timeInc(kHalfPeriod);
  }

  void dump(int level) {
    if (!view_ || !view_->has_time()) {
      trace_->dump(context_->time());
    } else if (const auto time = view_->edge_ps(level)) {
      trace_->dump(*time);
    }
  }

  const std::shared_ptr<ModelView> view_;
  std::unique_ptr<VerilatedContext> context_ = std::make_unique<VerilatedContext>();
  std::unique_ptr<Model> model_;
  std::unique_ptr<VerilatedFstC> trace_;
  std::uint64_t cycles_ = 0;
  std::uint64_t idle_ = 0;
};

/// A block in the flavour that the options ask for; they are the last argument of its constructor.
template <typename Interface, typename Fast, typename Checked, typename... Arguments>
std::unique_ptr<Interface> make_build(const RtlOptions& options, const Arguments&... arguments) {
  if (options.use_checked()) return std::make_unique<Checked>(arguments..., options);
  return std::make_unique<Fast>(arguments..., options);
}

}  // namespace systole::testbench
