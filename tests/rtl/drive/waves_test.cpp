#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "hw/stream/stream_functions.h"
#include "support/temp_directory.h"
#include "testbench/rtl/core/command_decoder_rtl.h"
#include "testbench/rtl/core/command_fetch_rtl.h"
#include "testbench/rtl/core/core_rtl.h"
#include "testbench/rtl/core/dispatcher_rtl.h"
#include "testbench/rtl/core/load_path_rtl.h"
#include "testbench/rtl/core/scratchpad_rtl.h"
#include "testbench/rtl/dma/read_dma_rtl.h"
#include "testbench/rtl/dma/weight_expander_rtl.h"
#include "testbench/rtl/drive/rtl_view.h"
#include "testbench/rtl/engine/engines.h"
#include "testbench/rtl/nonlinear/stream_softmax_rtl.h"
#include "testbench/rtl/ring/ring_router_rtl.h"
#include "tests/rtl/attention/head_case.h"
#include "tests/rtl/attention/head_mix_case.h"
#include "tests/rtl/axi/axi_sram_case.h"
#include "tests/rtl/core/core_case.h"
#include "tests/rtl/core/core_program.h"
#include "tests/rtl/core/core_registers_run.h"
#include "tests/rtl/core/fetch_case.h"
#include "tests/rtl/core/load_path_case.h"
#include "tests/rtl/dma/axi_memory.h"
#include "tests/rtl/dma/read_answers.h"
#include "tests/rtl/engine/chain_run.h"
#include "tests/rtl/ring/router_case.h"
#include "tests/support/half_gemv_case.h"

/// The waveforms of the blocks and their views. `make -f Makefile.verilator waves BLOCK=...` runs
/// one of these tests and keeps its files.
namespace systole::testbench {
namespace {

class RtlWaves : public testing::TestWithParam<const char*> {
 protected:
  /// Where the files go: SYSTOLE_WAVES, or a directory that vanishes with the test.
  [[nodiscard]] std::string stem() const {
    const char* kept = std::getenv("SYSTOLE_WAVES");
    return kept != nullptr ? std::string(kept) + "/rtl" : directory_.path("rtl");
  }

 private:
  TempDirectory directory_;
};

std::string full_name(const FstSignal& signal) {
  std::string name = signal.scope + "." + signal.name;
  name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
  return name;
}

/// Names of signals in a view: whole ones, and those of which it takes single bits.
std::set<std::string> names_in(const std::string& view) {
  std::ifstream file(view);
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || std::string("[*@-").find(line[0]) != std::string::npos) continue;
    std::istringstream words(line);
    if (line[0] == '#' || line[0] == '+') words.ignore(1000, '}');
    for (std::string word; words >> word;) {
      const auto bit = word.find(')');
      names.insert(bit == std::string::npos ? word : word.substr(bit + 1));
    }
  }
  return names;
}

constexpr std::uint32_t kSize = 4;  ///< lanes, and columns of the array

void run_chains(const std::string& block, const RtlOptions& options, RtlReport& report) {
  hw::Machine machine;
  hw::set_key(machine, "backend." + block + "=rtl");
  const auto engine = make_postop_engine(machine.backend, kSize, options, report);
  std::mt19937_64 random(3);
  hw::test::Random chain_random(11);
  for (int i = 0; i < 200; ++i) {
    (void)ChainRun(hw::test::random_chain(chain_random, 4), 3, 21, random).on(*engine);
  }
}

void run_products(const std::string& module, const RtlOptions& options, RtlReport& report) {
  hw::Machine machine = hw::find_machine("tiny");
  const bool splits = module == "split_array";
  if (module == "output_array") machine.array.dataflow = hw::Dataflow::kOutputStationary;
  if (splits) machine.array.split = hw::ArraySplit::kWeights;
  const auto engine = make_array_engine(machine.array, options, report);
  std::mt19937_64 random(3);
  std::vector<std::int8_t> a(7 * 9), b(9 * 6);
  for (std::int8_t& value : a) value = static_cast<std::int8_t>(random());
  for (std::int8_t& value : b) value = static_cast<std::int8_t>(random());
  std::vector<std::int32_t> c(7 * 6);
  hw::GemmArgs product;
  product.m = 7, product.n = 6, product.k = 9;
  product.a = a.data(), product.lda = 9;
  product.b = b.data(), product.ldb = 6;
  product.c = c.data(), product.ldc = 6;
  (void)engine->matmul(product, false);
  (void)engine->matmul(product, true);
  if (!splits) return;
  product.k = 8, product.b_int4 = true;
  (void)engine->matmul(product, true);
}

void run_sums(const RtlOptions& options, RtlReport& report) {
  const auto engine = make_accumulator_engine(hw::find_machine("tiny"), options, report);
  std::vector<std::int32_t> sums(5 * kSize, 17);
  engine->write({0, 5, kSize, kSize}, sums.data(), kSize, false);
  engine->write({0, 5, kSize, kSize}, sums.data(), kSize, true);
  engine->read({0, 5, kSize, kSize}, sums.data(), kSize);
}

void run_heads(const std::string& block, const RtlOptions& options, RtlReport& report) {
  hw::Machine machine = hw::find_machine("vitcod");
  hw::set_key(machine, "backend." + block + "=rtl");
  const auto engine = make_attention_engine(machine.attention, machine.backend, options, report);
  std::mt19937 random(3);
  for (int i = 0; i < 4; ++i) {
    const HeadCase test(hw::split_anywhere(hw::random_mask(random, 20), random), 20, 12,
                        machine.attention, random);
    (void)engine->sums(test.head, test.operands, {hw::make_softmax_constants(1e-3), std::nullopt});
  }
}

void run_mixes(const RtlOptions& options, RtlReport& report) {
  const hw::Machine machine = hw::find_machine("vitcod");
  const auto engine = make_mix_engine(machine.attention, options, report);
  std::mt19937 random(3);
  for (int i = 0; i < 4; ++i) {
    const hw::HeadMix mix = random_mix(random, 4);
    const Bytes in = random_bytes(mix.in_heads * 20, random);
    Bytes out(mix.out_heads * 20);
    engine->mix(mix, in.data(), 20, out.data());
  }
}

void run_halves(const RtlOptions& options, RtlReport& report, HalfBackends backends) {
  std::mt19937_64 random(3);
  const hw::MatrixUnit unit;
  test::HalfGemvCase product({1, 2, 3, unit.depth, 2}, test::HalfPattern::kOrdinary, random);
  if (backends.mpu_tree) {
    make_matrix_lane_engine(unit, backends, options, report)->gemv(product.args());
    return;
  }
  const auto engine = make_half_vector_engine(backends, options, report);
  std::vector<hw::Half> y(40);
  for (const auto operation :
       {hw::half_vector::Operation::kSubtract, hw::half_vector::Operation::kMultiply}) {
    engine->apply(operation, {product.x.data(), product.tiles.data(), false, y.size(), y.data()});
  }
}

void run_packets(const RtlOptions& options, RtlReport& report) {
  std::mt19937_64 random(3);
  const auto engine = make_router_engine(true, RingRouterRtl::kCycles, options, report);
  for (const std::uint32_t hops : {1U, 2U, 3U}) {
    (void)engine->route(random_part(100, random), 5, hops, hops != 2);
  }
}

void run_softmax_rows(const RtlOptions& options, RtlReport& report) {
  const auto unit = make_stream_softmax(options.for_block("stream_softmax", hw::stream::kGroup));
  std::mt19937_64 random(3);
  std::vector<std::int8_t> scores(12 * hw::stream::kGroup);
  for (std::int8_t& score : scores) score = static_cast<std::int8_t>(random());
  check_stream_softmax(*unit, scores, 3 * hw::stream::kGroup, report["stream_softmax"]);
}

void run_copy(const RtlOptions& options, RtlReport& report) {
  hw::AxiSubordinate::Params port;
  port.stalls_per_mille = 100;
  AxiMemory memory(1 << 12, port, 5, 30);
  const std::vector<std::uint8_t> bytes = memory.bytes();
  const auto dma = make_axi_dma(port.bytes, options.for_block("axi_dma", port.bytes / 4));
  dma->copy(5, 2050, 1000, bytes.data() + 5);
  (void)memory.run(*dma);
  report["axi_dma"] = {1, 0, memory.bytes()[3049] == bytes[1004] ? 0U : 1U};
}

void run_bursts(const RtlOptions& options, RtlReport& report) {
  constexpr unsigned kWidth = 16;
  const auto sram = make_axi_sram(kWidth, options.for_block("axi_sram", kWidth / 4));
  hw::AxiRequester::Params params;
  params.stalls_per_mille = 200;
  SramRun run(*sram, params);
  std::vector<std::uint8_t> written(100), read(100);
  for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<std::uint8_t>(3 * i);
  for (auto* const data : {&written, &read}) {
    const hw::AxiRequest request{37, data->data(), nullptr, 100, data == &written};
    std::vector<hw::AxiBurstBeats> bursts = hw::axi_bursts(request, kWidth);
    (void)run.run(bursts);
    if (!request.write) hw::take_read_bytes(bursts, request, kWidth);
  }
  report["axi_sram"] = {2, 0, read == written ? 0U : 1U};
}

void run_commands(const RtlOptions& options, RtlReport& report) {
  constexpr auto kSizes = kDispatcherSizes[1];
  const auto unit = make_dispatcher(kSizes, options.for_block("dispatcher", kDispatcherViewWords));
  std::vector<hw::DispatchItem> items(30);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].unit = static_cast<hw::Unit>(i % hw::kStations);
    items[i].ranges = {{hw::Space::kScratchpad, 64 * (i % 4), 64 * (i % 4 + 1), i % 3 == 0}};
    items[i].occupied = items[i].released = items[i].completed = 1 + i % 7;
  }
  check_dispatcher(*unit, items, kSizes, report["dispatcher"]);
}

void run_reads(const RtlOptions& options, RtlReport& report) {
  constexpr ReadDmaSize kPort = kReadDmaSizes[1];
  const auto dma = make_read_dma(kPort, options.for_block("read_dma", kReadDmaViewWords));
  const std::vector<hw::RowRead> commands = {{3, 40, 3, 21, 5, 32, 2}, {64, 0, 1, 64, 128, 0, 4}};
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(5 * i);
  const ReadAnswers answers{kPort.beat_bytes, 3, 9, 100, 1};
  check_read_dma(
      *dma, commands, kPort, read_params(kPort, hw::SlotOrder::kIssue, 0),
      [&] { return answers.memory(); }, bytes, 256, report["read_dma"]);
}

void run_accesses(const RtlOptions& options, RtlReport& report) {
  constexpr ScratchpadSize kMemory = kScratchpadSizes[0];
  const auto unit = make_scratchpad(kMemory, options.for_block("scratchpad", kScratchpadClients));
  ScratchpadClients clients;
  for (std::uint64_t i = 0; i < kMemory.bytes() / kMemory.word_bytes; ++i) {
    const auto byte = static_cast<std::uint8_t>(i);
    clients[0].steps.push_back({{i * kMemory.word_bytes}, {byte, 1, 2, 3}});
    clients[3].steps.push_back({{i * 3 / 2, i / 2}, {}});
  }
  clients[3].begin = kMemory.bytes();
  std::vector<std::uint8_t> stored(kMemory.bytes());
  check_scratchpad(*unit, kMemory, clients, stored, report["scratchpad"]);
}

void run_fetch(const RtlOptions& options, RtlReport& report) {
  const auto fetch = make_command_fetch(options.for_block("command_fetch", kFetchViewWords));
  hw::test::Random random(5);
  const RandomFetch test(random);
  check_command_fetch(
      *fetch, test.test(), [&] { return test.answers().memory(); }, report["command_fetch"]);
}

void run_decoding(const RtlOptions& options, RtlReport& report) {
  const auto unit = make_command_decoder(options.for_block("command_decoder", kDecoderViewWords));
  hw::test::Random random(5);
  check_command_decoder(*unit, random_core_program(random, 20), report["command_decoder"]);
}

void run_expansion(const RtlOptions& options, RtlReport& report) {
  const auto unit =
      make_weight_expander(4, options.for_block("weight_expander", kExpanderViewWords));
  std::mt19937_64 random(5);
  check_weight_expander(*unit, {random_run(random, 9), random_run(random, 9)}, 0,
                        report["weight_expander"]);
}

void run_load_path(const RtlOptions& options, RtlReport& report) {
  const auto path = make_load_path(options.for_block("load_path", kLoadPathViewWords));
  hw::test::Random random(5);
  const RandomLoadPath test(random, 30);
  check_load_path(
      *path, test.test(), [&] { return test.answers().memory(); }, report["load_path"]);
}

void run_registers(const RtlOptions& options, RtlReport& report) {
  RegisterRun run(options.for_block("core_registers", CoreRegistersRtl::kBytes / 4), 100);
  run.run(300);
  report["core_registers"] = {run.reads + run.writes, 0, 0};
}

void run_core(const RtlOptions& options, RtlReport& report) {
  const auto core = make_core(options.for_block("core", kCoreViewWords));
  hw::test::Random random(5);
  RandomCore cases(random);
  for (const hw::Program& program : {cases.first(), cases.next(12)}) {
    const CoreCase test{program, cases.put(program)};
    (void)check_core(*core, test, cases.ports(), cases.state(), report["core"]);
  }
}

TEST_P(RtlWaves, ShowModelAndRtlSideBySide) {
  const std::string module = GetParam();
  // The arrays are one block of the machine.
  const bool is_array = module == "output_array" || module == "split_array";
  const std::string block = is_array ? "systolic_array" : module;
  RtlOptions options;
  options.wave = stem();
  RtlReport report;
  if (block == "systolic_array") {
    run_products(module, options, report);
  } else if (block == "accumulator_sram") {
    run_sums(options, report);
  } else if (block == "head_mix_line") {
    run_mixes(options, report);
  } else if (block == "sparser_line" || block == "denser_line" || block == "attention_softmax") {
    run_heads(block, options, report);
  } else if (block == "mpu_tree" || block == "fp16_mul" || block == "fp16_add") {
    run_halves(options, report, {block == "mpu_tree", block == "fp16_mul", block == "fp16_add"});
  } else if (block == "stream_softmax") {
    run_softmax_rows(options, report);
  } else if (block == "dispatcher") {
    run_commands(options, report);
  } else if (block == "scratchpad") {
    run_accesses(options, report);
  } else if (block == "command_fetch") {
    run_fetch(options, report);
  } else if (block == "command_decoder") {
    run_decoding(options, report);
  } else if (block == "weight_expander") {
    run_expansion(options, report);
  } else if (block == "load_path") {
    run_load_path(options, report);
  } else if (block == "core_registers") {
    run_registers(options, report);
  } else if (block == "core") {
    run_core(options, report);
  } else if (block == "read_dma") {
    run_reads(options, report);
  } else if (block == "ring_router") {
    run_packets(options, report);
  } else if (block == "axi_dma") {
    run_copy(options, report);
  } else if (block == "axi_sram") {
    run_bursts(options, report);
  } else {
    run_chains(block, options, report);
  }
  EXPECT_GT(report.at(block).operations, 0U);
  EXPECT_EQ(report.at(block).mismatches, 0U);
  const std::string wave = options.wave_of(block);
  write_rtl_view(wave, block);

  std::set<std::string> known;
  std::set<std::string> scopes;
  for (const FstSignal& signal : read_fst_signals(wave)) {
    known.insert(full_name(signal));
    scopes.insert(signal.scope);
  }
  EXPECT_THAT(scopes, testing::IsSupersetOf({std::string("model"), "dut.systole_" + module}));
  const std::set<std::string> shown = names_in(rtl_view_path(wave));
  for (const std::string& name : shown) EXPECT_EQ(known.count(name), 1U) << name;
  EXPECT_THAT(shown, testing::IsSupersetOf({std::string("model.cycle[31:0]"),
                                            "dut.systole_" + module + ".clk_i",
                                            std::string("model.output_0[31:0]")}));
}

INSTANTIATE_TEST_SUITE_P(
    Blocks, RtlWaves,
    testing::Values("dispatcher", "core_registers", "command_fetch", "command_decoder", "read_dma",
                    "weight_expander", "scratchpad", "load_path", "core", "systolic_array",
                    "split_array", "output_array", "accumulator_sram", "requantizer", "divider",
                    "i_exp", "i_gelu", "softmax_unit", "i_sqrt", "stream_softmax", "layernorm_unit",
                    "postop_pipeline", "sparser_line", "denser_line", "attention_softmax",
                    "head_mix_line", "fp16_mul", "fp16_add", "mpu_tree", "ring_router", "axi_dma",
                    "axi_sram"),
    [](const auto& tested) { return std::string(tested.param); });

TEST(RtlViews, NameAFileThatIsNoWaveform) {
  const TempDirectory directory;
  const std::string path = directory.path("text.fst");
  std::ofstream(path) << "no waveform";
  EXPECT_THROW((void)read_fst_signals(path), hw::InputError);
  EXPECT_THROW((void)read_fst_signals(directory.path("none.fst")), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench
