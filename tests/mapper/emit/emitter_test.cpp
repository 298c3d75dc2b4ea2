#include "mapper/emit/emitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "mapper/tile/tiling_cost.h"
#include "model/seeded/shapes.h"
#include "support/random/draws.h"
#include "support/random/random_graph.h"
#include "tests/mapper/test_graphs.h"

namespace systole::mapper {
namespace {

using hw::Command;
using hw::Opcode;
using test::GraphSketch;

/// Every group in tiles of at most this size.
hw::Program emit(const model::Graph& graph, const Tiling& tiling) {
  const hw::Machine machine;
  const std::vector<Group> groups = fuse(graph, machine).groups;
  const std::vector<Pipeline> pipelines = find_pipelines(graph, groups, machine, {});
  const Placement placement = place_tensors(graph, groups, pipelines, machine);
  ConstantImage constants(placement.dram_end);
  hw::Program program;
  Emitter emitter({graph, machine, placement, constants, program});
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Share& share = placement.shares[i];
    emitter.emit(
        pipelines[i],
        {{&groups[i], tiling, tiling_problem(graph, groups[i], placement, machine, share), share}});
  }
  return program;
}
Tiling tiles(std::uint32_t m, std::uint32_t n, std::uint32_t k, bool m_outer = true) {
  Tiling tiling;
  tiling.m = m;
  tiling.n = tiling.c_cols = n;
  tiling.k = k;
  tiling.m_outer = m_outer;
  return tiling;
}

/// Bytes that the loads of one operator bring.
std::uint64_t loaded_bytes(const hw::Program& program, std::uint32_t op) {
  std::uint64_t bytes = 0;
  for (const Command& command : program.commands) {
    const auto* const load = std::get_if<hw::cmd::Load>(&command.work);
    if (load != nullptr && command.op == op) bytes += std::uint64_t{load->m} * load->n;
  }
  return bytes;
}

TEST(Emitter, OneTileIsLoadLoadMatmulLoadStore) {
  const hw::Program program = emit(product(16, 16, 64), tiles(16, 16, 64));
  EXPECT_EQ(opcodes(program), "llmls") << "A, B, product, bias, result";
  const auto& a = work<hw::cmd::Load>(program, 0);
  const auto& b = work<hw::cmd::Load>(program, 1);
  const auto& matmul = work<hw::cmd::Matmul>(program, 2);
  const auto& bias = work<hw::cmd::Load>(program, 3);
  const auto& store = work<hw::cmd::Store>(program, 4);
  EXPECT_EQ(a.m, 16U) << "A: rows apart in memory";
  EXPECT_EQ(a.n, 64U);
  EXPECT_EQ(b.m, 1U) << "a tile of weights is one run";
  EXPECT_EQ(b.n, 64U * 16);
  EXPECT_EQ(matmul.a, a.to);
  EXPECT_EQ(matmul.b.address, b.to.address);
  EXPECT_FALSE(matmul.accumulate);
  EXPECT_EQ(bias.n, 16U * 4);
  EXPECT_EQ(store.chain.parameters, bias.to.address);
  EXPECT_EQ(store.from, matmul.c);
}

TEST(Emitter, DepthAccumulatesInOneTile) {
  const hw::Program program = emit(product(16, 16, 80), tiles(16, 16, 32));
  EXPECT_EQ(opcodes(program), "llmllmllmls");
  const std::uint32_t depths[] = {32, 32, 16};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& matmul = work<hw::cmd::Matmul>(program, 3 * i + 2);
    EXPECT_EQ(matmul.k, depths[i]);
    EXPECT_EQ(matmul.accumulate, i > 0);
    EXPECT_EQ(matmul.c, work<hw::cmd::Matmul>(program, 2).c);
  }
}

TEST(Emitter, TheInnerLoopKeepsTheOperandItDoesNotIndex) {
  // Rows outside: A stays while the columns go by. Columns outside: B does.
  EXPECT_EQ(opcodes(emit(product(32, 32, 16), tiles(16, 16, 16, true))),
            "llmls"
            "lmls"
            "lms"
            "ms")
      << "all of B fits, so the second row of tiles finds it, and the biases, on chip";
  const hw::Program program = emit(product(32, 32, 16), tiles(16, 16, 16, false));
  EXPECT_EQ(opcodes(program),
            "llmls"
            "lms"
            "lmls"
            "ms");
  const auto &first = work<hw::cmd::Matmul>(program, 2),
             &second = work<hw::cmd::Matmul>(program, 6);
  EXPECT_EQ(first.b, second.b);
  EXPECT_NE(first.a.address, second.a.address);
}

TEST(Emitter, PartsLeaveWhileOthersAreMultiplied) {
  Tiling tiling = tiles(16, 16, 16);
  tiling.c_cols = 32;
  tiling.k_outer = tiling.in_parts = true;
  tiling.two_results = false;
  const hw::Program program = emit(product(32, 40, 32), tiling);
  // Two C tiles of rows, each of 32 and 8 columns; biases come in once for each.
  std::string order;
  std::vector<std::uint32_t> places;
  for (const Command& command : program.commands) {
    if (command.opcode() == Opcode::kLoad) continue;
    order += command.opcode() == Opcode::kMatmul ? 'm' : 's';
    if (const auto* const store = command.as<hw::cmd::Store>()) {
      EXPECT_EQ(store->n, places.size() % 3 == 2 ? 8U : 16U);
      EXPECT_EQ(store->from.pitch, 16U) << "a separate place";
      places.push_back(store->from.address / 256);
    }
  }
  EXPECT_EQ(order,
            "mmmsms"
            "mms"
            "mmmsms"
            "mms")
      << "a part leaves after its last k";
  EXPECT_EQ(places, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5})) << "in turn";
}

TEST(Emitter, ARowWiseChainGetsWholeRows) {
  GraphSketch g("rows", 1);
  const model::View c = g.matmul("c", g.input("x", 16, 16), g.weight("w", 16, 40));
  Tiling tiling = tiles(16, 16, 16);
  tiling.c_cols = 40;
  const hw::Program program =
      emit(g.take(g.stage("norm", c, GraphSketch::layer_norm(), hw::DType::kS8)), tiling);
  EXPECT_EQ(opcodes(program), "llmlmlmls");
  const hw::LocalTile c_tile = work<hw::cmd::Matmul>(program, 2).c;
  EXPECT_EQ(c_tile.pitch, 48U) << "40 columns in whole rows of the array";
  EXPECT_EQ(work<hw::cmd::Matmul>(program, 4).c.address, c_tile.address + 16);
  EXPECT_EQ(work<hw::cmd::Matmul>(program, 6).n, 8U);
  EXPECT_EQ(work<hw::cmd::Store>(program, program.commands.size() - 1).n, 40U);
}

TEST(Emitter, AResultThatStaysIsMovedAndNeverLoaded) {
  GraphSketch g("two", 1);
  const model::View x = g.input("x", 16, 16);
  const model::View q = g.stage("q", g.matmul("c", x, g.weight("w", 16, 16)),
                                GraphSketch::to_bits(8, 6), hw::DType::kS8);
  const hw::Program program =
      emit(g.take(g.matmul("d", q, g.weight("v", 16, 16))), tiles(16, 16, 16));
  EXPECT_EQ(opcodes(program), "llmvlms");
  EXPECT_EQ(work<hw::cmd::Matmul>(program, 5).a, work<hw::cmd::Move>(program, 3).to);
}

TEST(Emitter, AStageOfItsOwnGoesThroughTheAccumulator) {
  GraphSketch g("stage", 1);
  const model::View x = g.input("x", 16, 16, hw::DType::kS16);
  const hw::Program program =
      emit(g.take(g.stage("relu", x, GraphSketch::relu(), hw::DType::kS16)), tiles(16, 16, 0));
  EXPECT_EQ(opcodes(program), "as");
  EXPECT_EQ(work<hw::cmd::LoadAccumulator>(program, 0).type, hw::DType::kS16);
}

/// The tile of sums that a command works on.
struct SumsTile {
  hw::LocalTile tile;
  std::uint32_t m, n;
};
std::optional<SumsTile> sums_of(const Command& command) {
  if (const auto* const load = command.as<hw::cmd::LoadAccumulator>()) {
    return SumsTile{load->to, load->m, load->n};
  }
  if (const auto* const matmul = command.as<hw::cmd::Matmul>()) {
    return SumsTile{matmul->c, matmul->m, matmul->n};
  }
  if (const auto* const result = command.as<hw::cmd::Result>()) {
    return SumsTile{result->from, result->m, result->n};
  }
  return std::nullopt;
}

/// A program together with what its tests ask about it.
class Emitted {
 public:
  Emitted(const model::Graph& graph, const hw::Machine& machine)
      : machine_(machine), mapping_(map_graph(graph, machine)) {}
  [[nodiscard]] const std::vector<Command>& commands() const { return mapping_.program.commands; }
  [[nodiscard]] const Mapping& mapping() const { return mapping_; }

  /// C tiles of an operator take their share of the halves of the accumulator in turns; all of it
  /// if they are not double buffered.
  void expect_halves_alternate() const {
    const std::uint32_t half = machine_.accumulator.kib * 1024 / 8;
    std::map<std::uint32_t, bool> second;  // by operator
    for (const Command& command : commands()) {
      const std::optional<SumsTile> sums = sums_of(command);
      if (!sums) continue;
      const std::uint32_t begin = sums->tile.address;
      const std::uint32_t end = begin + (sums->m - 1) * sums->tile.pitch + sums->n;
      if (!mapping_.tilings[command.op].two_results) {
        EXPECT_LE(end, 2 * half);
        continue;
      }
      const Share& share = mapping_.shares[command.op];
      const std::uint32_t in_half = begin >= half ? half : 0;
      EXPECT_GE(begin, in_half + share.sums_begin);
      EXPECT_LE(end, in_half + share.sums_end);
      // Where groups share a level of a pipeline, the tiles of all of them alternate.
      if (share.in_turns) continue;
      const auto known = second.try_emplace(command.op, begin >= half).first;
      EXPECT_EQ(begin >= half, known->second);
      if (command.as<hw::cmd::Result>() != nullptr) known->second = !known->second;
    }
  }

  /// Where a load of weights that reside writes; nothing for others.
  [[nodiscard]] const Location* resident_of(const Command& command) const {
    const MatmulAnchor* const product = mapping_.groups[command.op].matmul();
    const auto* const load = std::get_if<hw::cmd::Load>(&command.work);
    if (product == nullptr || load == nullptr) return nullptr;
    const Location& at = mapping_.tensors[product->b.tensor];
    const bool is_there = at.place == Location::Place::kScratchpad &&
                          load->to.address >= at.address &&
                          load->to.address < at.address + std::uint64_t{product->b.rows} * at.pitch;
    return is_there ? &at : nullptr;
  }

  void expect_streams_and_residents_keep_apart() const {
    std::uint32_t under_way = 0;
    for (const Command& command : commands()) {
      if (command.opcode() == Opcode::kEnd) continue;
      const bool is_resident = resident_of(command) != nullptr;
      if (!is_resident) under_way = command.op;
      const Share& share = mapping_.shares.at(command.op);
      const std::uint64_t stream_begin = share.stream_begin;
      if (is_resident) {
        const hw::Range written = hw::ranges_of(command, mapping_.program)[1];
        for (const std::uint32_t op : {command.op, under_way}) {
          EXPECT_TRUE(written.end <= mapping_.shares[op].stream_begin ||
                      written.begin >= mapping_.shares[op].stream_end);
        }
      } else if (const auto* const load = std::get_if<hw::cmd::Load>(&command.work)) {
        EXPECT_GE(load->to.address, stream_begin);
        EXPECT_LE(hw::ranges_of(command, mapping_.program)[1].end, share.stream_end);
      } else if (const auto* const move = command.as<hw::cmd::Move>()) {
        const std::uint64_t end =
            move->to.address + std::uint64_t{move->m - 1} * move->to.pitch + move->n;
        EXPECT_TRUE(end <= stream_begin || move->to.address >= share.stream_end);
      }
    }
  }

  /// A load can run while the matmul before it computes: it does not overwrite its operands.
  /// Returns how many do, and how many loads there are after a matmul of the same operator.
  [[nodiscard]] std::pair<int, int> loads_that_wait() const {
    int waiting = 0, all = 0;
    const Command* matmul = nullptr;
    for (const Command& command : commands()) {
      if (command.opcode() == Opcode::kMatmul) matmul = &command;
      if (command.opcode() != Opcode::kLoad || matmul == nullptr || matmul->op != command.op)
        continue;
      ++all;
      const hw::Range written = hw::ranges_of(command, mapping_.program)[1];
      for (const hw::Range& range : hw::ranges_of(*matmul, mapping_.program)) {
        if (hw::conflict(written, range)) ++waiting;
      }
    }
    return {waiting, all};
  }

  /// Every element of C leaves exactly once, and the products are as many as C needs.
  void expect_every_element_once() const {
    for (std::size_t op = 0; op < mapping_.groups.size(); ++op) {
      const Group& group = mapping_.groups[op];
      const hw::Operator& result = mapping_.program.operators[op];
      std::vector<int> written(std::size_t{group.m()} * group.n(), 0);
      std::uint64_t macs = 0, firsts = 0;
      std::map<std::uint64_t, std::uint64_t> rows;  // so far, by the first column of a tile
      for (const Command& command : commands()) {
        if (command.opcode() == Opcode::kEnd || command.op != op) continue;
        if (const auto* const matmul = command.as<hw::cmd::Matmul>()) {
          macs += std::uint64_t{matmul->m} * matmul->n * matmul->k;
          if (!matmul->accumulate) firsts += std::uint64_t{matmul->m} * matmul->n;
        }
        const auto* const leaves = command.as<hw::cmd::Result>();
        if (leaves == nullptr) continue;
        auto [row, col] = tile_of(command);
        // Rows of a ring come in order.
        if (result.place == hw::Operator::Place::kRing) row = rows[col];
        rows[col] += leaves->m;
        for (std::uint64_t i = 0; i < leaves->m; ++i) {
          for (std::uint64_t j = 0; j < leaves->n; ++j) {
            ++written.at((row + i) * group.n() + col + j);
          }
        }
      }
      EXPECT_EQ(std::count(written.begin(), written.end(), 1), std::int64_t{group.m()} * group.n())
          << group.name;
      EXPECT_EQ(macs, result.macs) << group.name;
      EXPECT_EQ(firsts, group.matmul() != nullptr ? std::uint64_t{group.m()} * group.n() : 0)
          << group.name;
    }
  }

 private:
  /// Row and column of its operator's result where a command's tile begins; of a ring the column.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> tile_of(const Command& command) const {
    const hw::Operator& result = mapping_.program.operators[command.op];
    const auto* const store = command.as<hw::cmd::Store>();
    const std::uint64_t to =
        store != nullptr ? store->to.address : command.as<hw::cmd::Move>()->to.address;
    const std::uint64_t at = to - result.address;
    const bool ring = result.place == hw::Operator::Place::kRing;
    const std::uint64_t section = ring ? 0 : at / result.section_bytes();
    const std::uint64_t row = (at - section * result.section_bytes()) / result.pitch;
    // A ring goes on before its begin.
    const std::uint64_t in_row = to + result.pitch - result.address % result.pitch;
    const std::uint64_t col = in_row % result.pitch / hw::bytes_of(result.type);
    return {row, section * result.section + col};
  }

  hw::Machine machine_;
  Mapping mapping_;
};

TEST(Emitter, KeepsItsRulesOnEveryMachine) {
  test::Random random(1);
  int emitted = 0, waiting = 0, loads = 0;
  for (std::uint64_t seed = 0; seed < test::draws(120U); ++seed) {
    SCOPED_TRACE(seed);
    hw::Machine machine = test::random_machine(random);
    machine.mapper.strategy = hw::MappingStrategy::kCost;  // the rules are those of the ring
    const std::uint32_t heads = test::between(random, 1, 3);
    const model::Graph graph =
        seed % 2 == 0
            ? test::random_matmul_graph(seed, test::between(random, 1, 130),
                                        test::between(random, 1, 130),
                                        test::between(random, 1, 130))
            : model::make_seeded_encoder(
                  "e", {1, heads * test::between(random, 1, 20), heads, 48, seed % 4 == 1},
                  test::between(random, 1, 30), seed);
    try {
      const Emitted program(graph, machine);
      program.expect_halves_alternate();
      program.expect_streams_and_residents_keep_apart();
      program.expect_every_element_once();
      const auto [some, all] = program.loads_that_wait();
      waiting += some;
      loads += all;
    } catch (const hw::InputError&) {
      continue;
    }
    ++emitted;
  }
  EXPECT_GT(emitted, test::finds(70));
  EXPECT_GT(loads, test::finds(1000));
  // Tiles of odd sizes can leave the ring in pieces.
  EXPECT_LE(waiting, loads / 100);
}

TEST(Emitter, LoadsWhatTheTilerExpects) {
  test::Random random(7);
  int mapped = 0, a_stays = 0, b_stays = 0, k_outer = 0, one_result = 0, back_and_forth = 0;
  for (int i = 0; i < test::draws(200); ++i) {
    hw::Machine machine = hw::find_machine("transformer");
    machine.array.rows = test::power_of_two(random, 3, 6);
    machine.array.cols = test::power_of_two(random, 3, 6);
    machine.scratchpad.kib = test::power_of_two(random, 4, 9);
    machine.accumulator.kib = test::power_of_two(random, 4, 9);
    machine.dram.channels = test::power_of_two(random, 0, 2);
    const std::uint32_t n = test::between(random, 1, 768), k = test::between(random, 1, 768);
    GraphSketch g("product", 1);
    const model::View c =
        g.matmul("c", g.input("x", test::between(random, 1, 600), k), g.weight("w", k, n));
    const model::Graph graph =
        i % 3 == 0 ? g.take(g.stage("norm", c, GraphSketch::layer_norm(), hw::DType::kS8))
                   : g.take(g.stage("bias", c, model::bias_stage(), hw::DType::kS32));
    const Mapping mapping = [&]() -> Mapping {
      try {
        return map_graph(graph, machine);
      } catch (const hw::InputError&) {
        return {};
      }
    }();
    if (mapping.tilings.empty() || mapping.groups[0].k() == 0) continue;
    const Tiling& t = mapping.tilings[0];
    a_stays += t.a_stays ? 1 : 0;
    b_stays += t.b_stays ? 1 : 0;
    k_outer += t.k_outer ? 1 : 0;
    one_result += t.two_results ? 0 : 1;
    ++mapped;
    const Placement placement{mapping.tensors, {}, 0, mapping.shares};
    const TilingProblem problem =
        tiling_problem(graph, mapping.groups[0], placement, machine, placement.shares[0]);
    Tiling expected = t;
    TilingCost(machine, problem).evaluate(expected);
    const std::uint64_t loaded = loaded_bytes(mapping.program, 0);
    EXPECT_EQ(loaded, t.load_bytes);
    // Of a sweep, the model knows whole tiles alone.
    const bool is_ragged = t.back_and_forth && k % t.k != 0;
    back_and_forth += t.back_and_forth ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(loaded), static_cast<double>(expected.load_bytes),
                is_ragged ? 0.1 * static_cast<double>(loaded) : 1.0)
        << mapping.groups[0].m() << " x " << n << " x " << k << " in " << t.m << " x " << t.c_cols
        << " (" << t.n << ") x " << t.k << (t.m_outer ? " m" : " n") << (t.k_outer ? " k" : "")
        << (t.a_stays ? " a" : "") << (t.b_stays ? " b" : "");
  }
  EXPECT_GT(mapped, test::finds(150));
  EXPECT_GT(back_and_forth, test::finds(3));
  EXPECT_GT(a_stays, test::finds(20));
  EXPECT_GT(b_stays, test::finds(20));
  EXPECT_GT(k_outer, test::finds(20));
  EXPECT_GT(one_result, test::finds(20));
}

TEST(Emitter, LoadsRunAheadOnThePresets) {
  for (const char* name : {"gemmini", "transformer"}) {
    const model::Graph graph = model::make_seeded_encoder("e", {1, 128, 2, 512, true}, 128, 1);
    const auto [waiting, loads] = Emitted(graph, hw::find_machine(name)).loads_that_wait();
    EXPECT_LE(waiting, loads / 50) << name;  // where the ring begins anew
    EXPECT_GT(loads, 50) << name;
  }
}

}  // namespace
}  // namespace systole::mapper
