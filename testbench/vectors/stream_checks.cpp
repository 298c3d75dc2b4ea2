#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/stream/stream_core.h"
#include "hw/stream/stream_layer.h"
#include "testbench/vectors/vector_checks.h"

namespace systole::model {
namespace {

namespace stream = hw::stream;
using stream::Phase;

constexpr IntegerLimits kInt8{-128, 127};
constexpr IntegerLimits kUint8{0, 255};
constexpr IntegerLimits kSums{-(1 << (stream::kAccumulatorBits - 1)),
                              (1 << (stream::kAccumulatorBits - 1)) - 1};
constexpr IntegerLimits kBiases{-(1 << (stream::kBiasBits - 1)),
                                (1 << (stream::kBiasBits - 1)) - 1};
constexpr IntegerLimits kConstants{-32768, -1};
constexpr std::int64_t kLongestSide = 4096;

std::string at_index(const std::string& name, std::size_t i) {
  return name + "[" + std::to_string(i) + "]";
}

template <typename Value>
std::vector<Value> converted(const std::vector<std::int64_t>& values) {
  std::vector<Value> result;
  result.reserve(values.size());
  for (const std::int64_t value : values) result.push_back(static_cast<Value>(value));
  return result;
}

/// Compares `actual` with the elements of the field; `place` opens their names.
template <typename Value>
void expect_all(const std::string& place, const std::vector<Value>& actual,
                const std::vector<std::int64_t>& expected, VectorComparison& comparison) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    comparison.expect(at_index(place, i), static_cast<std::int64_t>(actual[i]), expected[i]);
  }
}

stream::Requantiser requantiser_of(const VectorFields& fields) {
  return {static_cast<std::uint8_t>(fields.integer("mult", kUint8)),
          static_cast<std::uint8_t>(fields.integer("shift", kUint8)),
          static_cast<std::int8_t>(fields.integer("add", kInt8))};
}

stream::GeluConstants gelu_of(const VectorFields& fields) {
  return {static_cast<std::int16_t>(fields.integer("b", kConstants)),
          static_cast<std::int16_t>(fields.integer("c", kConstants))};
}

/// What the hardware gives where the case says that it differs: rows of an index or an input, maybe
/// what the software gave, and last what the hardware does. By index or input: the last `values`.
std::map<std::int64_t, std::vector<std::int64_t>> differing(const VectorFields& fields,
                                                            std::size_t length,
                                                            std::size_t values) {
  std::map<std::int64_t, std::vector<std::int64_t>> result;
  const std::size_t rows = fields.elements("hardware_differs");
  if (rows == 0) return result;
  const std::vector<std::int64_t> all = fields.matrix("hardware_differs", rows, length, {});
  for (std::size_t row = 0; row < rows; ++row) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * length);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    result[*begin] = {end - static_cast<std::ptrdiff_t>(values), end};
  }
  return result;
}

void check_requantisation(const VectorFields& fields, VectorComparison& comparison) {
  const stream::Requantiser by = requantiser_of(fields);
  const std::vector<std::int64_t> sums = fields.integers("acc", kSums);
  std::vector<std::int64_t> expected = fields.integers("out", kInt8);
  fields.expect_length("out", expected.size(), sums.size());
  for (const auto& [index, values] : differing(fields, 2, 1)) {
    if (index < 0 || static_cast<std::size_t>(index) >= sums.size()) {
      fields.fail("hardware_differs",
                  "names element " + std::to_string(index) + " of " + std::to_string(sums.size()));
    }
    expected[static_cast<std::size_t>(index)] = values.front();
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    comparison.expect(at_index("out", i),
                      stream::requantise(static_cast<std::int32_t>(sums[i]), by), expected[i]);
  }
}

void check_gelu(const VectorFields& fields, const std::vector<std::int64_t>& x,
                VectorComparison& comparison) {
  const stream::GeluConstants constants = gelu_of(fields);
  const stream::Requantiser by = requantiser_of(fields);
  const std::vector<std::int64_t> products = fields.integers("q_acc", {});
  const std::vector<std::int64_t> outputs = fields.integers("q_out", kInt8);
  fields.expect_length("q_acc", products.size(), x.size());
  fields.expect_length("q_out", outputs.size(), x.size());
  const auto hardware = differing(fields, 5, 2);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int32_t product = stream::gelu_product(static_cast<std::int8_t>(x[i]), constants);
    const auto other = hardware.find(x[i]);
    const bool differs = other != hardware.end();
    comparison.expect(at_index("q_acc", i), product, differs ? other->second[0] : products[i]);
    comparison.expect(at_index("q_out", i), stream::requantise(product, by),
                      differs ? other->second[1] : outputs[i]);
  }
}

void check_relu(const VectorFields& fields, const std::vector<std::int64_t>& x,
                VectorComparison& comparison) {
  const stream::Activation relu{stream::ActivationKind::kRelu, {}, requantiser_of(fields)};
  const std::vector<std::int64_t> outputs = fields.integers("q_out", kInt8);
  fields.expect_length("q_out", outputs.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    comparison.expect(at_index("q_out", i), stream::activate(static_cast<std::int8_t>(x[i]), relu),
                      outputs[i]);
  }
}

/// Of the states after each group, of the row's sum and inverse, and of its probabilities.
void check_softmax_row(const VectorFields& fields, const std::string& place,
                       VectorDatapath* datapath, VectorComparison& comparison) {
  const auto x = converted<std::int8_t>(fields.integers("x", kInt8));
  if (x.size() % stream::kGroup != 0 || x.size() > stream::kLongestRow) {
    fields.fail("x", std::to_string(x.size()) + " elements, expected a multiple of " +
                         std::to_string(stream::kGroup) + " up to " +
                         std::to_string(stream::kLongestRow));
  }
  const std::size_t groups = x.size() / stream::kGroup;
  const std::vector<std::int64_t> maxima = fields.integers("running_max", kInt8);
  const std::vector<std::int64_t> sums = fields.integers("partial_sum", {});
  const std::vector<std::int64_t> y = fields.integers("y", kUint8);
  fields.expect_length("running_max", maxima.size(), groups);
  fields.expect_length("partial_sum", sums.size(), groups);
  fields.expect_length("y", y.size(), x.size());
  stream::SoftmaxRow row;
  for (std::size_t i = 0; i < groups; ++i) {
    row.take(&x[i * stream::kGroup]);
    comparison.expect(place + at_index("running_max", i), row.maximum, maxima[i]);
    comparison.expect(place + at_index("partial_sum", i), row.sum, sums[i]);
  }
  VectorDatapath::SoftmaxRow found{row.maximum, row.sum, row.inverse(), {}};
  if (datapath != nullptr) {
    found = datapath->stream_softmax(x);
    comparison.expect(place + "maximum", found.maximum, maxima.back());
  } else {
    for (const std::int8_t score : x) {
      found.probabilities.push_back(row.probability(score, row.inverse()));
    }
  }
  comparison.expect(place + "sum", found.sum, fields.integer("sum", {}));
  comparison.expect(place + "inverse", found.inverse, fields.integer("inverse", {}));
  expect_all(place + "y", found.probabilities, y, comparison);
  std::int64_t sum = 0;
  for (const std::uint8_t probability : found.probabilities) sum += probability;
  comparison.expect(place + "y_sum", sum, fields.integer("y_sum", {}));
}

void check_softmax(const VectorFields& fields, VectorDatapath* datapath,
                   VectorComparison& comparison) {
  const std::vector<VectorFields> rows = fields.objects("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_softmax_row(rows[i], at_index("rows", i) + ".", datapath, comparison);
  }
}

/// Matrices of a layer's file.
class LayerCheck {
 public:
  LayerCheck(const VectorFields& file, VectorComparison& comparison)
      : file_(file), comparison_(comparison) {
    shape_ = {side("S"), side("E"), side("P"), side("F")};
    if (shape_.sequence % stream::kGroup != 0 || shape_.sequence > stream::kLongestRow) {
      file.fail("S", "is " + std::to_string(shape_.sequence) + ", expected a multiple of " +
                         std::to_string(stream::kGroup) + " up to " +
                         std::to_string(stream::kLongestRow));
    }
  }

  void run() {
    const std::size_t s = shape_.sequence, e = shape_.embedding;
    const auto x_q = int8s(file_, "x_q", s, e), x_kv = int8s(file_, "x_kv", s, e);
    const std::vector<VectorFields> heads = file_.objects("heads");
    file_.expect_length("heads", heads.size(), side("H"));
    std::vector<stream::HeadResult> results;
    for (std::size_t i = 0; i < heads.size(); ++i) {
      results.push_back(stream::attend(shape_, x_q, x_kv, weights_of(heads[i])));
      check_head(heads[i], at_index("heads", i) + ".", results.back());
    }
    const VectorFields sum = file_.object("head_sum");
    check_product(sum, "head_sum.", "acc", "out",
                  stream::add_heads(results, requantiser_of(sum.object("requant"))), e);
    check_feed_forward(file_.object("feed_forward"));
  }

 private:
  [[nodiscard]] std::size_t side(const std::string& key) const {
    return static_cast<std::size_t>(file_.integer(key, {1, kLongestSide}));
  }
  static std::vector<std::int8_t> int8s(const VectorFields& fields, const std::string& key,
                                        std::size_t rows, std::size_t cols) {
    return converted<std::int8_t>(fields.matrix(key, rows, cols, kInt8));
  }
  static std::vector<std::int32_t> biases(const VectorFields& fields, const std::string& key,
                                          std::size_t length) {
    const std::vector<std::int64_t> values = fields.integers(key, kBiases);
    fields.expect_length(key, values.size(), length);
    return converted<std::int32_t>(values);
  }

  [[nodiscard]] stream::HeadWeights weights_of(const VectorFields& head) const {
    const std::size_t e = shape_.embedding, p = shape_.projection;
    stream::HeadWeights weights{
        int8s(head, "W_q", e, p), int8s(head, "W_k", e, p), int8s(head, "W_v", e, p),
        int8s(head, "W_o", p, e), biases(head, "b_q", p),   biases(head, "b_k", p),
        biases(head, "b_v", p),   biases(head, "b_o", e),   {}};
    const VectorFields requantisers = head.object("requant");
    const char* const names[] = {"Q", "K", "V", "QK", "AV", "OW"};
    for (std::size_t i = 0; i < weights.requantisers.size(); ++i) {
      weights.requantisers[i] = requantiser_of(requantisers.object(names[i]));
    }
    return weights;
  }

  void check_product(const VectorFields& fields, const std::string& place, const std::string& sums,
                     const std::string& results, const stream::Product& product, std::size_t cols) {
    const std::size_t s = shape_.sequence;
    expect_all(place + sums, product.sums, fields.matrix(sums, s, cols, {}), comparison_);
    expect_all(place + results, product.results, fields.matrix(results, s, cols, kInt8),
               comparison_);
  }

  void check_head(const VectorFields& fields, const std::string& place,
                  const stream::HeadResult& head) {
    struct Names {
      Phase phase;
      const char *sums, *results;
      std::size_t cols;
    };
    const std::size_t s = shape_.sequence, e = shape_.embedding, p = shape_.projection;
    const Names all[] = {{Phase::kQ, "acc_Q", "q", p},         {Phase::kK, "acc_K", "k", p},
                         {Phase::kV, "acc_V", "v", p},         {Phase::kQk, "acc_QK", "scores", s},
                         {Phase::kAv, "acc_AV", "context", p}, {Phase::kOw, "acc_OW", "out", e}};
    for (const Names& names : all) {
      check_product(fields, place, names.sums, names.results, head.of(names.phase), names.cols);
    }
    expect_all(place + "probabilities", head.probabilities,
               fields.matrix("probabilities", s, s, kUint8), comparison_);
  }

  static stream::Activation activation_of(const VectorFields& fields) {
    const std::string kind = fields.text("kind");
    if (kind == "identity") return {};
    if (kind == "relu") return {stream::ActivationKind::kRelu, {}, requantiser_of(fields)};
    if (kind == "gelu") {
      return {stream::ActivationKind::kGelu, gelu_of(fields), requantiser_of(fields)};
    }
    fields.fail("kind", R"(unknown, expected "identity", "gelu" or "relu")");
  }

  void check_feed_forward(const VectorFields& fields) {
    const std::size_t s = shape_.sequence, e = shape_.embedding, f = shape_.hidden;
    const VectorFields requantisers = fields.object("requant");
    const stream::FeedForwardResult result = stream::feed_forward(
        shape_, int8s(fields, "x", s, e),
        {int8s(fields, "W_1", e, f), int8s(fields, "W_2", f, e), biases(fields, "b_1", f),
         biases(fields, "b_2", e), requantiser_of(requantisers.object("F1")),
         requantiser_of(requantisers.object("F2")), activation_of(fields.object("activation"))});
    const std::string place = "feed_forward.";
    check_product(fields, place, "acc_F1", "before_activation", result.f1, f);
    expect_all(place + "hidden", result.hidden, fields.matrix("hidden", s, f, kInt8), comparison_);
    check_product(fields, place, "acc_F2", "out", result.f2, e);
  }

  const VectorFields& file_;
  VectorComparison& comparison_;
  stream::LayerShape shape_;
};

/// The phases of a layer that has just run, and what it took in all.
void check_phases(const VectorFields& run, const stream::StreamCore& core, const std::string& layer,
                  std::uint64_t cycles, VectorComparison& comparison) {
  std::uint64_t tiles = 0;
  const VectorFields phases = run.object("phases");
  for (const stream::PhaseTimes& times : core.phases()) {
    const std::string name(stream::name_of(times.phase));
    const VectorFields expected = phases.object(name);
    const std::pair<const char*, std::uint64_t> values[] = {{"tiles", times.tiles},
                                                            {"first_in", times.first_in},
                                                            {"last_in", times.last_in},
                                                            {"last_out", times.last_out}};
    for (const auto& [key, value] : values) {
      comparison.expect(name + "." + key, static_cast<std::int64_t>(value),
                        expected.integer(key, {}));
    }
    tiles += times.tiles;
  }
  comparison.expect(layer + "_tiles", static_cast<std::int64_t>(tiles),
                    run.integer(layer + "_tiles", {}));
  comparison.expect(layer + "_cycles", static_cast<std::int64_t>(cycles),
                    run.integer(layer + "_cycles", {}));
}

/// Attention and feed-forward layer on the preset, one after the other, with streams that always
/// move.
void check_cycles(const VectorFields& run, const hw::Machine::Stream& machine,
                  VectorComparison& comparison) {
  const auto side = [&](const char* key) {
    return static_cast<std::size_t>(run.integer(key, {1, machine.longest}));
  };
  const stream::LayerShape shape{side("S"), side("E"), side("P"), side("F")};
  stream::StreamCore core(machine);
  const auto layer = [&](std::vector<stream::Work> works, const char* name) {
    const std::uint64_t begin = core.cycle();
    core.begin(std::move(works), nullptr);
    while (core.step({})) continue;
    check_phases(run, core, name, core.cycle() - begin, comparison);
  };
  layer(stream::attention_work(shape, machine.length), "attention");
  core.step({});  // the start of the next layer
  layer(stream::feed_forward_work(shape, machine.length), "feed_forward");
}

constexpr char kStreamRequantisation[] = "ITA requantisation";
constexpr char kGelu[] = "ITA i-GELU with requantisation";
constexpr char kRelu[] = "ITA ReLU with requantisation";
constexpr char kLayer[] = "ITA attention and feed-forward layer";
constexpr char kCycles[] = "ITA cycles";

/// check(fields, comparison) for each case of the file.
template <typename Check>
std::vector<VectorResult> each_case(const VectorFields& file, Check check) {
  std::vector<VectorResult> results;
  for (const VectorFields& fields : file.objects("cases")) {
    VectorComparison comparison(fields.text("name"));
    check(fields, comparison);
    results.push_back(comparison.result());
  }
  return results;
}

}  // namespace

std::vector<std::string> stream_operations() {
  return {kStreamRequantisation, kStreamSoftmax, kGelu, kRelu, kLayer, kCycles};
}

std::optional<std::vector<VectorResult>> check_stream_file(const VectorFields& file,
                                                           const std::string& op,
                                                           VectorDatapath* datapath) {
  if (op == kStreamSoftmax) {
    return each_case(file, [&](const VectorFields& fields, VectorComparison& comparison) {
      check_softmax(fields, datapath, comparison);
    });
  }
  if (datapath != nullptr) {
    for (const std::string& other : stream_operations()) {
      if (op != other) continue;
      file.fail("op", "\"" + op + "\" not possible with " + datapath->name() +
                          ": of a streaming core's functions only \"" + kStreamSoftmax +
                          "\" has RTL");
    }
    return std::nullopt;
  }
  if (op == kStreamRequantisation) return each_case(file, check_requantisation);
  if (op == kGelu || op == kRelu) {
    const std::vector<std::int64_t> x = file.integers("x", kInt8);
    return each_case(file, [&](const VectorFields& fields, VectorComparison& comparison) {
      op == kGelu ? check_gelu(fields, x, comparison) : check_relu(fields, x, comparison);
    });
  }
  if (op == kLayer) {
    VectorComparison comparison(file.text("name"));
    LayerCheck(file, comparison).run();
    return std::vector{comparison.result()};
  }
  if (op == kCycles) {
    const hw::Machine::Stream machine = hw::find_machine("ita").stream;
    std::vector<VectorResult> results;
    for (const VectorFields& run : file.objects("runs")) {
      std::string name;
      for (const char* const key : {"S", "E", "P", "F"}) {
        name += (name.empty() ? "" : "/") + std::to_string(run.integer(key, {}));
      }
      VectorComparison comparison("S/E/P/F " + name);
      check_cycles(run, machine, comparison);
      results.push_back(comparison.result());
    }
    return results;
  }
  return std::nullopt;
}

}  // namespace systole::model
