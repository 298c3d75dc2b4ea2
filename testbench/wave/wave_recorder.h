#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "testbench/wave/wave_file.h"
#include "tlm/common/signals.h"

namespace systole::testbench {

/// Records signals of two kinds in a file: variables, added by sc_trace(), which it looks at after
/// every time step of the kernel, and those of a SignalRecorder, whose changes modules put in when
/// they know them. Keeps to a window.
///
/// Time is in ps. A variable of unsigned type that holds its type's largest value has none at the
/// moment: it is recorded as high impedance, which viewers draw as an empty line. A value beyond
/// the signal's width is recorded as unknown. Other types than bool and the unsigned integers are
/// left out, with a warning.
class WaveRecorder final : public sc_core::sc_trace_file, public tlm_model::SignalRecorder {
 public:
  struct Limits {
    std::uint64_t from_ps = 0;
    std::uint64_t to_ps = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
  };

  /// `before_look` is called before each look at the variables; nothing will change before
  /// `settled` any more.
  WaveRecorder(std::unique_ptr<WaveFile> file, const Limits& limits,
               std::function<void()> before_look, std::function<std::uint64_t()> settled);
  WaveRecorder(const WaveRecorder&) = delete;
  WaveRecorder& operator=(const WaveRecorder&) = delete;
  /// Without a commit() there is no file.
  ~WaveRecorder() override;

  /// Ends the recording at the present time, once that has settled.
  void stop();
  /// stop(), and puts the file in place. Throws InputError if that fails.
  void commit();

  [[nodiscard]] std::vector<RecordedSignal> signals() const;
  [[nodiscard]] const std::vector<std::string>& initiators() const noexcept { return initiators_; }
  /// The recorded stretch, so far.
  [[nodiscard]] std::uint64_t begin_ps() const noexcept { return begin_; }
  [[nodiscard]] std::uint64_t end_ps() const noexcept { return end_; }
  /// The recording ended because the file had reached its limit.
  [[nodiscard]] bool is_full() const noexcept { return full_; }

  // SignalRecorder
  Signal add_signal(const std::string& name, unsigned width, Kind kind) override;
  void hold(Signal signal, std::uint64_t from, std::uint64_t to, std::uint64_t value) override;
  void set(Signal signal, std::uint64_t at, std::uint64_t value) override;
  void add(Signal signal, std::uint64_t at, std::int64_t change) override;
  void name_initiators(const std::vector<std::string>& names) override { initiators_ = names; }

  // sc_trace_file
  void trace(const bool& object, const std::string& name) override { look_at(object, name, 1); }
  void trace(const unsigned char& object, const std::string& name, int width) override {
    look_at(object, name, width);
  }
  void trace(const unsigned short& object, const std::string& name, int width) override {
    look_at(object, name, width);
  }
  void trace(const unsigned int& object, const std::string& name, int width) override {
    look_at(object, name, width);
  }
  void trace(const unsigned long& object, const std::string& name, int width) override {
    look_at(object, name, width);
  }
  void trace(const sc_dt::uint64& object, const std::string& name, int width) override {
    look_at(object, name, width);
  }
  void trace(const unsigned int& object, const std::string& name, const char** texts) override;

  void trace(const char&, const std::string& name, int) override { refuse(name); }
  void trace(const short&, const std::string& name, int) override { refuse(name); }
  void trace(const int&, const std::string& name, int) override { refuse(name); }
  void trace(const long&, const std::string& name, int) override { refuse(name); }
  void trace(const sc_dt::int64&, const std::string& name, int) override { refuse(name); }
  void trace(const sc_core::sc_event&, const std::string& name) override { refuse(name); }
  void trace(const sc_core::sc_time&, const std::string& name) override { refuse(name); }
  void trace(const float&, const std::string& name) override { refuse(name); }
  void trace(const double&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_bit&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_logic&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_int_base&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_uint_base&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_signed&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_unsigned&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_fxval&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_fxval_fast&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_fxnum&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_fxnum_fast&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_bv_base&, const std::string& name) override { refuse(name); }
  void trace(const sc_dt::sc_lv_base&, const std::string& name) override { refuse(name); }

  void write_comment(const std::string& comment) override;
  /// The unit is 1 ps, whatever is asked for.
  void set_time_unit(double, sc_core::sc_time_unit) override {}

 private:
  /// Values that hold of a kLatest, kHighest or kUnion.
  struct Held {
    std::uint32_t count = 0;
    std::uint64_t latest = 0;
    std::uint64_t values = 0;           ///< bit i: value i; of a kLatest none
    std::vector<std::uint32_t> counts;  ///< by value; of a kLatest none
  };
  struct Variable {
    Kind kind = Kind::kNumber;
    std::uint64_t number = 0;  ///< kNumber
    Held held;
    bool touched = false;  ///< by the changes of the time in progress
  };
  /// A variable to look at.
  struct Looked {
    Signal signal;
    const void* at;
    std::uint8_t bytes;
    bool is_bool;
    std::uint64_t last;
  };
  enum class Verb : std::uint8_t { kSet, kAdd, kBegin, kEnd };
  struct Change {
    std::uint64_t at, value;
    Signal signal;
    Verb verb;
  };

  template <typename T>
  void look_at(const T& object, const std::string& name, int width);
  void refuse(const std::string& name);
  void cycle(bool delta_cycle) override;
  void look(std::uint64_t now);
  /// Moves the changes from before `horizon` to `sorted_`, in the order of time; those of a time as
  /// they came.
  void sort_until(std::uint64_t horizon);
  /// Writes all changes from before `horizon`.
  void flush(std::uint64_t horizon);
  void apply(const Change& change);
  void begin(std::uint64_t time);
  /// Writes what the changes of a time made of the signals.
  void write_time(std::uint64_t time);
  [[nodiscard]] RecordedValue value_of(Signal signal) const;
  void finish();

  const std::unique_ptr<WaveFile> file_;
  const Limits limits_;
  const std::function<void()> before_look_;
  const std::function<std::uint64_t()> settled_;
  std::vector<RecordedSignal> signals_;
  std::vector<Variable> variables_;   ///< by signal
  std::vector<RecordedValue> shown_;  ///< by signal
  std::vector<Looked> looked_;
  std::vector<Signal> touched_;
  std::vector<Change> sorted_;
  std::vector<std::size_t> piece_ends_;  ///< of sort_until()
  std::vector<Change> changes_;          ///< not written yet
  std::size_t enough_;                   ///< so many are worth a flush
  std::vector<std::string> initiators_;
  std::uint64_t stop_at_;  ///< end of the window, or of the recording
  std::uint64_t begin_ = 0, end_ = 0;
  std::uint64_t written_ = 0;  ///< time of the last changes
  bool begun_ = false;
  bool looks_ = true;  ///< at variables
  bool full_ = false;
};

}  // namespace systole::testbench
