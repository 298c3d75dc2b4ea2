#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "hw/number/half.h"
#include "hw/ring/pass.h"
#include "hw/ring/pass_image.h"
#include "hw/ring/pass_listing.h"
#include "model/format/safetensors_writer.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/generation/generation.h"

/// What a generation on a ring leaves in files.
namespace systole::testbench {

/// Logits after each token for which they were computed.
class LogitRows {
 public:
  void add(std::uint32_t position, const std::vector<hw::Half>& logits) {
    positions_.push_back(position);
    for (const hw::Half value : logits) bits_.push_back(value.bits);
  }
  /// With the tokens of the prompt and those that were generated.
  void write(const std::string& path, const GenerationTask& task,
             const std::vector<std::uint32_t>& tokens) const {
    const auto ids = [](const char* name, const std::vector<std::uint32_t>& values) {
      return model::make_tensor(name, model::FileDtype::kI32, {values.size()},
                                std::vector<std::int32_t>(values.begin(), values.end()));
    };
    model::write_safetensors(
        path, {ids("input_ids", task.prompt), ids("tokens", tokens), ids("positions", positions_),
               model::make_tensor("logits", model::FileDtype::kF16,
                                  {positions_.size(), task.shape.vocabulary}, bits_)});
  }

 private:
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint16_t> bits_;
};

/// The programs of all cores for the pass that ends the prompt, for a file or standard output.
class PassListing {
 public:
  /// Opened before the run. Nothing if the path is empty.
  explicit PassListing(const std::string& path)
      : wanted_(!path.empty()), is_printed_(path == kStandardOutput) {
    if (wanted_ && !is_printed_) file_.emplace(path);
  }
  void take_from(GenerationTask& task) {
    if (!wanted_) return;
    task.on_pass = [this, &task](std::uint32_t position, const std::vector<hw::dfx::Pass>& passes) {
      if (position < task.prompt.size()) list(position, passes);
    };
  }
  void write() {
    if (!file_) return;
    file_->stream() << text_;
    file_->commit();
  }
  [[nodiscard]] bool is_printed() const { return is_printed_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void list(std::uint32_t position, const std::vector<hw::dfx::Pass>& passes) {
    text_.clear();
    for (std::size_t i = 0; i < passes.size(); ++i) {
      text_ += fmt::format("# core {}: {} instructions of {} bytes, at token {}\n", i,
                           passes[i].instructions.size(), hw::dfx::instruction_bytes(), position);
      text_ += hw::dfx::disassemble(passes[i]);
    }
  }

  const bool wanted_, is_printed_;
  std::optional<hw::AtomicFile> file_;
  std::string text_;
};

}  // namespace systole::testbench
