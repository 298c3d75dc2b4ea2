#include "hw/dma/store_schedule.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/round.h"
#include "hw/postop/microcode.h"
#include "hw/postop/row_flow.h"
#include "hw/postop/store_set_up.h"

namespace systole::hw {
namespace {

constexpr std::size_t kNoChain = ~std::size_t{0};

/// Rows of vectors, one vector after the other.
struct Vectors {
  std::uint64_t m = 0, n = 0, lanes = 1;
  std::uint64_t row = 0, column = 0;

  [[nodiscard]] bool over() const { return row == m; }
  [[nodiscard]] std::uint64_t width() const { return std::min(lanes, n - column); }
  [[nodiscard]] bool ends_row() const { return column + lanes >= n; }
  void next() {
    column += lanes;
    if (column < n) return;
    column = 0;
    ++row;
  }
};

class StoreStream {
 public:
  StoreStream(const std::vector<Chain>& chains, const std::vector<StoreCommand>& commands,
              const StoreParams& params, const StoreSurroundings& around)
      : chains_(chains),
        commands_(commands),
        params_(params),
        around_(around),
        port_(params.port, around.memory),
        operands_(params.operands, around.operands) {
    schedule_.times.resize(commands.size());
  }

  StoreSchedule run() {
    for (std::uint64_t cycle = 0;
         begun_ < commands_.size() || busy_ || !port_.idle() || !free_known_; ++cycle) {
      step(cycle);
    }
    schedule_.requests = port_.requests();
    for (const WriteRequest& request : schedule_.requests) {
      StoreTimes& times = schedule_.times[request.command];
      times.completed = std::max(times.completed, request.done);
    }
    return std::move(schedule_);
  }

 private:
  [[nodiscard]] const StoreCommand& command() const { return commands_[begun_ - 1]; }
  [[nodiscard]] StoreTimes& times() { return schedule_.times[begun_ - 1]; }
  [[nodiscard]] std::uint64_t beat_bytes() const { return params_.port.beat_bytes; }

  void step(std::uint64_t cycle) {
    if (can_start(cycle) && !free_known_) {
      times().free = cycle;
      free_known_ = true;
    }
    const bool next = begun_ < commands_.size() && commands_[begun_].dispatched <= cycle;
    const bool starts = next && commands_[begun_].started <= cycle && can_start(cycle);
    const bool before = busy_, loading = !parameters_.empty();
    const bool loaded = busy_ && code_ == 0 && (!loading || ahead_.parameters);
    std::uint64_t piece = 0;  // taken by the port
    bool row_end = false;
    const bool refused = stages_.has_result(sums_there_) && !takes_result(cycle, piece, row_end);
    const bool fed = stages_.step(sums_there_, refused);
    const bool read = loaded && !reads_.over() && operands_there(cycle) && (!sums_there_ || fed) &&
                      !around_.no_port(cycle, sums_at());
    load(cycle);
    sums_there_ = read || (sums_there_ && !fed);
    if (read) {
      reads_.next();
      if (reads_.over()) times().released = cycle + 1;
    }
    if (next) fetch(cycle, before, loading);
    if (starts) begin();
    port_.step(cycle, piece, row_end);
  }

  [[nodiscard]] bool can_start(std::uint64_t cycle) const {
    return !busy_ && port_.can_start() && side_until_ <= cycle;
  }
  [[nodiscard]] std::uint64_t sums_at() const {
    return command().c + reads_.row() * command().c_pitch + reads_.vector() * params_.lanes;
  }

  void begin() {
    const StoreCommand& next = commands_[begun_++];
    const Chain& chain = chains_.at(next.chain);
    busy_ = true;
    free_known_ = false;
    ahead_ = {};
    element_bytes_ = bytes_of(chain.out);
    reads_ = RowOrder(next.m, ceil_div(next.n, params_.lanes), row_passes(chain));
    results_ = {next.m, next.n, params_.lanes};
    stages_ = StageFlow(chain, next.m, next.n, params_.lanes);
    if (!next.move) {
      port_.start({next.to, next.to_pitch, next.m, next.n * element_bytes_}, begun_ - 1);
    }
  }

  /// What can be begun for the next command. `busy`, `loading`: at the begin of the cycle there is
  /// a command before it, and are parameters to come.
  void fetch(std::uint64_t cycle, bool busy, bool loading) {
    const StoreCommand& next = commands_[begun_];
    const Chain& chain = chains_.at(next.chain);
    if (!ahead_.code && !busy) {
      ahead_.code = true;
      code_ = chain_ == next.chain ? 0 : chain.stages.size() * kMicrocodeWords;
      chain_ = next.chain;
    }
    if (cycle < next.readable) return;
    if (!ahead_.parameters && !loading) {
      ahead_.parameters = true;
      fetch_parameters(next, chain);
    }
    if (!ahead_.operands && !(busy && tensor_operands(chains_[command().chain]) != 0)) {
      ahead_.operands = true;
      fetch_operands(next, chain, cycle);
    }
  }

  void fetch_parameters(const StoreCommand& of, const Chain& chain) {
    const std::uint64_t words = parameter_words(chain);
    for (std::uint64_t word = 0; word < words; ++word) {
      for (std::uint64_t column = 0; column < of.n; column += params_.lanes) {
        const std::uint64_t bytes = 4 * std::min(params_.lanes, of.n - column);
        for (std::uint64_t at = 0; at < bytes; at += beat_bytes()) {
          parameters_.push_back(of.parameters + 4 * (word * of.n + column) + at);
        }
      }
    }
  }

  void fetch_operands(const StoreCommand& of, const Chain& chain, std::uint64_t cycle) {
    const std::vector<DType> tensors = tensor_types(chain);
    if (tensors.empty()) return;
    const std::uint64_t vectors = ceil_div(of.n, params_.lanes);
    operands_there_.assign(of.m * vectors, 0);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const std::uint64_t vector_bytes = params_.lanes * bytes_of(tensors[t]);
      RowRead tile;
      tile.address = of.tensors.at(t).address;
      tile.pitch = of.tensors[t].pitch;
      tile.rows = of.m;
      tile.bytes = of.n * bytes_of(tensors[t]);
      tile.to_pitch = vectors * vector_bytes;
      const std::size_t first = schedule_.operands.size();
      const ReadTimes read = operands_.run(tile, begun_, cycle, schedule_.operands);
      cycle = read.released;
      // Those of a tile before are there when all of it is.
      std::uint64_t last = t == 0 ? 0 : operands_there_.back();
      std::size_t vector = 0;
      for (std::size_t i = first; i < schedule_.operands.size(); ++i) {
        for (const LocalWrite& write : local_writes(schedule_.operands[i], params_.lanes)) {
          for (; (vector + 1) * vector_bytes <= write.to; ++vector) operands_there_[vector] = last;
          last = std::max(last, write.cycle);
        }
      }
      for (; vector < operands_there_.size(); ++vector) operands_there_[vector] = last;
    }
  }
  [[nodiscard]] bool operands_there(std::uint64_t cycle) const {
    if (tensor_operands(chains_[command().chain]) == 0) return true;
    if (command().whole) return operands_there_.back() < cycle;
    const std::uint64_t vectors = ceil_div(command().n, params_.lanes);
    return operands_there_[reads_.row() * vectors + reads_.vector()] < cycle;
  }

  void load(std::uint64_t cycle) {
    code_ -= code_ == 0 ? 0 : 1;
    if (parameters_.empty()) return;
    if (around_.read_parameters(cycle, parameters_.front(), ahead_.parameters)) {
      parameters_.pop_front();
    }
  }

  /// Takes a piece of the vector that leaves the stages. Returns whether it was the last one.
  bool takes_result(std::uint64_t cycle, std::uint64_t& piece, bool& row_end) {
    const std::uint64_t left = results_.width() * element_bytes_ - taken_;
    const std::uint64_t bytes = std::min(left, beat_bytes());
    if (command().move) {
      const std::uint64_t column = results_.column * element_bytes_ + taken_;
      const std::uint64_t to = command().to + results_.row * command().to_pitch + column;
      if (!around_.write(cycle, to, bytes)) return false;
    } else {
      if (!port_.takes()) return false;
      piece = bytes;
      row_end = bytes == left && results_.ends_row();
    }
    taken_ += bytes;
    if (bytes != left) return false;
    taken_ = 0;
    results_.next();
    if (results_.over()) {
      busy_ = false;
      const std::uint64_t side = side_cycles(chains_[command().chain]);
      side_until_ = side != 0 ? cycle + 1 + side : 0;
      times().completed = std::max(side_until_, command().move ? cycle + 1 : 0);
    }
    return true;
  }

  const std::vector<Chain>& chains_;
  const std::vector<StoreCommand>& commands_;
  const StoreParams params_;
  const StoreSurroundings& around_;
  WritePort port_;
  StoreSchedule schedule_;
  std::size_t begun_ = 0;  ///< commands that have started
  bool busy_ = false, free_known_ = true;
  std::size_t chain_ = kNoChain;          ///< whose micro-code the pipeline holds
  std::uint64_t code_ = 0;                ///< words of it to come
  std::deque<std::uint64_t> parameters_;  ///< reads to come
  /// What has begun to come for the next command, and not for the one that runs.
  struct Ahead {
    bool code = false, parameters = false, operands = false;
  };
  Ahead ahead_;
  std::uint64_t element_bytes_ = 1;
  ReadPort operands_;
  /// By vector of the tile that has begun to come: the cycle with which its operands are there.
  std::vector<std::uint64_t> operands_there_;
  std::uint64_t side_until_ = 0;  ///< cycle from which its side output is there
  RowOrder reads_;
  Vectors results_;
  bool sums_there_ = false;  ///< a vector is between accumulator and pipeline
  StageFlow stages_;
  std::uint64_t taken_ = 0;  ///< bytes of the vector at its end
};

}  // namespace

StoreSchedule store_times(const std::vector<Chain>& chains,
                          const std::vector<StoreCommand>& commands, const StoreParams& params,
                          const StoreSurroundings& around) {
  return StoreStream(chains, commands, params, around).run();
}

}  // namespace systole::hw
