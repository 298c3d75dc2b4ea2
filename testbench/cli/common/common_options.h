#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "hw/description/core_system.h"
#include "hw/machine/machine.h"
#include "testbench/network/network_size.h"
#include "testbench/rtl/drive/rtl_options.h"

/// Options that several subcommands have.
namespace systole::testbench {

struct MachineOptions {
  std::string machine;                ///< preset or file
  std::vector<std::string> settings;  ///< section.key=value
  std::vector<std::string> rtl;       ///< blocks, block=folder, or "all"
  std::string strategy;               ///< a value of mapper.strategy; empty: the machine's
};

/// Adds --machine and --set.
void add_machine_options(CLI::App& command, MachineOptions& options);
/// Adds --strategy.
void add_strategy(CLI::App& command, MachineOptions& options);
/// Adds --rtl.
void add_rtl(CLI::App& command, MachineOptions& options);
/// If --rtl names the whole core, takes it out of the options: "core" or "core=DIR". Throws
/// InputError if it names other blocks too.
[[nodiscard]] std::vector<std::string> take_core_rtl(MachineOptions& options);
/// Loads the users' own RTL among what --rtl names. Throws InputError.
void add_own_rtl(const std::vector<std::string>& items, RtlOptions& rtl);
/// "--outputs FILE.safetensors".
CLI::Option* add_outputs(CLI::App& command, std::string& outputs);
/// "--tensors REGEX", which needs that.
void add_tensors(CLI::App& command, std::string& tensors, CLI::Option* outputs);
/// Throws InputError if values are to be written that a run without them does not have.
void require_values(const std::string& outputs, bool functional);

/// Adds --set alone, as often as wanted.
void add_settings(CLI::App& command, std::vector<std::string>& settings);

/// The machine (without a name: all defaults) with the settings applied, valid as a whole. Throws
/// InputError.
[[nodiscard]] hw::Machine load_machine(const std::string& name_or_path,
                                       const std::vector<std::string>& settings);

/// The same as load_machine(), with the strategy and the blocks that --rtl names swapped for their
/// RTL. Throws InputError, also for a machine for text generation.
[[nodiscard]] hw::Machine load_machine(const MachineOptions& options);

/// What may have several cores; the settings apply to each of them and to what they share. Throws
/// InputError as load_machine(); `any_kind` lets machines for text generation and streaming cores
/// pass, which have none.
[[nodiscard]] hw::CoreSystem load_system(const MachineOptions& options, bool any_kind = false);

/// The same for a command that generates text. Throws InputError for a machine that cannot.
[[nodiscard]] hw::Machine load_generation_machine(const MachineOptions& options);

/// The same for a command that needs attention engines. Throws InputError for a machine without.
[[nodiscard]] hw::Machine load_attention_machine(const MachineOptions& options);

/// Whether the machine has a streaming core. Throws InputError as load_machine().
[[nodiscard]] bool has_streaming_core(const MachineOptions& options);
/// The same for a command that runs layers on a streaming core. Throws InputError for a machine
/// without one.
[[nodiscard]] hw::Machine load_stream_machine(const MachineOptions& options);

/// Adds --model, of an integer model or a known shape.
CLI::Option& add_model(CLI::App& command, std::string& model);
/// Adds --length, --layers, --heads, --d and --ffn.
void add_shape_options(CLI::App& command, SizeOptions& size);
/// The same and --batch.
void add_size_options(CLI::App& command, SizeOptions& size);

/// Lets the option take whole numbers from 1.
void require_positive(CLI::Option& option);

/// Adds --report.
CLI::Option& add_report(CLI::App& command, std::string& report);

/// Adds --threads, and sets it to what a run has without.
void add_threads(CLI::App& command, unsigned& threads);

/// Adds --functional on|off.
void add_functional(CLI::App& command, bool& functional);

/// Files that show the commands of a run; empty: none.
struct CommandViews {
  std::string pipeline;      ///< see PipelineView
  std::string transactions;  ///< see TransactionView
  std::string trace;         ///< of the bus, see BusTraceWriter
  std::string commands;      ///< see CommandTraceWriter
};
/// Adds --pipeline, --transactions, --trace and --commands.
void add_command_views(CLI::App& command, CommandViews& views);

}  // namespace systole::testbench
