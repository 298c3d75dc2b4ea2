#include <gtest/gtest.h>
#include <sched.h>
#include <sys/personality.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "support/program/program_run.h"
#include "support/temp_directory.h"

/// The same bytes wherever the program runs; script/determinism compares more runs and builds.
namespace systole {
namespace {

using Variables = std::map<std::string, std::string>;

/// What a run says, less times of the host.
std::string said_by(const std::string& line, const Variables& variables) {
  const ProgramRun run = run_systole(words_of(line, {"--json"}), ".", variables);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  nlohmann::json document = document_of(run.out);
  for (const char* const key : {"wall_seconds", "cycles_per_second"}) document.erase(key);
  return document.dump();
}

/// The same, and the values that it writes.
std::string results_of(const std::string& line, const Variables& variables) {
  const TempDirectory directory;
  const std::string path = directory.path("out.safetensors");
  const std::string said = said_by(line + " --outputs " + path, variables);
  return said + read_file(path);
}

TEST(Determinism, KernelsChangeNoByte) {
  const std::string line = "run -m transformer --model vit17 -n 2 --tensors blocks.0.*";
  const std::string expected = results_of(line, {});
  for (const Variables& variables :
       {Variables{{"SYSTOLE_SIMD", "avx2"}}, Variables{{"SYSTOLE_SIMD", "ssse3"}},
        Variables{{"SYSTOLE_GEMM", "reference"}}}) {
    EXPECT_TRUE(results_of(line, variables) == expected)
        << variables.begin()->first << ' ' << variables.begin()->second;
  }
}

// Chains, attention engines, several cores with a cache, decoding, a host that computes.
TEST(Determinism, ThreadsChangeNoByte) {
  for (const std::string line :
       {"run -m transformer --model vit17 -n 2 --check --tensors blocks.0.*",
        "run -m vitcod --model vit65 -n 1 --check", "run -m gemmini --model vit17 -n 1 --check",
        "run -m transformer --model vit17 -n 4 --cores 2 --set l2.kib=64 --check",
        "run -m transformer --model gpt2 --layers 1 --d 64 --heads 2 --ffn 64 --length 3 --decode "
        "--past 9",
        "run -m transformer --model vit17 -n 1 --check --set host.operators=float"}) {
    const std::string expected = results_of(line + " --threads 1", {});
    EXPECT_TRUE(results_of(line + " --threads 2", {}) == expected) << line;
    EXPECT_TRUE(results_of(line + " --threads 5", {}) == expected) << line;
  }
}

TEST(Determinism, LayoutOfAddressesAndProcessorsChangeNoByte) {
  // Experiments of `explain` run side by side, as many as there are processors.
  const std::string line =
      "explain -m tiny --model bert-base --layers 1 --d 16 --heads 2 --ffn 32 --length 8";
  const std::string expected = said_by(line, {});

  // Both are inherited by the program.
  const int persona = ::personality(0xffffffff);
  ::personality(static_cast<unsigned long>(persona) | ADDR_NO_RANDOMIZE);
  EXPECT_EQ(said_by(line, {}), expected) << "without random layout";
  ::personality(static_cast<unsigned long>(persona));

  cpu_set_t all, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(said_by(line, {}), expected) << "on one processor";
  ::sched_setaffinity(0, sizeof all, &all);
}

TEST(Determinism, AnUnknownInstructionSetIsRefused) {
  const ProgramRun run = run_systole({"machine"}, ".", {{"SYSTOLE_SIMD", "sse9"}});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err,
            "systole: environment: SYSTOLE_SIMD: found 'sse9', expected ssse3, avx2 or avx512\n");
}

}  // namespace
}  // namespace systole
