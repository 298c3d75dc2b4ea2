#include "testbench/rtl/engine/own_block.h"

#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace systole::testbench {
namespace {

/// Our blocks keep the protocol, or it is our error. A user's may not.
class OwnChain final : public ChainRtl {
 public:
  OwnChain(std::string place, std::unique_ptr<ChainRtl> rtl)
      : place_(std::move(place)), rtl_(std::move(rtl)) {}

  [[nodiscard]] const char* block() const override { return rtl_->block(); }
  [[nodiscard]] bool serves(const hw::Chain& chain) const override { return rtl_->serves(chain); }
  RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands, std::int32_t* out,
                const std::int32_t* expected, const BackPressure& pressure) override {
    try {
      return rtl_->run(chain, operands, out, expected, pressure);
    } catch (const std::runtime_error& error) {
      throw hw::InputError(place_ + ": " + error.what());
    }
  }
  [[nodiscard]] std::uint64_t contract(const hw::Chain& chain, std::size_t rows,
                                       std::size_t cols) const override {
    return rtl_->contract(chain, rows, cols);
  }
  [[nodiscard]] bool failed() const override { return rtl_->failed(); }

 private:
  std::string place_;
  std::unique_ptr<ChainRtl> rtl_;
};

}  // namespace

std::unique_ptr<ChainRtl> make_own_block(const OwnBlock& own, std::uint32_t lanes,
                                         const RtlOptions& options) {
  const std::string place = hw::printable(own.folder) + ": " + own.block;
  if (own.lanes != 0 && own.lanes != lanes) {
    throw hw::InputError(place + " has " + std::to_string(own.lanes) +
                         " lanes, expected postop.lanes of the machine, " + std::to_string(lanes));
  }
  return std::make_unique<OwnChain>(place, std::unique_ptr<ChainRtl>(own.make(lanes, options)));
}

}  // namespace systole::testbench
