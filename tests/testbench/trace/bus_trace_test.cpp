#include "testbench/trace/bus_trace.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/input_error.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

const std::string kHead =
    "# systole bus trace 1\n# machine m\n# clock_mhz 800\n"
    "asked,initiator,command,address,bytes,granted,answered\n";

class BusTraceFile : public testing::Test {
 protected:
  BusTrace read(const std::string& name, const std::string& text) const {
    return read_bus_trace(directory_.write(name, text), machine_);
  }
  std::string error_of(const std::string& name, const std::string& text) const {
    return input_error_of([&] { static_cast<void>(read(name, text)); });
  }

  const TempDirectory directory_;
  const hw::Machine machine_ = hw::find_machine("tiny");
};

TEST_F(BusTraceFile, ReadsEveryField) {
  const BusTrace trace = read("a.csv", kHead +
                                           "7,dma,write,0x40,32,9,30\r\n8,host,read,128,8,8,21\n"
                                           "# end 2\n");
  EXPECT_EQ(trace.machine, "m");
  EXPECT_EQ(trace.clock_mhz, 800U);
  EXPECT_EQ(trace.initiators, (std::vector<std::string>{"dma", "host"}));
  ASSERT_EQ(trace.transactions.size(), 2U);
  const tlm_model::BusTransaction& write = trace.transactions[0];
  EXPECT_EQ(write.asked, 7U);
  EXPECT_EQ(write.initiator, 0U);
  EXPECT_TRUE(write.write);
  EXPECT_EQ(write.address, 64U);
  EXPECT_EQ(write.bytes, 32U);
  EXPECT_EQ(write.granted, 9U);
  EXPECT_EQ(write.answered, 30U);
  EXPECT_FALSE(trace.transactions[1].write);
  EXPECT_EQ(trace.transactions[1].initiator, 1U);
  EXPECT_EQ(trace.transactions[1].address, 128U);
}

// As the player of DRAMSys 5 reads them: a number, a length in parentheses or none, hexadecimal
// addresses with or without 0x, data that a player without storage passes over.
TEST_F(BusTraceFile, ReadsTracesOfDramsys) {
  const BusTrace trace = read("a.stl",
                              "# comment\n\n31:\tread\t0x40\n33: (32) write 0x80 0xffff\n"
                              "40 read c0\n");
  ASSERT_EQ(trace.transactions.size(), 3U);
  EXPECT_EQ(trace.transactions[0].asked, 31U);
  EXPECT_EQ(trace.transactions[0].bytes, machine_.dma.request_bytes);
  EXPECT_FALSE(trace.transactions[0].write);
  EXPECT_EQ(trace.transactions[1].bytes, 32U);
  EXPECT_TRUE(trace.transactions[1].write);
  EXPECT_EQ(trace.transactions[1].address, 0x80U);
  EXPECT_EQ(trace.transactions[2].address, 0xc0U);
}

// As the front end LoadStoreTrace of Ramulator 2 reads them.
TEST_F(BusTraceFile, ReadsTracesOfRamulator) {
  const BusTrace trace = read("a.trace", "LD 0x40\nST 128\n");
  ASSERT_EQ(trace.transactions.size(), 2U);
  EXPECT_EQ(trace.transactions[0].address, 64U);
  EXPECT_FALSE(trace.transactions[0].write);
  EXPECT_EQ(trace.transactions[1].address, 128U);
  EXPECT_TRUE(trace.transactions[1].write);
  EXPECT_EQ(trace.transactions[1].asked, 1U);
}

struct Hostile {
  const char *name, *text, *error;
};

TEST_F(BusTraceFile, RefusesWhatIsMalformedWithItsLine) {
  const std::string row = "7,dma,write,0x40,32,9,30\n";
  const std::vector<Hostile> hostile = {
      {"a.csv", "asked\n", "a.csv:1: found 'asked', expected the line '# systole bus trace 1'"},
      {"a.stl", "31: erase 0x40\n", "a.stl:1: found '31: erase 0x40', expected 'read' or 'write'"},
      {"a.stl", "31: read\n", "expected an address"},
      {"a.stl", "x: read 0x40\n", "expected a cycle and a colon first"},
      {"a.stl", "31: (0) read 0x40\n", "expected 1 to 1048576 bytes"},
      {"a.stl", "31: (99999999999) read 0x40\n", "expected 1 to 1048576 bytes"},
      {"a.stl", "31: read 0x40\n30: read 0x40\n",
       "a.stl:2: found '30: read 0x40', expected a cycle of at least 31"},
      {"a.stl", "31: read 0xffffffffff\n", "expected an address in the"},
      {"a.stl", "31: read 0xffffffffffffffffffff\n", "expected an address"},
      {"a.stl", "9999999999999: read 0x40\n", "expected cycles up to"},
      {"a.stl", "# nothing\n", "a.stl:2: expected at least one transaction"},
      {"a.trace", "LD 0x40 7\n", "expected a command and an address"},
      {"a.trace", "R 0x40\n", "expected 'LD' or 'ST'"},
      {"a.trace", "LD -4\n", "expected an address"},
      {"a.txt", "LD 0x40\n", "a trace is named by its format"},
  };
  for (const Hostile& one : hostile) expect_contains(error_of(one.name, one.text), one.error);
  const std::vector<Hostile> rows = {
      {"", "7,dma,write,0x40,32,9\n",
       "a.csv:5: found '7,dma,write,0x40,32,9', expected seven fields"},
      {"", "7,dma,write,0x40,32,9,30,1\n", "expected seven fields"},
      {"", "7,dma,write,0x40,32,6,30\n", "expected asked, granted and answered in that order"},
      {"", "7,,write,0x40,32,9,30\n", "expected names of at most 256 initiators"},
      {"", "7,dma,erase,0x40,32,9,30\n", "expected 'read' or 'write'"},
      {"", "7,dma,write,0x1ffffffffff,8,9,30\n", "expected an address in the"},
      // Ends in the registers, which begin four bytes later.
      {"", "7,dma,write,0xfffffffffc,8,9,30\n", "expected an address in the"},
      {"", "", "a.csv:6: the trace is cut short: expected '# end ' and a count"},
  };
  for (const Hostile& one : rows) {
    expect_contains(error_of("a.csv", kHead + (*one.text == '\0' ? row : one.text)), one.error);
  }
  expect_contains(error_of("a.csv", kHead + row + "# end 2\n"), "expected '# end 1', as many");
  expect_contains(error_of("a.csv", kHead + row + "# end 1\n" + row), "nothing after the end");
  expect_contains(error_of("a.csv", "# systole bus trace 1\n# clock_mhz 0\n"), "1 to 1000000 MHz");
}

TEST_F(BusTraceFile, RefusesCompressedDataThatAreCutOrDamaged) {
  const std::string path = directory_.path("a.csv.gz");
  {
    BusTraceWriter writer(path, machine_);
    std::vector<tlm_model::BusObserver> observers;
    writer.observe(observers);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      observers.front()({64 * i, i, i, i + 40, 64, 0, false}, "system.dma.socket");
    }
    writer.commit();
  }
  EXPECT_EQ(read_bus_trace(path, machine_).transactions.size(), 1000U);
  const std::string bytes = read_file(path);
  expect_contains(error_of("a.csv.gz", bytes.substr(0, bytes.size() / 2)), "are cut short");
  std::string damaged = bytes;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  expect_contains(error_of("a.csv.gz", damaged), "a.csv.gz");
  expect_contains(error_of("a.csv.gz", "\x1f\x8b nothing"), "is no gzip file, or damaged");
}

TEST_F(BusTraceFile, AppearsWhenItIsComplete) {
  {
    BusTraceWriter writer(directory_.path("a.csv"), machine_);
    std::vector<tlm_model::BusObserver> observers;
    writer.observe(observers);
    observers.front()({0, 0, 0, 9, 64, 0, false}, "system.dma.socket");
  }
  EXPECT_TRUE(directory_.names().empty());
  expect_contains(input_error_of([&] { BusTraceWriter writer("/nowhere/a.csv.gz", machine_); }),
                  "/nowhere/a.csv.gz");
  const BusTraceWriter none("", machine_);
}

}  // namespace
}  // namespace systole::testbench
