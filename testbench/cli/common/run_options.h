#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/ring_options.h"
#include "testbench/network/network_size.h"
#include "testbench/network/run_subject.h"
#include "testbench/run/tensor_file.h"
#include "testbench/wave/wave.h"

namespace systole::testbench {

/// What `systole run` was asked for.
struct RunOptions {
  MachineOptions machine;
  std::vector<std::string> gates;  ///< "core" or "core=DIR": the core in RTL beside the model
  bool exact = false;              ///< stop at the first command that differs there
  std::size_t cores = 0;           ///< 0: as many as the machine describes
  std::string split;               ///< empty: batch
  RingOptions ring;
  std::string model, program;
  SizeOptions size;
  std::string input, mask, outputs;
  std::string tensors;    ///< expression of more tensors for `outputs`
  std::size_t limit = 0;  ///< 0: all
  bool check = false;
  unsigned threads = 1;
  bool functional = true;
  bool json = false;
  std::optional<double> min_accuracy;
  std::string stats, actions;
  WaveOptions wave;
  std::string timeline;
  std::uint64_t timeline_inferences = 1;  ///< recorded from the first on; 0: all
  std::string report;
  CommandViews views;
};

/// Of a network that classifies: the class of each input, and its label where that is known.
void add_classes(const RunSubject& subject, const std::vector<std::vector<std::uint8_t>>& outputs,
                 std::vector<model::TensorData>& tensors);

/// What is recorded is named by one program. Throws InputError if there would be several.
void check_recordings(const RunOptions& options, const RunSubject& subject);

/// Runs a model or a program file. The exit code.
int run_model(const RunOptions& options);

/// Runs on the cores of a system, or on options.cores equal ones.
int run_cores(const RunOptions& options);

}  // namespace systole::testbench
