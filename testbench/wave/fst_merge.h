#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace systole::testbench {

/// A waveform that becomes a part of another one.
struct FstPart {
  std::string path;
  std::string scope;  ///< dotted path below which its hierarchy is put
};

/// Puts the signals of `parts` into the FST file `path`, for as long as that lasts: what they show
/// before it begins are their first values, what they show later is left out. Of a part that ends
/// earlier the last values stay. `slice_bytes`: of the files together, as much as is read at a
/// time; in memory it takes some ten times that. Throws InputError if a file cannot be read or
/// written.
void merge_fst(const std::string& path, const std::vector<FstPart>& parts,
               std::uint64_t slice_bytes = std::uint64_t{16} << 20);

}  // namespace systole::testbench
