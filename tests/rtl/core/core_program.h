#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "hw/program/program.h"
#include "tests/hw/program/random_program.h"

namespace systole::testbench {

/// Gives the numbers of a command values of a size that mostly fits an address, and shapes that are
/// not empty.
inline void shrink(hw::Command& command, hw::test::Random& random) {
  using hw::test::pick;
  const auto number = [&](auto& value, std::int64_t least, std::int64_t most) {
    value = static_cast<std::decay_t<decltype(value)>>(pick(random, least, most));
  };
  const bool large = pick(random, 0, 19) == 0;  // some of it may not fit
  const std::int64_t side = large ? (std::int64_t{1} << 31) : 700;
  const std::int64_t local = large ? 0xffffffff : 1 << 22, pitch = large ? (1 << 20) : 4000;
  const auto tile = [&](auto& at, std::int64_t most) {
    number(at.address, 0, most);
    number(at.pitch, 0, pitch);
  };
  const std::int64_t dram = large ? std::int64_t{1} << 40 : std::int64_t{1} << 35;
  const auto use = [&](hw::ChainUse& chain) {
    number(chain.parameters, 0, local);
    number(chain.statistics, 0, local);
    tile(chain.tensor, dram);
  };
  std::visit(
      [&](auto& work) {
        using T = std::decay_t<decltype(work)>;
        if constexpr (std::is_base_of_v<hw::cmd::Load, T>) {
          number(work.m, 1, side);
          number(work.n, 1, side);
          if (work.packed()) work.m = std::max<std::uint32_t>(32, work.m / 32 * 32);
          tile(work.from, dram);
          tile(work.to, local);
          if (work.pre) use(*work.pre);
        } else if constexpr (std::is_same_v<T, hw::cmd::Matmul>) {
          for (auto* const size : {&work.m, &work.n, &work.k}) number(*size, 1, side);
          for (auto* const at : {&work.a, &work.b, &work.c}) tile(*at, local);
        } else if constexpr (std::is_base_of_v<hw::cmd::Result, T>) {
          number(work.m, 1, side);
          number(work.n, 1, side);
          tile(work.from, local);
          use(work.chain);
          if constexpr (std::is_same_v<T, hw::cmd::Store>) tile(work.to, dram);
          if constexpr (std::is_same_v<T, hw::cmd::Move>) tile(work.to, local);
        }
      },
      command.work);
}

/// Commands of every opcode with chains that exist, as `hw::test::random_program()` has them.
inline hw::Program random_core_program(hw::test::Random& random, std::size_t commands) {
  using hw::test::pick;
  hw::Program program;
  for (std::int64_t i = pick(random, 1, 6); i > 0; --i) {
    program.chains.push_back(hw::test::random_chain(random, 8));
  }
  for (int i = 0; i < 20; ++i) {
    program.operand_tiles.push_back(
        {static_cast<std::uint64_t>(pick(random, 0, std::int64_t{1} << 35)),
         static_cast<std::uint32_t>(pick(random, 0, 4000))});
  }
  const auto last = static_cast<std::int64_t>(program.chains.size()) - 1;
  for (std::size_t i = 0; i < commands; ++i) {
    hw::Command command = hw::test::random_command(random);
    while (pick(random, 0, 3) != 0 && command.opcode() > hw::Opcode::kMove) {
      command = hw::test::random_command(random);
    }
    shrink(command, random);
    auto* const result = command.as<hw::cmd::Result>();
    auto* const load = command.as<hw::cmd::Load>();
    hw::ChainUse* const use = result != nullptr              ? &result->chain
                              : load != nullptr && load->pre ? &*load->pre
                                                             : nullptr;
    if (use != nullptr) {
      use->chain = static_cast<std::uint16_t>(pick(random, 0, last));
      use->operands = static_cast<std::uint32_t>(pick(random, 0, 10));
    }
    if (auto* const store = command.as<hw::cmd::Store>();
        store != nullptr && pick(random, 0, 3) != 0) {
      store->encoder.reset();
    }
    if (load != nullptr && pick(random, 0, 3) != 0) load->window.reset();
    program.commands.push_back(std::move(command));
  }
  program.commands.emplace_back();  // end
  return program;
}

}  // namespace systole::testbench
