#include "base/printable.h"

#include <gtest/gtest.h>

namespace systole::hw {
namespace {

TEST(Printable, KeepsOrdinaryText) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("dir/a b.toml"), "dir/a b.toml");
  EXPECT_EQ(printable("gr\xC3\xB6\xC3\x9F"
                      "e"),
            "gr\xC3\xB6\xC3\x9F"
            "e");
}

TEST(Printable, EscapesWhatBreaksALineOrDrivesATerminal) {
  EXPECT_EQ(printable("a\nb\tc"), "a\\x0ab\\x09c");
  EXPECT_EQ(printable("\x1B[2J\x7F"), "\\x1b[2J\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "\\xc2\\x9b2J")
      << "CSI, a C1 control";
  EXPECT_EQ(printable("\xC2\xA0"), "\xC2\xA0") << "the first code that is no control";
}

TEST(Printable, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abcd...");
  EXPECT_EQ(printable("abc\xC3\xB6z", 4), "abc...");
  EXPECT_EQ(printable("abc", 0), "...");
}

}  // namespace
}  // namespace systole::hw
