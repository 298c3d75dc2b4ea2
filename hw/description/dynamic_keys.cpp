#include "hw/description/key_table.h"

namespace systole::hw::key_table {

void append_dynamic_keys(std::vector<MachineKey>& keys) {
  using Dynamic = Machine::Dynamic;
  constexpr auto kDynamic = &Machine::dynamic;
  constexpr Text kSanger = "Sanger", kSpatten = "SpAtten";

  // clang-format off
  for (MachineKey& key : std::vector<MachineKey>{
      word<kDynamic, &Dynamic::kind>("dynamic.kind", {"none", "sanger", "spatten"},
          "attention that finds its mask while it runs, in the place of other cores", kChosen),
      integer<kDynamic, &Dynamic::rows>("dynamic.rows", "", 1, 1024,
          "of Sanger's array", kSanger),
      integer<kDynamic, &Dynamic::row_pes>("dynamic.row_pes", "elements", 1, 1024,
          "of a row, each holds a score", kSanger),
      integer<kDynamic, &Dynamic::tile_keys>("dynamic.tile_keys", "keys", 1, 4096,
          "of a tile that is predicted and packed", kSanger),
      word<kDynamic, &Dynamic::own_predictor>("dynamic.own_predictor", {"off", "on"},
          "4-bit MACs beside the array predict, in place of the array's own",
          kSanger),
      word<kDynamic, &Dynamic::common_phases>("dynamic.common_phases", {"off", "on"},
          "all rows change their phase together, as in the released RTL", "Sanger's paper: off"),
      integer<kDynamic, &Dynamic::key_macs>("dynamic.key_macs", "MACs", 1, 65536,
          "of SpAtten's products of Q and K", kSpatten),
      integer<kDynamic, &Dynamic::value_macs>("dynamic.value_macs", "MACs", 1, 65536,
          "of its products with V", kSpatten),
      integer<kDynamic, &Dynamic::top_k_lanes>("dynamic.top_k_lanes", "elements", 1, 4096,
          "that its quick select compares in a cycle", kSpatten),
      word<kDynamic, &Dynamic::prunes>("dynamic.prunes", {"values", "tokens"},
          "each query's values, or tokens from layer to layer", "SpAtten: both"),
      number<kDynamic, &Dynamic::element_bytes>("dynamic.element_bytes", "bytes", 0.125, 8,
          "of an element of Q, K, V and outputs", "Sanger: 2; SpAtten: 1.5"),
      number<kDynamic, &Dynamic::gbyte_per_s>("dynamic.gbyte_per_s", "GB/s", 0.001, 100000,
          "of the memory, always at its peak", "Sanger: 128; SpAtten: 512"),
  }) {
    keys.push_back(std::move(key));
  }
  // clang-format on
}

}  // namespace systole::hw::key_table
