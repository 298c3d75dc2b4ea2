#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"
#include "reproduce/published.h"
#include "reproduce/reproduction.h"
#include "reproduce/vitcod/rivals.h"
#include "testbench/attention/head_split.h"
#include "testbench/report/plot.h"

/// ViTCoD (HPCA 2023): its sparse attention engines, simulated, beside the figures of the paper and
/// of its public cycle counter.
namespace systole::testbench {

/// What `systole reproduce vitcod` was asked for.
struct VitcodOptions {
  std::string mask;                 ///< .npy of bool; empty: of the embedded maps at 90 %
  std::string maps;                 ///< .npy of floats, or a folder of them; empty: embedded
  bool cls = false;                 ///< the maps have a class token
  bool cpu = false;                 ///< measures this computer as well
  std::optional<std::int64_t> dim;  ///< features of a head in these files
};

/// Throws InputError as load_vitcod_subject() and run_vitcod().
[[nodiscard]] Reproduction reproduce_vitcod(const VitcodOptions& options,
                                            const hw::Machine& machine);

/// The .npy files of a folder, in the order of their names; empty if there is none or no folder.
[[nodiscard]] std::vector<std::string> maps_in(const std::string& folder);

/// traces/published/vitcod.toml.
[[nodiscard]] const PublishedPaper& vitcod_paper();

/// The masks that it runs.
struct VitcodSubject {
  struct Point {
    int percent;  ///< pruned, wanted
    model::AttentionMask mask;
  };

  hw::Machine machine;
  model::AttentionMask mask{model::AttentionShape{}};
  std::string mask_name;
  std::size_t mask_dim = 0;    ///< features of Q, K and V in a head
  bool own_mask = false;       ///< of a file, not of the maps
  bool deit_tiny = false;      ///< `mask` is the one that ViTCoD's authors published
  std::vector<Point> sweep;    ///< of the maps: 60 to 95 % pruned, as far as the rule reaches
  std::vector<double> maps;    ///< those of the sweep, [layers, heads, queries, keys]
  bool embedded_maps = false;  ///< those of vit65
  std::string maps_name;
  model::AttentionShape maps_shape;
  std::size_t maps_dim = 0;
  /// One file of a folder of maps.
  struct FolderMaps {
    std::string name;  ///< of the file, without what all of them begin with
    model::AttentionShape shape;
    std::vector<Point> sweep;
  };
  /// All files, if the maps are a folder: `sweep` is then that of the first. They have `maps_dim`.
  std::vector<FolderMaps> folder;

  /// The point of that sparsity, or null.
  [[nodiscard]] const Point* at(int percent) const;
};

/// Throws InputError for files that are no mask or maps, a folder without any, and for a dimension
/// out of range.
[[nodiscard]] VitcodSubject load_vitcod_subject(const VitcodOptions& options,
                                                const hw::Machine& machine);

/// A mask of that shape in which no cell is pruned.
[[nodiscard]] model::AttentionMask dense_mask(const model::AttentionShape& shape);

/// An auto-encoder of Q and K: `latent_heads` in memory for `heads` on chip.
struct AutoEncoder {
  std::size_t heads = 0, latent_heads = 0;
};

/// Where the link of Q and K takes as long with the auto-encoder as without it: the cycles until
/// the last row of a layer can be used, with room on chip for all of them. Masks (2 % of the bytes)
/// and latencies are part of it, so that what is measured lies up to 3.5 % from what is predicted.
struct BreakEven {
  AutoEncoder auto_encoder;
  double bytes_per_cycle = 0;  ///< of the bus; DRAM is faster
  double decoder_macs = 0;
  double predicted = 0;  ///< of the one of these two that was looked for
};

/// MACs of decoder lines with which the auto-encoder breaks even at `bytes_per_cycle`, found by
/// simulation and interpolated between numbers of lines. Predicted: latent heads x bytes per cycle,
/// as a byte of a latent head costs a product for each head, one for a byte that is saved. Takes
/// about six simulations, each in a child process. Throws std::invalid_argument for an auto-encoder
/// that does not compress, or for which no number of lines does.
[[nodiscard]] BreakEven decoder_break_even(const hw::Machine& machine, AutoEncoder auto_encoder,
                                           double bytes_per_cycle);

/// Bytes per cycle at which the auto-encoder breaks even if the array's D lines decode when all
/// rows have come in. Predicted: D (h - c) / (h c). The same otherwise.
[[nodiscard]] BreakEven array_break_even(const hw::Machine& machine, AutoEncoder auto_encoder);

/// Where an auto-encoder breaks even.
struct LinkBreakEven {
  std::string_view model;
  bool array = false;  ///< the array's own lines decode
  BreakEven found;
};

/// What one point of the sweep takes on Sanger and on SpAtten with the machine's MACs. SpAtten
/// ranks by the maps and prunes values alone; it has none that are not square.
struct RivalCycles {
  hw::dynamic::SangerCycles sanger;
  std::optional<hw::dynamic::SpattenCycles> spatten;
};
[[nodiscard]] RivalCycles sweep_rivals(const VitcodSubject& subject, std::size_t point);

/// Documents of `systole attention` and `systole run`, timing alone.
struct VitcodRuns {
  using Json = nlohmann::ordered_json;

  /// The subject's mask, and a dense one of its shape.
  Json reordered, threshold, unordered, dense;
  /// `reordered` with buffers of 1 KiB each for Q, K and V, or the least that holds a row.
  Json small_buffers;
  /// `reordered` with the auto-encoder of the authors on Q and K; none for a single head.
  std::optional<Json> auto_encoder;
  std::vector<LinkBreakEven> break_even;
  /// The sweep, by point, and a dense mask of the shape of the maps.
  std::vector<Json> sweep_reordered, sweep_unordered;
  Json sweep_dense;
  std::vector<RivalCycles> sweep_rivals;  ///< by point
  /// The same for each file of a folder.
  struct FolderRuns {
    std::vector<Json> pruned;
    Json dense;
  };
  std::vector<FolderRuns> folder;
  /// Whole networks: vit65 without and with a mask of 90 %, and with its auto-encoder; DeiT-Tiny's
  /// encoder, dense, and with the subject's mask if it is that of DeiT-Tiny.
  Json vit_dense, vit_pruned, vit_auto_encoder, deit_dense;
  std::optional<Json> deit_pruned;
};

/// Simulates all of them. Throws InputError for a machine that cannot run one.
[[nodiscard]] VitcodRuns run_vitcod(const VitcodSubject& subject);

// Figures of the documents of `systole attention` and `systole run`.

[[nodiscard]] double number(const nlohmann::ordered_json& document, const char* name);
/// Cycles from start to interrupt.
[[nodiscard]] double cycles_of(const nlohmann::ordered_json& document);
/// Cycles from start to interrupt, of one to those of the other.
[[nodiscard]] double speed_up(const nlohmann::ordered_json& slow,
                              const nlohmann::ordered_json& fast);
/// Engine cycles held up, of all causes.
[[nodiscard]] double stalled_cycles(const nlohmann::ordered_json& document);
/// MACs of kept cells, of SDDMM and SpMM.
[[nodiscard]] double kept_macs(const nlohmann::ordered_json& document);
/// Percent of the engine cycles that `cause` held up.
[[nodiscard]] double stalled_percent(const nlohmann::ordered_json& document, const char* cause);
/// Percent of the time that movement would take if nothing overlapped: of bytes read at the peak
/// rate, to these, the engine cycles without stalls and those of decoding.
[[nodiscard]] double movement_percent(const nlohmann::ordered_json& document,
                                      const hw::Machine& machine);

/// What the paper's shares of movement, without and with the auto-encoder, say of the two numbers
/// that it withholds, if nothing overlaps and the engines take ours.
struct ImpliedBalance {
  double bytes_per_cycle;  ///< of the memory: movement is the first share without it
  double decoder_macs;     ///< with it, movement at that rate is the second share
  double slower;           ///< then: time with the auto-encoder over that without
};
/// `shares`: parts, above 0. A balance that needs no decoder at all has infinite MACs.
[[nodiscard]] ImpliedBalance implied_balance(const nlohmann::ordered_json& without,
                                             const nlohmann::ordered_json& with,
                                             std::pair<double, double> shares);

/// SDDMM cycles of all heads one after the other, before any stall, by how the lines share the
/// work: the cycle contract of hw/attention/timing/attention_cycles.h.
struct LineMappingCycles {
  double ideal = 0;             ///< kept cells x features / MACs
  std::uint64_t packed = 0;     ///< dense block in full; the rest on lines that never wait
  std::uint64_t per_line = 0;   ///< published threshold, one column of keys per line
  std::uint64_t broadcast = 0;  ///< published threshold, one column on all sparse lines
  std::uint64_t best = 0;       ///< per line, global columns chosen by cycles
  std::uint64_t unordered = 0;  ///< no global columns, one column per line
  std::uint64_t unordered_broadcast = 0;  ///< no global columns, one column on all lines
};

[[nodiscard]] LineMappingCycles line_mapping_cycles(const model::AttentionMask& mask,
                                                    std::size_t dim,
                                                    const hw::Machine::Attention& attention);

// The tables, one per published result.

/// A metric that a run does not have.
inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

/// The paper's means are over the points up to this one, % pruned.
inline constexpr int kLastOfVitcodMean = 90;

/// SDDMM cycles before stalls by how the lines share the columns of keys.
[[nodiscard]] ReproductionSection line_mapping_section(const VitcodSubject& subject,
                                                       const VitcodRuns& runs);
/// How much faster pruning and reordering make attention.
[[nodiscard]] ReproductionSection pruning_section(const VitcodSubject& subject,
                                                  const VitcodRuns& runs);
/// Bytes of Q, K and V, and how much of the latency they are.
[[nodiscard]] ReproductionSection movement_section(const VitcodSubject& subject,
                                                   const VitcodRuns& runs);
/// Bytes, cycles and energy with an auto-encoder of Q and K.
[[nodiscard]] ReproductionSection auto_encoder_section(const VitcodSubject& subject,
                                                       const VitcodRuns& runs);
/// How many MACs, or how slow a memory, it needs to be worth it.
[[nodiscard]] ReproductionSection break_even_section(const VitcodRuns& runs);
/// Beside a dense map, Sanger and SpAtten, on as many MACs.
[[nodiscard]] ReproductionSection baseline_section(const VitcodSubject& subject,
                                                   const VitcodRuns& runs);
/// How the two rivals came about: where their time goes, and what other ways to build them take.
[[nodiscard]] ReproductionSection rival_section(const VitcodSubject& subject,
                                                const VitcodRuns& runs);
/// Beside them at their published size, clock and bandwidth.
[[nodiscard]] ReproductionSection published_rival_section(const VitcodSubject& subject,
                                                          const VitcodRuns& runs);
[[nodiscard]] ReproductionSection roofline_section(const VitcodSubject& subject,
                                                   const VitcodRuns& runs);
[[nodiscard]] ReproductionSection energy_section(const VitcodSubject& subject,
                                                 const VitcodRuns& runs);
/// What faster attention is worth for the whole network.
[[nodiscard]] ReproductionSection network_section(const VitcodSubject& subject,
                                                  const VitcodRuns& runs);
/// Beside the authors' closed-form counter.
[[nodiscard]] ReproductionSection counter_section(const VitcodSubject& subject,
                                                  const VitcodRuns& runs);
/// Every file of a folder of maps, by sparsity.
[[nodiscard]] ReproductionSection folder_section(const VitcodSubject& subject,
                                                 const VitcodRuns& runs);
/// Beside this computer, which is measured when this is called: figures that differ from run to
/// run.
[[nodiscard]] ReproductionSection cpu_section(const VitcodSubject& subject, const VitcodRuns& runs);
/// Published comparisons with hardware that is not modelled here.
[[nodiscard]] ReproductionSection quoted_section();

/// Draws every head, layers from left to right and heads from top to bottom: above in the order of
/// the tokens, below with the global columns first. At most kMaxDrawnHeads by kMaxDrawnLayers,
/// and of long heads every so manieth row and column.
[[nodiscard]] Plot mask_plot(std::string file, const std::string& title,
                             const model::AttentionMask& mask, const SplitLayers& layers);

inline constexpr std::size_t kMaxDrawnLayers = 12, kMaxDrawnHeads = 6;

/// "vitcod_mask.png" (each head before and after reordering), "vitcod_cycles.png" (phases and
/// stalls by layer), "vitcod_break_even.png" (decoder MACs over
/// bandwidth), "vitcod_sparsity.png" (speed-up over sparsity).
[[nodiscard]] std::vector<Plot> vitcod_plots(const VitcodSubject& subject, const VitcodRuns& runs);

}  // namespace systole::testbench
