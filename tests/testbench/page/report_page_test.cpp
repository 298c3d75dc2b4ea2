/// The file of --report, without a browser: browser_test.cpp opens it.
#include "testbench/page/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

/// What the script element of that id holds.
std::string part_of(const std::string& page, const std::string& id) {
  const std::size_t name = page.find("id=\"" + id + "\">");
  if (name == std::string::npos) throw std::runtime_error("no part " + id);
  const std::size_t begin = page.find('>', name) + 1;
  return page.substr(begin, page.find("</script>", begin) - begin);
}

std::string decoded(const std::string& text) {
  std::string bytes;
  std::uint32_t group = 0;
  int digits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const int digit = c == '+'   ? 62
                      : c == '/' ? 63
                      : c <= '9' ? c - '0' + 52
                      : c <= 'Z' ? c - 'A'
                                 : c - 'a' + 26;
    group = group << 6U | static_cast<std::uint32_t>(digit);
    if (++digits % 4 == 0) {
      for (const unsigned shift : {16U, 8U, 0U}) bytes += static_cast<char>(group >> shift & 255U);
      group = 0;
    }
  }
  for (int i = 0; i < digits % 4 - 1; ++i) {
    bytes += static_cast<char>(group >> (digits % 4 == 2 ? 4 : 10 - 8 * i) & 255U);
  }
  return bytes;
}

std::string unzipped(std::string bytes) {
  z_stream state{};
  EXPECT_EQ(inflateInit2(&state, 16 + MAX_WBITS), Z_OK);
  state.next_in = reinterpret_cast<Bytef*>(bytes.data());
  state.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  int result = Z_OK;
  while (result == Z_OK) {
    std::array<char, 1 << 16> chunk{};
    state.next_out = reinterpret_cast<Bytef*>(chunk.data());
    state.avail_out = chunk.size();
    result = inflate(&state, Z_NO_FLUSH);
    text.append(chunk.data(), chunk.size() - state.avail_out);
  }
  EXPECT_EQ(result, Z_STREAM_END);
  inflateEnd(&state);
  return text;
}

json explanation_of(std::vector<std::string> arguments) {
  json document = json_of(std::move(arguments));
  document.erase("path");
  document.erase("machine_keys");  // the page has them beside the statistics
  return document;
}

TEST(ReportPage, HoldsTheDocumentsAndTheTimelineOfTheRun) {
  const TempDirectory directory;
  const std::string page = directory.path("run.html"), stats = directory.path("s.json"),
                    timeline = directory.path("t.json");
  output_of({"run", "-m", "transformer", "--model", "vit17", "-n", "1", "--report", page, "--stats",
             stats, "--timeline", timeline});
  const std::string text = read_file(page);
  const json data = json::parse(part_of(text, "data"));
  EXPECT_EQ(data["statistics"], document_of(read_file(stats)));
  EXPECT_EQ(data["explanation"],
            explanation_of({"explain", "-m", "transformer", "--model", "vit17", "--no-what-if"}));
  EXPECT_EQ(unzipped(decoded(part_of(text, "timeline-data"))), read_file(timeline));
}

TEST(ReportPage, OfExplainHasTheChangesOfTheMachine) {
  const TempDirectory directory;
  const std::string page = directory.path("run.html");
  json document =
      json_of({"explain", "-m", "tiny", "--model", "vit17", "--confirm", "1", "--report", page});
  document.erase("machine_keys");
  document.erase("path");
  EXPECT_GT(document["what_if"].size(), 10U);
  const json data = json::parse(part_of(read_file(page), "data"));
  EXPECT_EQ(data["explanation"], document);
  EXPECT_EQ(data["statistics"]["cycles"], document["cycles"]);
}

TEST(ReportPage, RecordsTheFirstInferenceOfSeveral) {
  const TempDirectory directory;
  const std::string page = directory.path("run.html"), timeline = directory.path("t.json");
  output_of({"run", "-m", "tiny", "--model", "vit17", "-n", "2", "--functional", "off", "--report",
             page, "--timeline", timeline, "--timeline-images", "2"});
  const std::string events = unzipped(decoded(part_of(read_file(page), "timeline-data")));
  EXPECT_NE(events.find("inference 0"), std::string::npos);
  EXPECT_EQ(events.find("inference 1"), std::string::npos);
  EXPECT_NE(read_file(timeline).find("inference 1"), std::string::npos);
}

TEST(ReportPage, OfOtherCommandsHoldsTheirDocument) {
  const TempDirectory directory;
  const std::string page = directory.path("run.html");
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"attention", "-m", "vitcod", "--tokens", "65", "--heads", "2"},
           {"generate", "--model", "gpt2", "--functional", "off", "--input-tokens", "1",
            "--output-tokens", "1"},
           {"matmul", "16x16x16", "-m", "tiny"},
           {"layer", "-m", "ita", "--tokens", "64"}}) {
    SCOPED_TRACE(command.front());
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--report", page});
    const json document = json_of(arguments);
    json statistics = json::parse(part_of(read_file(page), "data"))["statistics"];
    const std::string machine = document["machine"];
    EXPECT_EQ(statistics["machine_keys"], json_of({"machine", machine}));
    if (!document.contains("machine_keys")) statistics.erase("machine_keys");
    EXPECT_EQ(statistics, document);
  }
}

/// Bytes of all lengths modulo three, and more than a buffer.
TEST(ReportPage, TimelinesOfAnySizeComeBack) {
  const TempDirectory directory;
  const hw::Machine machine = hw::find_machine("tiny");
  for (const std::size_t size : {0U, 1U, 2U, 3U, 65535U, 65536U, 65537U, 300000U}) {
    std::string events;
    std::uint32_t state = 1;
    while (events.size() < size) {
      state = state * 1664525U + 1013904223U;
      events += static_cast<char>(' ' + (state >> 24U) % 90);
    }
    const std::string path = directory.path("p.html");
    ReportPage page(path);
    page.timeline() << events;
    page.write(machine, json::object());
    EXPECT_EQ(unzipped(decoded(part_of(read_file(path), "timeline-data"))), events) << size;
  }
}

// A browser ends a script element at the first "</script", wherever it stands.
TEST(ReportPage, NoNameEndsAScriptElement) {
  const TempDirectory directory;
  const hw::Machine machine = hw::find_machine("tiny");
  const auto page_of = [&](const std::string& name) {
    ReportPage page(directory.path("p.html"));
    page.write(machine, {{"model", name}, {name, 1}});
    return read_file(directory.path("p.html"));
  };
  const auto ends = [](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find("</script"); at != std::string::npos;
         at = text.find("</script", at + 1)) {
      ++count;
    }
    return count;
  };
  const std::size_t own = ends(page_of("vit17"));
  EXPECT_EQ(own, 4U);
  for (const std::string name : {"</script>", "<!--<script>", "{{timeline}}", "\xff</SCRIPT "}) {
    const std::string page = page_of(name);
    EXPECT_EQ(ends(page), own) << name;
    const std::string data = part_of(page, "data");
    EXPECT_EQ(data.find('<'), std::string::npos) << name;
    const std::string shown = name.front() == '\xff' ? "\ufffd" + name.substr(1) : name;
    EXPECT_EQ(json::parse(data)["statistics"]["model"], shown);
  }
}

TEST(ReportPage, AsksNothingOfTheNetwork) {
  const TempDirectory directory;
  ReportPage page(directory.path("p.html"));
  page.write(hw::find_machine("tiny"), json::object());
  const std::string text = read_file(directory.path("p.html"));
  EXPECT_NE(text.find("content=\"default-src 'none'"), std::string::npos);
  static const std::regex reference("<(script|link|img|iframe)[^>]* (src|href)=");
  const std::string frame = read_file(source_path("testbench/page/page.html"));
  EXPECT_FALSE(std::regex_search(frame, reference));
}

TEST(ReportPage, IsWholeOrNotThere) {
  const TempDirectory directory;
  {
    ReportPage page(directory.path("p.html"));
    page.timeline() << "x";
  }
  EXPECT_TRUE(directory.names().empty());
  EXPECT_FALSE(ReportPage("").wanted());
}

// third_party/echarts/README.md says which file it is.
TEST(ReportPage, LibraryIsTheOneOfItsReadme) {
  const std::string readme = read_file(source_path("third_party/echarts/README.md"));
  static const std::regex sum("\n    ([0-9a-f]{64})\n");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(readme, match, sum));
  const std::string command = "sha256sum " + source_path("third_party/echarts/echarts.min.js");
  FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::array<char, 65> found{};
  EXPECT_EQ(std::fread(found.data(), 1, 64, pipe), 64U);
  ::pclose(pipe);
  EXPECT_EQ(std::string(found.data()), match[1]);
}

}  // namespace
}  // namespace systole::testbench
