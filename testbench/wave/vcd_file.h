#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <systemc>
#include <vector>

#include "base/atomic_file.h"

namespace systole::testbench {

/// A value change dump of unsigned variables, a SystemC trace file: sc_trace() adds variables, and
/// the kernel calls it after every time step. In place of SystemC's own writer because this one
/// appears whole or not at all, notices a full disk, is the same for the same run (no date), keeps
/// to a window, and needs a third of the bytes.
///
/// Time is in ps. A variable of unsigned type that holds its type's largest value has none at the
/// moment: it is recorded as high impedance, which viewers draw as an empty line. A value beyond
/// the variable's width is recorded as unknown. Other types than bool and the unsigned integers
/// are left out, with a warning.
class VcdFile final : public sc_core::sc_trace_file {
 public:
  struct Limits {
    std::uint64_t from_ps = 0;
    std::uint64_t to_ps = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max();
  };
  struct Signal {
    std::string name;  ///< dotted path
    unsigned width;    ///< bits
  };

  /// Throws InputError if `path` cannot be written. `before_look` is called before each look at
  /// the variables.
  VcdFile(const std::string& path, const Limits& limits, std::function<void()> before_look);
  VcdFile(const VcdFile&) = delete;
  VcdFile& operator=(const VcdFile&) = delete;
  /// Without a commit() there is no file.
  ~VcdFile() override;

  /// Ends the recording at the present time.
  void stop();
  /// stop(), and puts the file in place. Throws InputError if that fails.
  void commit();

  [[nodiscard]] std::vector<Signal> signals() const;
  /// The recorded stretch, so far.
  [[nodiscard]] std::uint64_t begin_ps() const noexcept { return begin_; }
  [[nodiscard]] std::uint64_t end_ps() const noexcept { return end_; }
  /// The recording ended because the file had reached its limit.
  [[nodiscard]] bool is_full() const noexcept { return full_; }

  void trace(const bool& object, const std::string& name) override { add(object, name, 1); }
  void trace(const unsigned char& object, const std::string& name, int width) override {
    add(object, name, width);
  }
  void trace(const unsigned short& object, const std::string& name, int width) override {
    add(object, name, width);
  }
  void trace(const unsigned int& object, const std::string& name, int width) override {
    add(object, name, width);
  }
  void trace(const unsigned long& object, const std::string& name, int width) override {
    add(object, name, width);
  }
  void trace(const sc_dt::uint64& object, const std::string& name, int width) override {
    add(object, name, width);
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
  /// What a variable shows: a number, that it has none, or one beyond its width.
  struct Value {
    enum class Kind { kNumber, kNone, kUnknown };
    Kind kind = Kind::kNumber;
    std::uint64_t bits = 0;  ///< kNumber
    bool operator==(const Value& other) const { return kind == other.kind && bits == other.bits; }
  };
  struct Variable {
    Signal signal;
    std::string id;
    std::function<Value()> read;
    Value last;
  };

  template <typename T>
  void add(const T& object, const std::string& name, int width);
  void refuse(const std::string& name);
  void cycle(bool delta_cycle) override;
  void look(std::uint64_t now);
  void begin(std::uint64_t time);
  void append_header(std::string& text) const;
  static void append_value(std::string& text, const Variable& variable);
  /// The line that moves the file to `time`; none if it is there already.
  [[nodiscard]] std::string stamp(std::uint64_t time);
  void put(const std::string& text);

  hw::AtomicFile file_;
  const Limits limits_;
  const std::function<void()> before_look_;
  std::vector<Variable> variables_;
  std::uint64_t bytes_ = 0;
  std::uint64_t begin_ = 0, end_ = 0;
  std::uint64_t stamp_ = 0;  ///< last time in the file
  bool looked_ = false;
  bool begun_ = false;
  bool stopped_ = false;
  bool full_ = false;
};

}  // namespace systole::testbench
