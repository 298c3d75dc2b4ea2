#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/ring/instruction.h"
#include "model/checkpoint/text_checkpoint.h"
#include "reproduce/published.h"
#include "reproduce/reproduction.h"

/// DFX (MICRO 2022): text generation with GPT-2 on a ring of cores, beside what was measured.
namespace systole::testbench {

/// What `systole reproduce dfx` can do apart: "bounds" (from shapes alone), "latency" (GPT-2 345M),
/// "sizes" (the others), "shares" (operations and time), "ideal" (without cost of control),
/// "energy" (of a token), "batch" (several texts, and a pipeline), "checks" (syncs and bytes) and
/// "whatif" (sweeps, for pictures).
[[nodiscard]] const std::vector<std::string>& dfx_parts();

/// `parts` of dfx_parts(); none: all.
[[nodiscard]] Reproduction reproduce_dfx(const std::vector<std::string>& parts);

/// traces/published/dfx.toml.
[[nodiscard]] const PublishedPaper& dfx_paper();

inline constexpr std::array<std::uint32_t, 3> kDfxCores = {1, 2, 4};

/// A text of which only the time counts.
struct DfxTask {
  std::string name;                     ///< "345M x4": size and cores, as tables name them
  std::uint32_t input = 4, output = 4;  ///< tokens
  std::string machine = "dfx";
  std::vector<std::string> settings = {};  ///< "ring.hop_ns=300"
  std::uint32_t layers = 0;                ///< of the network's, which are alike; 0: all
  std::uint32_t batch = 1;                 ///< texts side by side
  std::uint32_t requests = 1;              ///< of such texts, all at once
  bool draws = false;                      ///< the host reads all logits and chooses the token
  bool timeline = false;                   ///< of the first token after the prompt

  [[nodiscard]] std::string size() const { return name.substr(0, name.rfind(" x")); }
  /// All three throw hw::InputError if the name has no cores or no known size.
  [[nodiscard]] std::uint32_t cores() const;
  [[nodiscard]] hw::Machine make_machine() const;
  [[nodiscard]] model::TextShape make_shape() const;
};

/// What came out of one.
struct DfxRun {
  DfxTask task;
  nlohmann::ordered_json figures;

  [[nodiscard]] double number(const char* name) const { return figures.at(name).get<double>(); }
  /// From the host's start to its notice of the end.
  [[nodiscard]] double milliseconds() const { return number("total_ms"); }
  [[nodiscard]] double first_token_milliseconds() const { return number("first_ms"); }
  /// Without the host's time.
  [[nodiscard]] double pass_milliseconds() const { return number("pass_ms"); }
  [[nodiscard]] double last_pass_milliseconds() const { return number("last_ms"); }
  /// Of all requests.
  [[nodiscard]] double tokens_per_second() const {
    return 1e3 * task.output * task.requests / milliseconds();
  }
  /// Cycles of core 0 in that phase, of all passes.
  [[nodiscard]] double cycles(hw::dfx::Phase phase) const {
    return figures.at("phases").at(static_cast<std::size_t>(phase)).get<double>();
  }
  /// Of all phases.
  [[nodiscard]] double share(hw::dfx::Phase phase) const;
  /// Cycles of a layer in a pass.
  [[nodiscard]] double layer_cycles() const;
  /// Exchanges of a layer in a pass.
  [[nodiscard]] double layer_syncs() const;
  /// What they take of core 0's time.
  [[nodiscard]] double layer_sync_microseconds() const;
  /// Over a link in a pass, of a layer: mean of all links, without what follows the LM head.
  [[nodiscard]] double layer_link_bytes() const;
};

/// Simulates them, as many at a time as the host has processors; in the order of the tasks.
[[nodiscard]] std::vector<DfxRun> run_dfx(const std::vector<DfxTask>& tasks);

// What follows from the sizes of a network and of a machine with cores for text generation, without
// simulating it.

/// Bytes of the weights of layers and output vocabulary, in all cores' memories.
[[nodiscard]] double weight_bytes(const model::TextShape& shape, const hw::Machine& machine);
/// Bytes of the keys and values of one token, of all layers.
[[nodiscard]] double cache_bytes(const model::TextShape& shape);
/// What all cores' HBM needs at least for a token with `context` tokens in the caches, if it is
/// shared evenly: ms at `gbyte_per_s` a core.
[[nodiscard]] double hbm_milliseconds(const model::TextShape& shape, const hw::Machine& machine,
                                      std::uint32_t context, double gbyte_per_s);
/// What a core can take from its HBM, GB/s.
[[nodiscard]] double port_gbyte_per_s(const hw::Machine& machine);
/// What the data buses of a core's HBM carry, GB/s.
[[nodiscard]] double bus_gbyte_per_s(const hw::Machine& machine);

/// Cycles of a token's products on the core that has most of them, a tile in a cycle; attention's
/// own products are not in it.
struct MatrixCycles {
  std::uint64_t projection;  ///< query, and as many each for key and value
  std::uint64_t hidden;      ///< the first product of the FFN
  std::uint64_t layer, lm_head, total;
};
[[nodiscard]] MatrixCycles matrix_cycles(const model::TextShape& shape, const hw::Machine& machine);

/// The larger of both bounds of a token, ms: weights at the port's rate, and products.
[[nodiscard]] double bound_milliseconds(const model::TextShape& shape, const hw::Machine& machine,
                                        std::uint32_t context);

/// What a layer's four exchanges take at least in a ring of its cores, us: each core's part goes
/// around one way, or half of the parts each way (of two cores half of each part).
[[nodiscard]] double ring_microseconds(const model::TextShape& shape, const hw::Machine& machine,
                                       bool both_ways, double hop_us);

/// Operations of a layer with `context` tokens in its caches; a multiply-accumulate is two.
struct LayerOperations {
  double norm, attention, residual, feed_forward;
  [[nodiscard]] double all() const { return norm + attention + residual + feed_forward; }
};
[[nodiscard]] LayerOperations layer_operations(const model::TextShape& shape,
                                               std::uint32_t context);

// The tables, one per published result.

/// 345M by cores, [64:64]: what the machine is calibrated on. `by_cores`: those of kDfxCores.
[[nodiscard]] ReproductionSection dfx_cores_section(const std::vector<DfxRun>& by_cores);
/// 345M on one core by lengths of prompt and text.
[[nodiscard]] ReproductionSection dfx_lengths_section(const DfxRun& at_64);
/// How much of memory and multipliers that is.
[[nodiscard]] ReproductionSection dfx_efficiency_section(const DfxRun& one_core);
/// Joules of a token: boards, events, and against a GPU.
[[nodiscard]] ReproductionSection dfx_energy_section();
/// Texts side by side, and layers divided among the cores.
[[nodiscard]] ReproductionSection dfx_batch_section();
/// Several rings at one host.
[[nodiscard]] ReproductionSection dfx_cluster_section();
/// A prompt token by token, and together.
[[nodiscard]] ReproductionSection dfx_prompt_section();
/// The other sizes, and GPUs.
[[nodiscard]] ReproductionSection dfx_sizes_section();
/// Operations by kind.
[[nodiscard]] ReproductionSection dfx_operations_section();
/// Time by phase. `runs`: 345M on one core first, 1.5B on four last.
[[nodiscard]] ReproductionSection dfx_time_section(const std::vector<DfxRun>& runs);
/// The order of value, key and query.
[[nodiscard]] ReproductionSection dfx_order_section();
/// Bytes of a token and the time that they take.
[[nodiscard]] ReproductionSection dfx_roofline_section();
/// Cycles of the multipliers.
[[nodiscard]] ReproductionSection dfx_matrix_section();
/// Time of a layer's exchanges.
[[nodiscard]] ReproductionSection dfx_ring_section();
/// The same, simulated.
[[nodiscard]] ReproductionSection dfx_sync_section();
/// A machine without cost of control beside its bounds.
[[nodiscard]] ReproductionSection dfx_ideal_section();
/// What has to be exact: exchanges, and bytes over links and from memory.
[[nodiscard]] ReproductionSection dfx_traffic_section();

/// "dfx_token.png": units of all cores over the time of a token, by phase, and a layer of it
/// larger. `run`: with a timeline.
[[nodiscard]] Plot dfx_token_plot(const DfxRun& run);

/// "dfx_shares.png": a pass of each run, in ms by phase.
[[nodiscard]] Plot dfx_shares_plot(const std::vector<DfxRun>& runs);

// What if DFX had more cores, other memory, another ring?

/// A line of a chart: ms of a pass over what changes.
struct DfxCurve {
  std::string name;
  std::vector<double> x;
  std::vector<DfxRun> runs;  ///< by x
};

struct DfxWhatIf {
  std::vector<DfxCurve> cores, memory, hops;
};

/// Simulates all of it.
[[nodiscard]] DfxWhatIf run_dfx_what_if();

/// Ends of the curves, none of them published.
[[nodiscard]] ReproductionSection dfx_what_if_section(const DfxWhatIf& runs);

/// "dfx_cores.png" (ms of a pass over cores, with what was measured), "dfx_memory.png" (over the
/// HBM's rate), "dfx_hops.png" (over the latency of a hop).
[[nodiscard]] std::vector<Plot> dfx_what_if_plots(const DfxWhatIf& runs);

}  // namespace systole::testbench
