#include <gtkwave/fstapi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "testbench/wave/fst_output.h"
#include "testbench/wave/wave_file.h"

namespace systole::testbench {
namespace {

class FstFile final : public WaveFile {
 public:
  explicit FstFile(const std::string& path) : file_(path) {}

  void begin(std::uint64_t time, const std::vector<RecordedSignal>& signals,
             const std::vector<RecordedValue>& values) override {
    write_hierarchy(signals);
    file_.begin(time, widths_);
    for (std::size_t i = 0; i < values.size(); ++i) file_.changes().change(place_of_[i], values[i]);
  }

  void change(std::uint64_t time, std::size_t signal, const RecordedValue& value) override {
    file_.stamp(time);
    file_.changes().change(place_of_[signal], value);
  }

  /// Those before begin() alone: FST has them ahead of the signals.
  void comment(const std::string& text) override { comments_.push_back(text); }

  [[nodiscard]] std::uint64_t bytes() const override { return file_.bytes(); }

  void commit(std::uint64_t end) override { file_.commit(end); }

 private:
  void write_hierarchy(const std::vector<RecordedSignal>& signals) {
    void* const fst = file_.writer();
    for (const std::string& text : comments_) fstWriterSetComment(fst, text.c_str());
    place_of_.resize(signals.size());
    visit_hierarchy(signals, {[fst](const std::string& scope) {
                                fstWriterSetScope(fst, FST_ST_VCD_MODULE, scope.c_str(), nullptr);
                              },
                              [fst] { fstWriterSetUpscope(fst); },
                              [&](std::size_t signal, const std::string& name) {
                                const unsigned width = signals[signal].width;
                                place_of_[signal] = widths_.size();
                                widths_.push_back(width);
                                fstWriterCreateVar(fst, FST_VT_VCD_WIRE, FST_VD_IMPLICIT, width,
                                                   ranged_name(name, width).c_str(), 0);
                              }});
  }

  FstOutput file_;
  std::vector<unsigned> widths_;       ///< in the order of the hierarchy
  std::vector<std::size_t> place_of_;  ///< of a signal in that order
  std::vector<std::string> comments_;
};

}  // namespace

std::unique_ptr<WaveFile> make_fst_file(const std::string& path) {
  return std::make_unique<FstFile>(path);
}

}  // namespace systole::testbench
