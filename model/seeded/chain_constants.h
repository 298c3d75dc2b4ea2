#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/network/network_writer.h"
#include "model/quantise/quantise_layers.h"

/// What the constants of a chain's nodes are, where its file does not say
/// (model/seeded/seeded_chain.h).
namespace systole::model {

/// An activation, and how far its codes are spread.
struct ChainValue {
  std::string type;
  NetworkShape shape;
  double deviation = 0.0;
};

/// A node in the making: what the file says, and what is made for it.
struct ChainNode {
  std::string type;  ///< of the result; empty: that of the operator
  NetworkNode node;
  std::vector<const ChainValue*> operands;  ///< activations of node.inputs
  std::vector<NetworkShape> shapes;         ///< of node.inputs
  /// Sizes of weights: outputs, rows and columns of a window.
  std::map<std::string, std::int64_t> sizes;
  nlohmann::ordered_json attributes = nlohmann::ordered_json::object();
  double deviation = 0.0;  ///< of the result
};

class ChainConstants {
 public:
  /// `writer` takes the constants and outlives this object; errors begin with `place`.
  ChainConstants(NetworkWriter& writer, const std::string& place, std::uint64_t seed,
                 const hw::Machine::Datapath& datapath);

  /// Fills in the type of the result, constants after the activations, and attributes that are not
  /// there. Throws InputError, without a place, for operands that do not go together.
  void fill(ChainNode& node);

 private:
  void set(ChainNode& node, const char* name, const nlohmann::ordered_json& value) const;
  void set_factor(ChainNode& node, const char* name, double value) const;
  template <typename T>
  void add_constant(ChainNode& node, const char* role, FileDtype dtype, const NetworkShape& shape,
                    const std::vector<T>& values);

  void fill_weights(ChainNode& node);
  void fill_sum(ChainNode& node);
  void fill_sigmoid(ChainNode& node) const;
  void fill_gelu(ChainNode& node) const;
  void fill_norm(ChainNode& node);
  void fill_attention(ChainNode& node) const;
  void fill_product(ChainNode& node) const;
  void fill_quotient(ChainNode& node) const;
  void fill_mean(ChainNode& node) const;
  [[nodiscard]] double spread(const std::string& type) const;

  NetworkWriter& writer_;
  const std::uint64_t seed_;
  const hw::Machine::Datapath datapath_;
  const LayerQuantiser quantiser_;
  std::uint32_t layers_ = 0;
  std::int64_t constant_bytes_ = 0;
};

/// Of codes that are used well: those of s8 at four deviations the largest, others as a residual
/// stream.
[[nodiscard]] double code_deviation(const std::string& type, const hw::Machine::Datapath& datapath);

}  // namespace systole::model
