#include "hw/program/window.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/program/command_check.h"
#include "hw/program/command_codec.h"
#include "hw/program/disassembly.h"
#include "hw/program/program.h"
#include "support/input_error.h"
#include "support/random/random_machine.h"

namespace systole::hw {
namespace {

Window random_window(systole::test::Random& random, Gather gather) {
  for (;;) {
    Window window;
    window.gather = gather;
    window.kernel_rows = static_cast<std::uint16_t>(systole::test::between(random, 1, 7));
    window.kernel_cols = static_cast<std::uint16_t>(systole::test::between(random, 1, 7));
    window.stride = static_cast<std::uint16_t>(systole::test::between(random, 1, 3));
    const auto side = [&] {
      return static_cast<std::uint8_t>(systole::test::between(random, 0, 6));
    };
    window.padding.top = side();
    window.padding.left = side();
    window.padding.bottom = side();
    window.padding.right = side();
    window.height = systole::test::between(random, 1, 9);
    window.width = systole::test::between(random, 1, 9);
    window.channels = systole::test::between(random, 1, 5);
    try {
      check_window(window);
      return window;
    } catch (const InputError&) {
      continue;
    }
  }
}

/// Where element (row, col) of the patches is, by definition; -1: padding.
std::int64_t byte_of(const Window& window, std::uint64_t row, std::uint64_t col,
                     std::uint64_t pitch) {
  const std::uint64_t pixel = col / window.channels;
  const auto y = static_cast<std::int64_t>(row / window.out_width() * window.stride +
                                           pixel / window.kernel_cols) -
                 window.padding.top;
  const auto x = static_cast<std::int64_t>(row % window.out_width() * window.stride +
                                           pixel % window.kernel_cols) -
                 window.padding.left;
  if (y < 0 || x < 0 || y >= window.height || x >= window.width) return -1;
  return (y * window.width + x) * static_cast<std::int64_t>(pitch) +
         static_cast<std::int64_t>(col % window.channels);
}

TEST(Window, RunsOfAnyTileCoverWhatItsElementsAre) {
  systole::test::Random random(1);
  int joined = 0;
  for (int i = 0; i < 3000; ++i) {
    WindowTile tile{random_window(random, Gather::kPatches), 0, 0};
    const Window& window = tile.window;
    const std::uint64_t pitch = window.channels + systole::test::between(random, 0, 1) * 3;
    tile.row = systole::test::between(random, 0, static_cast<std::uint32_t>(window.rows()) - 1);
    tile.col = systole::test::between(random, 0, static_cast<std::uint32_t>(window.cols()) - 1);
    const std::uint32_t cols =
        systole::test::between(random, 1, static_cast<std::uint32_t>(window.cols()) - tile.col);
    const std::uint64_t rows = window.rows() - tile.row;
    const WindowSpan span = window_span(tile, rows, pitch);
    for (std::uint64_t row = 0; row < rows; ++row) {
      std::vector<std::int64_t> found(cols, -1);
      std::uint64_t end = 0;
      for_each_run(tile, row, cols, pitch, [&](const WindowRun& run) {
        ASSERT_GE(run.col, end) << "in the order of the columns";
        end = run.col + run.bytes;
        ASSERT_LE(end, cols);
        ASSERT_GE(run.offset, span.begin);
        ASSERT_LE(run.offset + run.bytes, span.end);
        joined += run.bytes > window.channels ? 1 : 0;
        for (std::uint32_t b = 0; b < run.bytes; ++b) {
          found[run.col + b] = static_cast<std::int64_t>(run.offset + b);
        }
      });
      for (std::uint32_t col = 0; col < cols; ++col) {
        ASSERT_EQ(found[col], byte_of(window, tile.row + row, tile.col + col, pitch));
      }
    }
    ASSERT_LE(span.end,
              (std::uint64_t{window.height} * window.width - 1) * pitch + window.channels);
  }
  EXPECT_GT(joined, 1000);
}

TEST(Window, RunsThatAreReducedAreThoseOfItsPixelsInside) {
  systole::test::Random random(2);
  for (int i = 0; i < 500; ++i) {
    WindowTile tile{random_window(random, Gather::kMaximum), 0, 0};
    Window patches = tile.window;
    patches.gather = Gather::kPatches;
    tile.col = systole::test::between(random, 0, patches.channels - 1);
    const std::uint32_t cols = patches.channels - tile.col;
    for (std::uint64_t row = 0; row < patches.rows(); ++row) {
      std::vector<std::int64_t> found, expected;
      for_each_run(tile, row, cols, patches.channels, [&](const WindowRun& run) {
        ASSERT_EQ(run.bytes, cols);
        found.push_back(static_cast<std::int64_t>(run.offset));
      });
      for (std::uint64_t pixel = 0; pixel < patches.pixels(); ++pixel) {
        const std::int64_t at =
            byte_of(patches, row, pixel * patches.channels + tile.col, patches.channels);
        if (at >= 0) expected.push_back(at);
      }
      ASSERT_EQ(found, expected);
      ASSERT_FALSE(found.empty()) << "padding is narrower than the window";
    }
  }
}

cmd::Load windowed_load() {
  cmd::Load load;
  load.from = {0x2000, 24};
  load.m = 5;
  load.n = 40;
  load.to = {64, 48};
  load.window = WindowTile{{Gather::kPatches, 3, 2, 2, {1, 1, 1, 1}, 9, 7, 24}, 3, 100};
  return load;
}

TEST(Window, OfALoadIsPartOfItsCommand) {
  Program program;
  program.commands = {{windowed_load()}, {}};
  const std::vector<std::uint8_t> bytes = encode_commands(program.commands);
  EXPECT_EQ(decode_command(bytes.data()), program.commands[0]);
  EXPECT_NE(disassemble(program).find(
                " gather=patches kernel_rows=3 kernel_cols=2 stride=2 "
                "top=1 left=1 bottom=1 right=1 height=9 width=7 channels=24 row=3 col=100\n"),
            std::string::npos)
      << disassemble(program);
  std::vector<std::uint8_t> bad = bytes;
  bad[4] = 4;  // gather
  EXPECT_THROW(static_cast<void>(decode_command(bad.data())), InputError);
  bad[4] = 0;  // then the other fields belong to nothing
  EXPECT_THROW(static_cast<void>(decode_command(bad.data())), InputError);
}

TEST(Window, HasFourSidesInItsCommand) {
  cmd::Load load = windowed_load();
  load.window->window.padding = {1, 20, 255, 4};
  const std::vector<std::uint8_t> bytes = encode_commands({{load}});
  EXPECT_EQ(decode_command(bytes.data()), Command{load});
  EXPECT_EQ(std::vector<int>(bytes.begin() + 44, bytes.begin() + 48),
            (std::vector<int>{1, 20, 255, 4}));
}

TEST(Window, OfALoadReadsRowsOfPixels) {
  const Program program;
  const std::vector<Range> ranges = ranges_of({windowed_load()}, program);
  ASSERT_EQ(ranges.size(), 2U);
  // Four places in a row: places 3 to 7 touch rows of pixels -1 to 3.
  EXPECT_EQ(ranges[0].begin, 0x2000U);
  EXPECT_EQ(ranges[0].end, 0x2000U + 4 * 7 * 24);
  EXPECT_FALSE(ranges[0].write);
}

TEST(Window, OfMaximaIsWiderThanItsPadding) {
  Window window = windowed_load().window->window;
  window.padding = {2, 1, 2, 1};
  EXPECT_NO_THROW(check_window(window));
  window.gather = Gather::kMaximum;  // 3 x 2 pixels
  EXPECT_NO_THROW(check_window(window));
  const std::pair<std::uint8_t Padding::*, const char*> sides[] = {
      {&Padding::top, "padding top is 3, expected 0 to 2"},
      {&Padding::left, "padding left is 3, expected 0 to 1"},
      {&Padding::bottom, "padding bottom is 3, expected 0 to 2"},
      {&Padding::right, "padding right is 3, expected 0 to 1"}};
  for (const auto& [side, message] : sides) {
    Window bad = window;
    bad.padding.*side = 3;
    expect_contains(input_error_of([&bad] { check_window(bad); }), message);
  }
}

TEST(Window, OfALoadIsChecked) {
  struct Bad {
    void (*spoil)(cmd::Load&);
    const char* message;
  };
  const Bad all[] = {
      {[](cmd::Load& l) { l.window->window.stride = 0; }, "stride is 0, expected 1 to 255"},
      {[](cmd::Load& l) { l.window->window.height = 0; }, "height is 0"},
      {[](cmd::Load& l) { l.window->window.channels = 70000; }, "channels is 70000"},
      {[](cmd::Load& l) { l.window->window.kernel_rows = 12; }, "expected one that fits 9 x 7"},
      {[](cmd::Load& l) { l.window->window.gather = Gather::kSum; }, "expected patches"},
      {[](cmd::Load& l) { l.window->row = 16; }, "rows 16 to 21 of the 20"},
      {[](cmd::Load& l) { l.window->col = 105; }, "columns 105 to 145 of the 144"},
      {[](cmd::Load& l) { l.type = DType::kS16; }, "elements of one byte"},
      {[](cmd::Load& l) { l.pre.emplace(); }, "a window and stages"},
      {[](cmd::Load& l) { l.from.address = 0xfff00; }, "reads DRAM bytes"}};
  for (const Bad& bad : all) {
    Program program;
    program.operators.emplace_back().name = "a";
    cmd::Load load = windowed_load();
    EXPECT_NO_THROW((program.commands = {{load}, {}}, check_program(program, Machine{}, 1U << 20)));
    bad.spoil(load);
    program.commands = {{load}, {}};
    expect_contains(input_error_of([&] { check_program(program, Machine{}, 1U << 20); }),
                    bad.message);
  }
}

}  // namespace
}  // namespace systole::hw
