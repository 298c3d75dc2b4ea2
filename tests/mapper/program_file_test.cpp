#include "mapper/program_file.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "hw/program/disassembly.h"
#include "hw/program/program_image.h"
#include "model/build/host_operators.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"
#include "model/seeded/shapes.h"
#include "support/input_error.h"
#include "support/random/random_graph.h"
#include "support/random/random_machine.h"
#include "support/temp_directory.h"

namespace systole::mapper {
namespace {

std::vector<std::uint8_t> memory_of(const hw::MemoryImage& image, std::uint64_t bytes) {
  std::vector<std::uint8_t> memory(bytes);
  for (const hw::MemoryPiece& piece : image) {
    std::copy(piece.bytes.begin(), piece.bytes.end(),
              memory.begin() + static_cast<std::ptrdiff_t>(piece.address));
  }
  return memory;
}

void expect_survives(const model::Graph& graph, const hw::Machine& machine) {
  const TempDirectory directory;
  const std::string path = directory.path("p");
  const Mapping mapping = map_graph(graph, machine);
  write_program(path, "a network", machine, graph, mapping);
  const LoadableProgram read = read_program(path);
  EXPECT_EQ(read.network, "a network");
  EXPECT_EQ(hw::to_toml(read.machine), hw::to_toml(machine));
  EXPECT_EQ(hw::disassemble(read.program), hw::disassemble(mapping.program));
  EXPECT_EQ(hw::encode_program(read.program), hw::encode_program(mapping.program));
  EXPECT_EQ(read.address, mapping.program_address);
  EXPECT_EQ(memory_of(read.image, mapping.dram_bytes),
            memory_of(mapping.image, mapping.dram_bytes));
  EXPECT_EQ(read.input.rows, graph.tensors[0].rows);
  EXPECT_EQ(read.input.address, mapping.tensors[0].address);
  EXPECT_EQ(read.input.pitch, mapping.tensors[0].pitch);
  EXPECT_EQ(read.input.type, graph.tensors[0].type);
}

TEST(ProgramFile, HasAllThatAMachineNeeds) {
  const model::EncoderShape shape{2, 32, 2, 64};
  const model::Graph graph = model::make_seeded_encoder("encoder", shape, 20, 1);
  expect_survives(graph, hw::find_machine("tiny"));
  expect_survives(graph, hw::find_machine("transformer"));
}

TEST(ProgramFile, HasTheSoftwareOfTheHost) {
  hw::Machine machine = hw::find_machine("gemmini");
  machine.host.operators = hw::HostOperators::kFloat;
  const model::EncoderShape shape{1, 32, 2, 64};
  const model::Graph graph =
      model::for_machine(model::make_seeded_encoder("encoder", shape, 20, 1), machine);
  ASSERT_FALSE(map_graph(graph, machine).program.host_functions.empty());
  expect_survives(graph, machine);
}

TEST(ProgramFile, IsCheckedForTheMachineThatIsToRunIt) {
  const TempDirectory directory;
  const std::string path = directory.path("p");
  const model::Graph graph = model::make_seeded_encoder("encoder", {1, 32, 2, 64}, 20, 1);
  const hw::Machine machine = hw::find_machine("transformer");
  write_program(path, "n", machine, graph, map_graph(graph, machine));
  hw::Machine other = machine;
  other.array.rows = 8;
  EXPECT_NO_THROW((void)read_program(path, &other)) << "the array takes tiles of any shape";
  other.accumulator.kib = 1;
  EXPECT_NE(input_error_of([&] { (void)read_program(path, &other); }).find("accumulator elements"),
            std::string::npos);
}

TEST(ProgramFile, RefusesMoreMacsThanANumberHolds) {
  const TempDirectory directory;
  const std::string path = directory.path("p");
  const model::Graph graph = model::make_seeded_encoder("encoder", {1, 16, 2, 16}, 2, 1);
  const hw::Machine machine = hw::find_machine("tiny");
  write_program(path, "n", machine, graph, map_graph(graph, machine));
  EXPECT_GT(read_program(path).macs, 0U);
  const model::Safetensors file = model::Safetensors::open(path);
  std::map<std::string, std::string> metadata = file.metadata();
  std::vector<model::TensorData> tensors;
  for (const std::string& name : file.names()) {
    const model::TensorView& view = file.tensor(name);
    tensors.push_back({name, view.dtype, view.shape, {view.data, view.data + view.bytes}});
  }
  metadata["macs"] = "18446744073709551616";
  const std::string changed = directory.path("q");
  model::write_safetensors(changed, tensors, metadata);
  EXPECT_EQ(input_error_of([&] { (void)read_program(changed); }),
            changed + ": macs: expected a number");
}

}  // namespace
}  // namespace systole::mapper
