#include "testbench/stream/stream_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "testbench/run/tensor_file.h"

namespace systole::testbench {
namespace {

namespace stream = hw::stream;
using tlm_model::StreamUnit;

/// Values of a matrix, and where they are in the shared memory.
template <typename Value>
struct Placed {
  std::vector<Value> values;
  std::uint64_t address = 0;
  [[nodiscard]] std::size_t bytes() const { return values.size() * sizeof(Value); }
};

/// A layer before it runs.
struct Layer {
  std::string name;
  StreamUnit::Job job;
  std::uint64_t address = 0;          ///< of its results
  std::vector<std::int8_t> expected;  ///< there
};

/// A tensor of the layers, which can be taken once they have run.
struct Recorded {
  std::string name;
  bool always;  ///< input or result of a layer
  std::function<model::TensorData(const tlm_model::SharedMemory&)> take;
};

template <typename Value>
model::FileDtype file_type_of() {
  if constexpr (std::is_same_v<Value, std::int32_t>) return model::FileDtype::kI32;
  return std::is_same_v<Value, std::uint8_t> ? model::FileDtype::kU8 : model::FileDtype::kI8;
}

/// Draws operands, gives them places, and makes the jobs.
class Workload {
 public:
  Workload(const StreamRequest& request, const hw::Machine& machine)
      : request_(request), length_(machine.stream.length) {
    const stream::LayerShape& shape = request.shape;
    if (request.product) {
      add_product();
    } else {
      for (std::size_t head = 0; head < request.heads; ++head) add_attention(head);
      if (shape.hidden != 0) add_feed_forward();
    }
  }

  [[nodiscard]] std::vector<Layer>& layers() { return layers_; }
  [[nodiscard]] std::uint64_t bytes() const { return std::max<std::uint64_t>(next_, 1); }
  [[nodiscard]] std::uint64_t macs() const { return macs_; }
  /// Of which StreamRequest asks.
  [[nodiscard]] std::vector<Recorded> wanted_tensors() const {
    std::vector<Recorded> wanted, others;
    std::vector<std::string> names;
    if (!request_.keep_tensors || !request_.functional) return wanted;
    for (const Recorded& tensor : recorded_) {
      (tensor.always ? wanted : others).push_back(tensor);
      if (!tensor.always) names.push_back(tensor.name);
    }
    if (request_.tensors.empty()) return wanted;
    for (const std::size_t i : find_names(request_.tensors, names, "of the layers")) {
      wanted.push_back(others[i]);
    }
    return wanted;
  }
  void place(tlm_model::SharedMemory& memory) const {
    for (const auto& put : puts_) put(memory);
  }

 private:
  template <typename Value>
  std::shared_ptr<Placed<Value>> draw(std::size_t count, std::int32_t lowest,
                                      std::int32_t highest) {
    auto placed = std::make_shared<Placed<Value>>();
    placed->address = next_;
    next_ += count * sizeof(Value);
    if (!request_.functional) return placed;
    placed->values.resize(count);
    const auto span = static_cast<std::uint32_t>(highest - lowest + 1);
    for (Value& value : placed->values) {
      value = static_cast<Value>(lowest + static_cast<std::int32_t>(random_() % span));
    }
    puts_.push_back([placed](tlm_model::SharedMemory& memory) {
      memory.poke(placed->address, placed->values.data(), placed->bytes());
    });
    return placed;
  }
  std::shared_ptr<Placed<std::int8_t>> int8s(std::size_t count) {
    return draw<std::int8_t>(count, -128, 127);
  }
  std::shared_ptr<Placed<std::int32_t>> biases(std::size_t count) {
    return draw<std::int32_t>(count, -(1 << 12), 1 << 12);
  }

  enum class Role { kOperand, kEnd };
  using Shape = std::vector<std::size_t>;

  /// What is in memory from `address` on.
  template <typename Value>
  void record_at(const std::string& name, const Shape& shape, std::uint64_t address, Role role) {
    recorded_.push_back(
        {name, role == Role::kEnd, [name, shape, address](const tlm_model::SharedMemory& memory) {
           std::size_t count = 1;
           for (const std::size_t size : shape) count *= size;
           std::vector<Value> values(count);
           memory.peek(address, values.data(), count * sizeof(Value));
           return model::make_tensor(name, file_type_of<Value>(), shape, values);
         }});
  }
  template <typename Value>
  void record(const std::string& name, const Shape& shape, const Placed<Value>& placed,
              Role role = Role::kOperand) {
    record_at<Value>(name, shape, placed.address, role);
  }
  /// Values that never leave the core; `values` is called once the layers have run.
  template <typename Values>
  void record_inside(const std::string& name, const Shape& shape, Values values) {
    recorded_.push_back({name, false, [name, shape, values](const tlm_model::SharedMemory&) {
                           const auto& of = values();
                           using Value = typename std::decay_t<decltype(of)>::value_type;
                           return model::make_tensor(name, file_type_of<Value>(), shape, of);
                         }});
  }

  /// Multiplier, shift and addend of each phase.
  void record_constants(const std::string& name, const std::vector<stream::Requantiser>& by) {
    std::vector<std::int32_t> words;
    for (const stream::Requantiser& one : by) {
      words.insert(words.end(), {one.multiplier, one.shift, one.addend});
    }
    const auto kept = std::make_shared<std::vector<std::int32_t>>(std::move(words));
    record_inside(
        name, {by.size(), 3}, [kept]() -> const auto& { return *kept; });
  }

  /// So that sums of k random products of that size spread over int8.
  static stream::Requantiser requantiser(std::size_t k, double product) {
    constexpr std::uint8_t kMultiplier = 100;
    const double spread = product * std::sqrt(static_cast<double>(k)) * kMultiplier / 50;
    return {kMultiplier, static_cast<std::uint8_t>(std::lround(std::log2(spread))), 0};
  }

  /// What the core reads of `placed`.
  template <typename Value>
  static std::vector<Value> fetch(StreamUnit& unit, const Placed<Value>& placed) {
    std::vector<Value> values(placed.values.size());
    unit.read(placed.address, values.data(), placed.bytes());
    return values;
  }

  void finish(Layer layer, const std::shared_ptr<std::vector<std::int8_t>>& results,
              std::size_t rows, std::size_t columns) {
    layer.address = next_;
    next_ += rows * columns;
    record_at<std::int8_t>(layer.name + ".output", {rows, columns}, layer.address, Role::kEnd);
    if (request_.functional) {
      layer.job.end = [results, address = layer.address](StreamUnit& unit) {
        unit.write(address, results->data(), results->size());
      };
    }
    layers_.push_back(std::move(layer));
  }

  void add_product() {
    const stream::LayerShape& s = request_.shape;
    const std::size_t m = s.sequence, k = s.embedding, n = s.projection;
    macs_ += m * n * k;
    const auto a = int8s(m * k), b = int8s(k * n);
    const auto bias = biases(request_.bias ? n : 0);
    const stream::Requantiser by = requantiser(k, 74.0 * 74.0);
    const auto multiply = [=](const auto& x, const auto& y, const auto& offset) {
      return stream::multiply(
                 {x.data(), y.data(), m, n, k, false, false, offset.empty() ? nullptr : &offset},
                 by)
          .results;
    };
    auto results = std::make_shared<std::vector<std::int8_t>>();
    Layer layer{"product", {stream::product_work(m, n, k, length_), {}, {}}, 0, {}};
    if (request_.functional) {
      layer.expected = multiply(a->values, b->values, bias->values);
      layer.job.begin = [=](StreamUnit& unit) -> const std::vector<stream::SoftmaxRow>* {
        const auto x = fetch(unit, *a), y = fetch(unit, *b);
        const auto offset = bias->values.empty() ? bias->values : fetch(unit, *bias);
        *results = multiply(x, y, offset);
        return nullptr;
      };
    }
    record("product.a", {m, k}, *a, Role::kEnd);
    record("product.b", {k, n}, *b, Role::kEnd);
    if (request_.bias) record("product.bias", {n}, *bias, Role::kEnd);
    record_constants("product.requantiser", {by});
    finish(std::move(layer), results, m, n);
  }

  void add_attention(std::size_t head) {
    const stream::LayerShape shape = request_.shape;
    const std::size_t s = shape.sequence, e = shape.embedding, p = shape.projection;
    macs_ += 4 * s * e * p + 2 * s * s * p;
    if (head == 0) x_q_ = int8s(s * e), x_kv_ = int8s(s * e);
    const auto x_q = x_q_, x_kv = x_kv_;
    const auto q = int8s(e * p), k = int8s(e * p), v = int8s(e * p), o = int8s(p * e);
    const auto bq = biases(p), bk = biases(p), bv = biases(p), bo = biases(e);
    const std::array<stream::Requantiser, stream::kAttentionPhases> by = {
        requantiser(e, 74.0 * 74.0),
        requantiser(e, 74.0 * 74.0),
        requantiser(e, 74.0 * 74.0),
        requantiser(p, 50.0 * 50.0),
        {100, 13, 0},
        requantiser(p, 50.0 * 74.0)};
    auto results = std::make_shared<stream::HeadResult>();
    auto out = std::make_shared<std::vector<std::int8_t>>();
    Layer layer{request_.heads == 1 ? "attention" : fmt::format("attention.head{}", head),
                {stream::attention_work(shape, length_), {}, {}},
                0,
                {}};
    if (request_.functional) {
      layer.expected = stream::attend(shape, x_q->values, x_kv->values,
                                      {q->values, k->values, v->values, o->values, bq->values,
                                       bk->values, bv->values, bo->values, by})
                           .of(stream::Phase::kOw)
                           .results;
      layer.job.begin = [=](StreamUnit& unit) {
        *results = stream::attend(
            shape, fetch(unit, *x_q), fetch(unit, *x_kv),
            {fetch(unit, *q), fetch(unit, *k), fetch(unit, *v), fetch(unit, *o), fetch(unit, *bq),
             fetch(unit, *bk), fetch(unit, *bv), fetch(unit, *bo), by});
        *out = results->of(stream::Phase::kOw).results;
        return &results->rows;
      };
    }
    if (head == 0) {
      record("attention.x_q", {s, e}, *x_q, Role::kEnd);
      record("attention.x_kv", {s, e}, *x_kv, Role::kEnd);
    }
    const std::string prefix = layer.name + ".";
    const auto project = [&](const std::string& name, const auto& weight, const auto& bias,
                             std::size_t from, std::size_t to) {
      record(prefix + name + ".weight", {from, to}, *weight);
      record(prefix + name + ".bias", {to}, *bias);
    };
    project("query", q, bq, e, p);
    project("key", k, bk, e, p);
    project("value", v, bv, e, p);
    project("proj", o, bo, p, e);
    const auto inside = [&](const char* name, stream::Phase phase, std::size_t columns) {
      record_inside(
          prefix + name, {s, columns},
          [ results, phase ]() -> const auto& { return results->of(phase).results; });
    };
    inside("query", stream::Phase::kQ, p);
    inside("key", stream::Phase::kK, p);
    inside("value", stream::Phase::kV, p);
    inside("scores", stream::Phase::kQk, s);
    record_inside(
        prefix + "probabilities",
        {s, s}, [results]() -> const auto& { return results->probabilities; });
    inside("context", stream::Phase::kAv, p);
    record_constants(prefix + "requantisers", {by.begin(), by.end()});
    finish(std::move(layer), out, s, e);
  }

  void add_feed_forward() {
    const stream::LayerShape shape = request_.shape;
    const std::size_t s = shape.sequence, e = shape.embedding, f = shape.hidden;
    macs_ += 2 * s * e * f;
    const auto x = int8s(s * e), w1 = int8s(e * f), w2 = int8s(f * e);
    const auto b1 = biases(f), b2 = biases(e);
    // The constants that ITA's generator makes of a scale of 1/32.
    const stream::Activation activation{request_.activation,
                                        {-80, -7091},
                                        request_.activation == stream::ActivationKind::kRelu
                                            ? stream::Requantiser{64, 6, 0}
                                            : stream::Requantiser{74, 20, 0}};
    const stream::Requantiser by1 = requantiser(e, 74.0 * 74.0), by2 = requantiser(f, 20.0 * 74.0);
    auto results = std::make_shared<stream::FeedForwardResult>();
    auto out = std::make_shared<std::vector<std::int8_t>>();
    Layer layer{"feed-forward", {stream::feed_forward_work(shape, length_), {}, {}}, 0, {}};
    if (request_.functional) {
      layer.expected = stream::feed_forward(
                           shape, x->values,
                           {w1->values, w2->values, b1->values, b2->values, by1, by2, activation})
                           .f2.results;
      layer.job.begin = [=](StreamUnit& unit) -> const std::vector<stream::SoftmaxRow>* {
        *results = stream::feed_forward(shape, fetch(unit, *x),
                                        {fetch(unit, *w1), fetch(unit, *w2), fetch(unit, *b1),
                                         fetch(unit, *b2), by1, by2, activation});
        *out = results->f2.results;
        return nullptr;
      };
    }
    record("feed-forward.x", {s, e}, *x, Role::kEnd);
    record("feed-forward.fc1.weight", {e, f}, *w1);
    record("feed-forward.fc1.bias", {f}, *b1);
    record("feed-forward.fc2.weight", {f, e}, *w2);
    record("feed-forward.fc2.bias", {e}, *b2);
    record_constants("feed-forward.requantisers", {by1, by2});
    record_inside(
        "feed-forward.hidden", {s, f}, [results]() -> const auto& { return results->hidden; });
    finish(std::move(layer), out, s, e);
  }

  const StreamRequest request_;
  const std::size_t length_;
  std::mt19937_64 random_{1};
  std::uint64_t next_ = 0;  ///< free address
  std::uint64_t macs_ = 0;
  std::shared_ptr<Placed<std::int8_t>> x_q_, x_kv_;
  std::vector<std::function<void(tlm_model::SharedMemory&)>> puts_;
  std::vector<Recorded> recorded_;
  std::vector<Layer> layers_;
};

void compare(const Layer& layer, const tlm_model::SharedMemory& memory, CheckResult& check) {
  std::vector<std::int8_t> found(layer.expected.size());
  memory.peek(layer.address, found.data(), found.size());
  ++check.operators;
  check.bytes += found.size();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == layer.expected[i]) continue;
    if (check.mismatches++ == 0) {
      check.first =
          fmt::format("{}[{}]: {} instead of {}", layer.name, i, found[i], layer.expected[i]);
    }
  }
}

}  // namespace

void check_stream_sizes(const StreamRequest& request, const hw::Machine& machine) {
  const auto check = [&](const char* what, std::size_t size) {
    if (size >= 1 && size <= machine.stream.longest && size % machine.stream.length == 0) return;
    throw hw::InputError(fmt::format("{}: found {}, expected a multiple of {} up to {}", what, size,
                                     machine.stream.length, machine.stream.longest));
  };
  const stream::LayerShape& shape = request.shape;
  check(request.product ? "M" : "--tokens", shape.sequence);
  check(request.product ? "K" : "--d", shape.embedding);
  check(request.product ? "N" : "--dim", shape.projection);
  if (shape.hidden != 0) check("--ffn", shape.hidden);
}

StreamResult run_stream(const StreamRequest& request, const hw::Machine& machine) {
  check_stream_sizes(request, machine);
  Workload workload(request, machine);
  const std::vector<Recorded> wanted = workload.wanted_tensors();
  std::size_t next = 0;
  tlm_model::StreamSystem system("system", machine, workload.bytes(), [&](StreamUnit::Job& job) {
    if (next == workload.layers().size()) return false;
    job = workload.layers()[next++].job;
    return true;
  });
  workload.place(system.memory);
  StreamResult result;
  static_cast<MachineRun&>(result) = run_machine(system);
  result.macs = workload.macs();
  for (std::size_t i = 0; i < workload.layers().size(); ++i) {
    const Layer& layer = workload.layers()[i];
    result.layers.push_back({layer.name, system.unit.times()[i]});
    if (request.functional) compare(layer, system.memory, result.check);
  }
  for (const Recorded& tensor : wanted) result.tensors.push_back(tensor.take(system.memory));
  result.cycles = result.layers.back().times.end;
  return result;
}

}  // namespace systole::testbench
