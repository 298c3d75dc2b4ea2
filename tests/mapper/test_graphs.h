#pragma once

#include <string>

#include "hw/program/program.h"
#include "model/build/encoder_graph.h"
#include "model/graph/stages.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "support/random/random_graph.h"

/// What several tests map, and how they show the commands.
namespace systole::mapper {

/// One letter per command: e(nd), l(oad), a(ccumulator load), m(atmul), s(tore), mo(v)e.
inline std::string opcodes(const hw::Program& program) {
  std::string text;
  for (const hw::Command& command : program.commands)
    text += "elamsv"[static_cast<int>(command.opcode())];
  return text;
}

/// The work of a command, which must be a T.
template <typename T>
const T& work(const hw::Program& program, std::size_t command) {
  return *program.commands.at(command).as<T>();
}

/// One matmul with a bias after it.
inline model::Graph product(std::uint32_t m, std::uint32_t n, std::uint32_t k) {
  test::GraphSketch g("product", 1);
  const model::View c = g.matmul("c", g.input("x", m, k), g.weight("w", k, n));
  return g.take(g.stage("bias", c, model::bias_stage(), hw::DType::kS32));
}

/// The graph of a model that comes with Systole.
inline model::Graph graph_of(const std::string& name) {
  return model::make_vit_graph(model::load_integer_vit(model::find_model(name)));
}

}  // namespace systole::mapper
