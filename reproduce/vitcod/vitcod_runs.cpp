#include <cstdint>
#include <deque>
#include <string_view>

#include "model/mask/global_columns.h"
#include "model/seeded/shapes.h"
#include "reproduce/vitcod/vitcod.h"
#include "testbench/attention/attention_simulation.h"
#include "testbench/attention/attention_workload.h"
#include "testbench/attention/head_split.h"
#include "testbench/attention/report_attention.h"
#include "testbench/common/side_by_side.h"
#include "testbench/network/network_mask.h"
#include "testbench/network/networks.h"
#include "testbench/report/timing_document.h"

namespace systole::testbench {
namespace {

using Json = VitcodRuns::Json;

constexpr std::uint64_t kMaskSeed = 1;
constexpr std::uint32_t kDeitTokens = 197;

Json attention_document(const model::AttentionMask& mask, const HeadSplit& split, std::size_t dim,
                        const hw::Machine& machine, std::size_t latent_heads = 0) {
  const model::AttentionShape& shape = mask.shape();
  const AttentionWorkload workload =
      make_attention_workload({shape.heads, shape.queries, shape.keys, dim, latent_heads},
                              split_mask(mask, split, dim, machine.attention), machine, false);
  AttentionReport report;
  report.machine = machine;
  report.reordering = split.text();
  report.functional = false;
  report.workload = &workload;
  report.result = simulate_attention(workload, machine, false);
  return attention_json(report);
}

Json deit_document(const hw::Machine& machine, const model::AttentionMask* mask) {
  model::SeededOptions options;
  options.datapath = machine.datapath;
  options.shape_only = true;
  if (mask != nullptr) options.keep = keep_of(*mask);
  return timing_document(model::make_seeded_encoder("deit-tiny", model::find_shape("deit-tiny"),
                                                    kDeitTokens, kMaskSeed, options),
                         machine);
}

hw::Machine with_small_buffers(hw::Machine machine, std::size_t dim) {
  hw::Machine::Attention& attention = machine.attention;
  const auto least = static_cast<std::uint32_t>((dim + 1023) / 1024);
  attention.query_kib = attention.key_kib = attention.value_kib = least;
  return machine;
}

/// Models of ViTCoD, heads and latent heads.
constexpr struct {
  std::string_view name;
  AutoEncoder auto_encoder;
} kModels[] = {{"Tiny", {3, 2}}, {"Small", {6, 3}}, {"Base", {12, 6}}};
/// A quarter, half and all of 76.8 GB/s at 500 MHz.
constexpr double kBytesPerCycle[] = {38.4, 76.8, 153.6};

Json break_even_document(const BreakEven& found) {
  return {{"bytes_per_cycle", found.bytes_per_cycle},
          {"decoder_macs", found.decoder_macs},
          {"predicted", found.predicted}};
}

}  // namespace

VitcodRuns run_vitcod(const VitcodSubject& subject) {
  VitcodRuns runs;
  ExperimentBatch batch;
  const hw::Machine& machine = subject.machine;
  const model::AttentionMask& mask = subject.mask;
  const HeadSplit best, unordered{false, {}};
  const HeadSplit published{true, model::default_threshold(mask.shape().queries)};
  const auto attention = [&](Json& document, const model::AttentionMask& cells,
                             const HeadSplit& split, std::size_t dim, const hw::Machine& on) {
    batch.add(document,
              [&cells, split, dim, on] { return attention_document(cells, split, dim, on); });
  };
  const model::AttentionMask dense = dense_mask(mask.shape());
  const model::AttentionMask dense_maps = dense_mask(subject.maps_shape);
  // The longest first.
  batch.add(runs.deit_dense, [&] { return deit_document(machine, nullptr); });
  if (subject.deit_tiny) {
    runs.deit_pruned.emplace();
    batch.add(*runs.deit_pruned, [&] { return deit_document(machine, &mask); });
  }
  attention(runs.dense, dense, best, subject.mask_dim, machine);
  attention(runs.reordered, mask, best, subject.mask_dim, machine);
  attention(runs.threshold, mask, published, subject.mask_dim, machine);
  attention(runs.unordered, mask, unordered, subject.mask_dim, machine);
  attention(runs.small_buffers, mask, best, subject.mask_dim,
            with_small_buffers(machine, subject.mask_dim));
  attention(runs.sweep_dense, dense_maps, best, subject.maps_dim, machine);
  runs.sweep_reordered.resize(subject.sweep.size());
  runs.sweep_unordered.resize(subject.sweep.size());
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    const model::AttentionMask& point = subject.sweep[i].mask;
    attention(runs.sweep_reordered[i], point, best, subject.maps_dim, machine);
    attention(runs.sweep_unordered[i], point, unordered, subject.maps_dim, machine);
  }
  std::deque<model::AttentionMask> dense_folder;
  runs.folder.resize(subject.folder.size());
  for (std::size_t file = 0; file < subject.folder.size(); ++file) {
    const VitcodSubject::FolderMaps& files_maps = subject.folder[file];
    VitcodRuns::FolderRuns& found = runs.folder[file];
    attention(found.dense, dense_folder.emplace_back(dense_mask(files_maps.shape)), best,
              subject.maps_dim, machine);
    found.pruned.resize(files_maps.sweep.size());
    for (std::size_t i = 0; i < files_maps.sweep.size(); ++i) {
      attention(found.pruned[i], files_maps.sweep[i].mask, best, subject.maps_dim, machine);
    }
  }
  const auto network = [&](Json& document, const char* name) {
    batch.add(document, [&machine, name] {
      return timing_document(load_network(name, machine).graph, machine);
    });
  };
  network(runs.vit_dense, "vit65");
  network(runs.vit_pruned, "vit65-sparse90");
  network(runs.vit_auto_encoder, "vit65-sparse90-ae");
  if (mask.shape().heads > 1) {
    runs.auto_encoder.emplace();
    batch.add(*runs.auto_encoder, [&, latent_heads = (mask.shape().heads + 1) / 2] {
      return attention_document(mask, best, subject.mask_dim, machine, latent_heads);
    });
  }
  std::deque<Json> break_even;
  const auto add_break_even = [&](const LinkBreakEven& point) {
    runs.break_even.push_back(point);
    batch.add(break_even.emplace_back(), [&machine, point] {
      const auto& [auto_encoder, bytes_per_cycle, macs, predicted] = point.found;
      return break_even_document(point.array
                                     ? array_break_even(machine, auto_encoder)
                                     : decoder_break_even(machine, auto_encoder, bytes_per_cycle));
    });
  };
  for (const auto& [name, auto_encoder] : kModels) {
    for (const double bytes : kBytesPerCycle) {
      add_break_even({name, false, {auto_encoder, bytes, 0, 0}});
    }
    add_break_even({name, true, {auto_encoder, 0, 0, 0}});
  }
  batch.run();
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    runs.sweep_rivals.push_back(sweep_rivals(subject, i));
  }
  for (std::size_t i = 0; i < break_even.size(); ++i) {
    BreakEven& found = runs.break_even[i].found;
    found.bytes_per_cycle = number(break_even[i], "bytes_per_cycle");
    found.decoder_macs = number(break_even[i], "decoder_macs");
    found.predicted = number(break_even[i], "predicted");
  }
  return runs;
}

}  // namespace systole::testbench
