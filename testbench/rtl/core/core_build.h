#pragma once

#include <memory>

#include "testbench/rtl/core/bridged_core.h"
#include "testbench/rtl/core/core_ports.h"
#include "testbench/rtl/core/core_rtl.h"
#include "testbench/rtl/core/core_unit.h"

namespace systole::testbench {

/// A core that has been Verilated, and both ways to drive it.
class CoreBuild {
 public:
  virtual ~CoreBuild() = default;
  [[nodiscard]] virtual std::unique_ptr<CoreRtl> rtl(const RtlOptions& options) const = 0;
  [[nodiscard]] virtual std::unique_ptr<CorePorts> ports(const RtlOptions& options) const = 0;
};

template <typename Model>
class CoreBuildOf final : public CoreBuild {
 public:
  explicit CoreBuildOf(const CoreSize& size) : size_(size) {}

  [[nodiscard]] std::unique_ptr<CoreRtl> rtl(const RtlOptions& options) const override {
    return std::make_unique<VerilatedCore<Model>>(size_, options);
  }
  [[nodiscard]] std::unique_ptr<CorePorts> ports(const RtlOptions& options) const override {
    return std::make_unique<BridgedCore<Model>>(size_, options);
  }

 private:
  const CoreSize size_;
};

}  // namespace systole::testbench
