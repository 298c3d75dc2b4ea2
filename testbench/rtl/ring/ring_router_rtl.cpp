#include "Vring_router_256.h"
#include "Vring_router_256_checked.h"
#include "testbench/rtl/ring/ring_router_unit.h"

namespace systole::testbench {

std::unique_ptr<RingRouterRtl> make_ring_router(const RtlOptions& options) {
  return make_build<RingRouterRtl, RingRouterUnit<Vring_router_256>,
                    RingRouterUnit<Vring_router_256_checked>>(options);
}

}  // namespace systole::testbench
