#include "testbench/rtl/engine/chain_twin.h"

#include "testbench/rtl/drive/model_view.h"
#include "testbench/rtl/postop/postop_pipeline_rtl.h"

namespace systole::testbench {
namespace {

constexpr const char* kPipeline = "postop_pipeline";

class PipelineTwin final : public ChainTwin {
 public:
  PipelineTwin(std::uint32_t lanes, const RtlOptions& options)
      : lanes_(lanes), view_(options.view), rtl_(lanes, options) {}
  [[nodiscard]] const char* block() const override { return kPipeline; }
  [[nodiscard]] bool serves(const hw::Chain& chain) const override {
    return !chain.stages.empty() && PostopPipelineRtl::serves(chain);
  }
  RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands,
                std::vector<std::int32_t>& words, const std::int32_t* expected) override {
    if (view_) view_->begin(expected, contract(chain, operands.rows, operands.cols));
    words.resize(operands.rows * operands.cols);
    return rtl_.run(chain, operands, words.data());
  }
  [[nodiscard]] std::uint64_t contract(const hw::Chain& chain, std::size_t rows,
                                       std::size_t cols) const override {
    return hw::chain_cycles(chain, rows, cols, lanes_).total(rows);
  }
  [[nodiscard]] bool failed() const override { return rtl_.failed(); }

 private:
  std::uint32_t lanes_;
  std::shared_ptr<ModelView> view_;
  PostopPipelineRtl rtl_;
};

}  // namespace

std::unique_ptr<ChainTwin> make_chain_twin(const hw::Machine::Backends& backends,
                                           std::uint32_t lanes, const RtlOptions& options) {
  if (backends.postop_pipeline != hw::Backend::kRtl) return nullptr;
  return std::make_unique<PipelineTwin>(lanes, options.for_block(kPipeline, lanes));
}

}  // namespace systole::testbench
