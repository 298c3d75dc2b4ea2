#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "testbench/rtl/array/accumulator_sram_rtl.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/system_time.h"
#include "testbench/rtl/engine/engines.h"
#include "testbench/rtl/engine/own_block.h"

namespace systole::testbench {

namespace {

/// `own`: where users' RTL is; `options`: of the block.
std::unique_ptr<AccumulatorSramRtl> make_sram(std::uint32_t cols, const hw::AccumulatorBanks& banks,
                                              const RtlOptions& own, const RtlOptions& options,
                                              RtlCounts& counts) {
  const OwnBlock* const block = find_own(own, "accumulator_sram", "accumulator_sram",
                                         {{"cols", "array.cols", cols},
                                          {"ports", "accumulator.ports", banks.ports},
                                          {"rows", "rows of a bank", banks.rows_per_bank}},
                                         counts);
  if (block == nullptr) return make_accumulator_sram(cols, banks, options);
  OwnArguments arguments;
  arguments.banks = banks;
  return make_own<AccumulatorSramRtl>(*block, arguments, options);
}

class AccumulatorRtlEngine final : public TimedRtl<hw::AccumulatorEngine> {
 public:
  AccumulatorRtlEngine(const hw::Machine& machine, const RtlOptions& own, const RtlOptions& options,
                       RtlCounts& counts);

  void write(const hw::AccumulatorTile& tile, const std::int32_t* values, std::size_t pitch,
             bool accumulate) override;
  void read(const hw::AccumulatorTile& tile, std::int32_t* values, std::size_t pitch) override;

 private:
  /// The part of a row of a tile that is in one row of the memory.
  struct Piece {
    std::uint64_t tile_row, tile_col;
    std::uint64_t memory_row, memory_col;
    std::uint64_t cols;
  };

  struct Stream {
    hw::AccumulatorRows rows;
    std::vector<Piece> pieces;  ///< one per row
  };

  [[nodiscard]] std::vector<Stream> streams_of(const hw::AccumulatorTile& tile) const;
  void clear();
  void run(const std::vector<AccumulatorSramRtl::Write>& writes,
           const std::vector<AccumulatorSramRtl::Read>& reads, std::uint64_t contract,
           const std::int32_t* expected);

  std::uint32_t cols_;
  hw::AccumulatorBanks banks_;
  std::unique_ptr<AccumulatorSramRtl> rtl_;
  hw::AccumulatorModel model_;
  RtlCheck check_;
  const bool shown_;
};

AccumulatorRtlEngine::AccumulatorRtlEngine(const hw::Machine& machine, const RtlOptions& own,
                                           const RtlOptions& options, RtlCounts& counts)
    : TimedRtl(options.time),
      cols_(machine.array.cols),
      banks_(hw::accumulator_banks(machine)),
      rtl_(make_sram(cols_, banks_, own, options, counts)),
      model_(banks_.banks * banks_.rows_per_bank * cols_),
      check_(counts, options),
      shown_(options.view != nullptr) {
  clear();
}

// The memory has no reset, but a program may read what it never wrote, and the model has 0 there.
void AccumulatorRtlEngine::clear() {
  const std::vector<std::int32_t> zeros(cols_, 0);
  std::vector<AccumulatorSramRtl::Write> writes(banks_.banks * banks_.rows_per_bank);
  for (std::size_t row = 0; row < writes.size(); ++row) writes[row] = {row, zeros.data()};
  check_.run([&] { return rtl_->run(writes, {}); });
}

// A tile of whole memory rows goes as the array computes it, a column of memory rows after the
// other. Where the rows of the tile begin anywhere in a memory row, they go one after the other.
std::vector<AccumulatorRtlEngine::Stream> AccumulatorRtlEngine::streams_of(
    const hw::AccumulatorTile& tile) const {
  const auto piece = [&](std::uint64_t row, std::uint64_t memory_row) {
    const std::uint64_t row_begin = tile.first + row * tile.pitch;
    const std::uint64_t begin = std::max(row_begin, memory_row * cols_);
    const std::uint64_t end = std::min(row_begin + tile.cols, (memory_row + 1) * cols_);
    return Piece{row, begin - row_begin, memory_row, begin % cols_, end - begin};
  };
  std::vector<Stream> streams;
  if (tile.rows == 0 || tile.cols == 0) return streams;
  if (tile.first % cols_ == 0 && tile.pitch % cols_ == 0) {
    const std::uint64_t stride = tile.pitch / cols_;
    for (std::uint64_t col = 0; col < tile.cols; col += cols_) {
      Stream stream{{(tile.first + col) / cols_, tile.rows, stride}, {}};
      for (std::uint64_t row = 0; row < tile.rows; ++row) {
        stream.pieces.push_back(piece(row, stream.rows.first + row * stride));
      }
      streams.push_back(std::move(stream));
    }
    return streams;
  }
  for (std::uint64_t row = 0; row < tile.rows; ++row) {
    const std::uint64_t begin = tile.first + row * tile.pitch;
    const std::uint64_t first = begin / cols_;
    const std::uint64_t last = (begin + tile.cols - 1) / cols_;
    Stream stream{{first, last - first + 1, 1}, {}};
    for (std::uint64_t at = first; at <= last; ++at) stream.pieces.push_back(piece(row, at));
    streams.push_back(std::move(stream));
  }
  return streams;
}

void AccumulatorRtlEngine::run(const std::vector<AccumulatorSramRtl::Write>& writes,
                               const std::vector<AccumulatorSramRtl::Read>& reads,
                               std::uint64_t contract, const std::int32_t* expected) {
  check_.begin(contract, expected);
  const AccumulatorSramRtl::Cycles cycles = check_.run([&] { return rtl_->run(writes, reads); });
  check_.end(cycles.write.cycles + cycles.read.cycles);
  check_.assertions(rtl_->failed());
}

void AccumulatorRtlEngine::write(const hw::AccumulatorTile& tile, const std::int32_t* values,
                                 std::size_t pitch, bool accumulate) {
  for (const Stream& stream : streams_of(tile)) {
    std::vector<std::int32_t> rows(stream.pieces.size() * cols_, 0);
    std::vector<AccumulatorSramRtl::Write> writes;
    for (const Piece& piece : stream.pieces) {
      std::int32_t* row = rows.data() + writes.size() * cols_;
      std::copy_n(values + piece.tile_row * pitch + piece.tile_col, piece.cols,
                  row + piece.memory_col);
      const std::uint64_t mask = ((std::uint64_t{1} << piece.cols) - 1) << piece.memory_col;
      writes.push_back({piece.memory_row, row, accumulate, static_cast<std::uint32_t>(mask)});
    }
    run(writes, {}, hw::accumulator_cycles(banks_, stream.rows, accumulate, {}).write, nullptr);
  }
  model_.write(tile, values, pitch, accumulate);
  check_.operation();
}

void AccumulatorRtlEngine::read(const hw::AccumulatorTile& tile, std::int32_t* values,
                                std::size_t pitch) {
  for (const Stream& stream : streams_of(tile)) {
    std::vector<std::int32_t> rows(stream.pieces.size() * cols_);
    std::vector<AccumulatorSramRtl::Read> reads;
    for (const Piece& piece : stream.pieces) {
      reads.push_back({piece.memory_row, rows.data() + reads.size() * cols_});
    }
    std::vector<std::int32_t> expected(rows.size());
    for (std::size_t i = 0; shown_ && i < reads.size(); ++i) {
      model_.read({reads[i].row * cols_, 1, cols_, cols_}, expected.data() + i * cols_, cols_);
    }
    run({}, reads, hw::accumulator_cycles(banks_, {}, false, stream.rows).read, expected.data());
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const Piece& piece = stream.pieces[i];
      std::copy_n(reads[i].values + piece.memory_col, piece.cols,
                  values + piece.tile_row * pitch + piece.tile_col);
    }
  }
  std::vector<std::int32_t> expected(tile.rows * tile.cols);
  model_.read(tile, expected.data(), tile.cols);
  for (std::size_t row = 0; row < tile.rows; ++row) {
    check_.values(values + row * pitch, expected.data() + row * tile.cols, tile.cols);
  }
  check_.operation();
}

}  // namespace

std::unique_ptr<hw::AccumulatorEngine> make_accumulator_engine(const hw::Machine& machine,
                                                               const RtlOptions& options,
                                                               RtlReport& report) {
  return std::make_unique<AccumulatorRtlEngine>(
      machine, options, options.for_block("accumulator_sram", machine.array.cols),
      report["accumulator_sram"]);
}

}  // namespace systole::testbench
