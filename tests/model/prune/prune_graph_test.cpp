#include "model/prune/prune_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/build/encoder_graph.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "model/seeded/shapes.h"
#include "support/random/random_machine.h"
#include "testbench/network/tensors.h"

namespace systole::model {
namespace {

using test::between;
using test::Random;

struct RandomEncoder {
  EncoderShape shape;
  std::uint32_t length = 0;
  std::uint64_t seed = 0;
  IntegerEncoder encoder;
  Graph graph;

  explicit RandomEncoder(std::uint64_t with) : seed(with) {
    Random random(seed);
    shape.layers = between(random, 2, 3);
    shape.heads = between(random, 2, 4);
    shape.width = shape.heads * 4 * between(random, 1, 3);
    shape.hidden = between(random, 5, 40);
    shape.post_norm = between(random, 0, 1) == 0;
    shape.causal = !shape.post_norm && between(random, 0, 2) == 0;
    length = between(random, 3, 12);
    encoder = make_seeded_layers(shape, length, seed, {});
    graph = make_encoder_graph(encoder, length, "encoder", 1.0);
  }
  [[nodiscard]] std::vector<std::int32_t> input() const {
    return seeded_embedding(shape, length, seed + 1, {});
  }
  /// An input of `rows` rows, of a graph of this encoder's blocks.
  static std::vector<std::int32_t> output(const Graph& graph,
                                          const std::vector<std::int32_t>& input) {
    Reference reference(graph);
    reference.set_input(graph.tensors[testbench::input_tensor(graph)].name, input);
    reference.run();
    return reference.values(graph.tensors[testbench::output_tensor(graph)].name);
  }
};

/// The constant in which the rows of what is gone are zero: the same network without columns.
void clear_rows(Graph& graph, const std::string& weight, const std::vector<bool>& gone) {
  Tensor& tensor = graph.tensors[find_tensor(graph, weight)];
  ASSERT_EQ(tensor.rows, gone.size());
  std::vector<std::uint8_t>& data = tensor.data.edit();
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (gone[i / tensor.cols]) data[i] = 0;
  }
}

GoneColumns some_of(Random& random, std::uint32_t count, std::uint32_t width) {
  GoneColumns gone(count * width, false);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (between(random, 0, 1) == 0) std::fill_n(gone.begin() + i * width, width, true);
  }
  // One stays.
  std::fill_n(gone.begin() + between(random, 0, count - 1) * width, width, false);
  return gone;
}

TEST(PruneGraph, ComputesWhatZerosInTheWeightsDo) {
  int heads = 0, neurons = 0;
  for (std::uint64_t seed = 0; seed < 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const RandomEncoder of(seed);
    Random random(seed + 1000);
    std::map<TensorId, GoneColumns> columns;
    Graph zeroed = of.graph;
    std::uint64_t fewer = 0;
    for (std::uint32_t layer = 0; layer < of.shape.layers; ++layer) {
      const std::string block = "blocks." + std::to_string(layer) + ".";
      if (between(random, 0, 2) != 0) {
        const GoneColumns gone = some_of(random, of.shape.heads, of.shape.head_width());
        columns[find_tensor(of.graph, block + "attn.context")] = gone;
        clear_rows(zeroed, block + "attn.proj.weight", gone);
        const auto count = static_cast<std::uint64_t>(std::count(gone.begin(), gone.end(), true));
        heads += static_cast<int>(count / of.shape.head_width());
        // Of its rows: projections of queries, keys, values and of the context; and both products.
        fewer += of.length * count * (4 * of.shape.width + 2 * of.length);
      }
      if (between(random, 0, 2) != 0) {
        const GoneColumns gone = some_of(random, of.shape.hidden, 1);
        columns[find_tensor(of.graph, block + "mlp.gelu")] = gone;
        clear_rows(zeroed, block + "mlp.fc2.weight", gone);
        const auto count = static_cast<std::uint64_t>(std::count(gone.begin(), gone.end(), true));
        neurons += static_cast<int>(count);
        fewer += of.length * count * 2 * of.shape.width;
      }
    }
    const Graph pruned = without_columns(of.graph, columns);
    EXPECT_EQ(RandomEncoder::output(pruned, of.input()), RandomEncoder::output(zeroed, of.input()));
    EXPECT_EQ(count_macs(pruned) + fewer, count_macs(of.graph));
  }
  EXPECT_GT(heads, 60);
  EXPECT_GT(neurons, 500);
}

TEST(PruneGraph, LeavesAWholeNetworkAsItIs) {
  const RandomEncoder of(3);
  const Graph same_graph = without_columns(of.graph, {});
  ASSERT_EQ(same_graph.nodes.size(), of.graph.nodes.size());
  EXPECT_EQ(same_graph.tensors.size(), of.graph.tensors.size());
  EXPECT_EQ(RandomEncoder::output(same_graph, of.input()),
            RandomEncoder::output(of.graph, of.input()));
}

TEST(PruneGraph, DropsTokensAsIfTheRestWereTheText) {
  for (std::uint64_t seed = 0; seed < 40 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const RandomEncoder of(seed);
    Random random(seed + 2000);
    const std::uint32_t kept = between(random, 1, of.length);
    std::size_t second = 0;
    while (of.graph.nodes[second].name.rfind("blocks.1.", 0) != 0) ++second;
    const Graph pruned = with_fewer_tokens(of.graph, second, of.length, kept);

    // The first block of the whole text, then the others of what is left of its result.
    IntegerEncoder first = of.encoder, rest = of.encoder;
    first.blocks.resize(1);
    first.shape.layers = 1;
    rest.blocks.erase(rest.blocks.begin());
    rest.shape.layers -= 1;
    std::vector<std::int32_t> stream =
        RandomEncoder::output(make_encoder_graph(first, of.length, "first", 1.0), of.input());
    stream.resize(std::size_t{kept} * of.shape.width);
    EXPECT_EQ(RandomEncoder::output(pruned, of.input()),
              RandomEncoder::output(make_encoder_graph(rest, kept, "rest", 1.0), stream));
    EXPECT_LE(count_macs(pruned), count_macs(of.graph));
  }
}

TEST(PruneGraph, RefusesColumnsThatCannotGoAlone) {
  const RandomEncoder of(5);
  const auto refuse = [&](const std::string& tensor, std::uint32_t columns) {
    const TensorId id = find_tensor(of.graph, tensor);
    GoneColumns gone(of.graph.tensors[id].cols, false);
    std::fill_n(gone.begin(), columns, true);
    EXPECT_THROW(static_cast<void>(without_columns(of.graph, {{id, gone}})), std::invalid_argument)
        << tensor;
  };
  refuse("blocks.0.attn.residual", 1);        // of the stream
  refuse("blocks.0.attn.head0.scores", 1);    // keys of a row that is normalised
  refuse("blocks.0.attn.qkv.requantise", 1);  // a part of a query
  EXPECT_THROW(static_cast<void>(without_columns(of.graph, {{0, GoneColumns(1, true)}})),
               std::invalid_argument)
      << "another number of columns";
}

}  // namespace
}  // namespace systole::model
