/// Waveforms in GTKWave's format against those in text, against what was put in, and against
/// GTKWave's own converter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "support/input_error.h"
#include "support/network/vit_run.h"
#include "support/paths.h"
#include "support/temp_directory.h"
#include "support/tlm/fst_reader.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/vcd_reader.h"
#include "testbench/common/child_process.h"
#include "testbench/wave/fst_merge.h"
#include "testbench/wave/wave_file.h"

namespace systole::testbench {
namespace {

using Kind = RecordedValue::Kind;

void expect_same(const test::Vcd& found, const test::Vcd& expected) {
  EXPECT_EQ(found.begin, expected.begin);
  EXPECT_EQ(found.end, expected.end);
  ASSERT_EQ(found.variables.size(), expected.variables.size());
  for (const auto& [path, variable] : expected.variables) {
    const auto other = found.variables.find(path);
    ASSERT_NE(other, found.variables.end()) << path;
    EXPECT_EQ(other->second.width, variable.width) << path;
    ASSERT_EQ(other->second.changes.size(), variable.changes.size()) << path;
    for (std::size_t i = 0; i < variable.changes.size(); ++i) {
      ASSERT_EQ(other->second.changes[i].time, variable.changes[i].time) << path;
      ASSERT_EQ(other->second.changes[i].value, variable.changes[i].value) << path;
    }
  }
}

class FstRunTest : public test::SystemCTest, public testing::WithParamInterface<const char*> {};

TEST_P(FstRunTest, ShowsWhatTheTextShows) {
  const TempDirectory directory;
  const test::VitRun run(GetParam());
  SimulationOptions options;
  options.functional = false;
  options.wave.path = directory.path("run.vcd");
  const SimulationResult text = run.simulate(options);
  options.wave.path = directory.path("run.fst");
  const SimulationResult binary = run.simulate(options);
  EXPECT_EQ(binary.cycles, text.cycles);
  EXPECT_EQ(binary.kernel_events, text.kernel_events);
  expect_same(test::read_fst(directory.path("run.fst")),
              test::parse_vcd(read_file(directory.path("run.vcd"))));
  // 6 on the preset transformer.
  EXPECT_LT(3 * std::filesystem::file_size(directory.path("run.fst")),
            std::filesystem::file_size(directory.path("run.vcd")));
  const std::string bytes = read_file(directory.path("run.fst"));
  run.simulate(options);
  EXPECT_EQ(read_file(directory.path("run.fst")), bytes);
  EXPECT_NE(read_file(directory.path("run.gtkw")).find("run.fst\"\n"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Machines, FstRunTest,
                         testing::Values("tiny", "transformer", "gemmini", "vitcod"));

/// Random signals and changes, as a recorder gives them to a file.
struct RandomWave {
  struct Step {
    std::uint64_t time;
    std::size_t signal;
    RecordedValue value;
  };
  std::vector<RecordedSignal> signals;
  std::vector<RecordedValue> first;
  std::vector<Step> steps;
  std::uint64_t begin, end;

  RandomWave(std::mt19937_64& random, std::size_t count, std::size_t changes, bool unknown = true) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string scope = "top.part" + std::to_string(random() % 3) + ".";
      signals.push_back({scope + "signal" + std::to_string(i),
                         i == 0   ? 1
                         : i == 1 ? 64
                                  : static_cast<unsigned>(random() % 64 + 1)});
      first.push_back(any(random, i, unknown));
    }
    std::vector<RecordedValue> now = first;
    std::uint64_t time = begin = random() % 1000;
    for (std::size_t i = 0; i < changes; ++i) {
      time += random() % 3 == 0 ? random() % 5000 + 1 : 0;
      if (time == begin) ++time;
      const std::size_t signal = random() % count;
      if (i > changes / 3 && signal % 5 == 0) continue;  // some are quiet
      bool twice = false;
      for (auto step = steps.rbegin(); step != steps.rend() && step->time == time; ++step) {
        twice = twice || step->signal == signal;
      }
      const RecordedValue value = any(random, signal, unknown);
      if (twice || value == now[signal]) continue;
      now[signal] = value;
      steps.push_back({time, signal, value});
    }
    end = time + random() % 100;
  }

  RecordedValue any(std::mt19937_64& random, std::size_t signal, bool unknown) const {
    const std::uint64_t kind = random() % 8;
    if (kind == 0) return {Kind::kNone, 0};
    if (kind == 1 && unknown) return {Kind::kUnknown, 0};
    const unsigned width = signals[signal].width;
    return {Kind::kNumber, width == 64 ? random() : random() & ((std::uint64_t{1} << width) - 1)};
  }
  void write(WaveFile& file) const {
    file.begin(begin, signals, first);
    for (const Step& step : steps) file.change(step.time, step.signal, step.value);
    file.commit(end);
  }
  static test::Vcd::Value shown(const RecordedValue& value) {
    if (value.kind == Kind::kNumber) return value.bits;
    return std::nullopt;
  }
  /// As a reader sees them: one that has no value and one that is unknown look alike.
  [[nodiscard]] test::Vcd as_read() const {
    test::Vcd vcd;
    vcd.begin = begin, vcd.end = end;
    for (std::size_t i = 0; i < signals.size(); ++i) {
      vcd.variables[signals[i].name] = {signals[i].width, {{begin, shown(first[i])}}};
    }
    for (const Step& step : steps) {
      auto& changes = vcd.variables.at(signals[step.signal].name).changes;
      if (changes.back().value != shown(step.value)) {
        changes.push_back({step.time, shown(step.value)});
      }
    }
    return vcd;
  }
};

TEST(FstFileTest, KeepsRandomChangesOfAllWidths) {
  const TempDirectory directory;
  std::mt19937_64 random(7);
  for (int i = 0; i < 40; ++i) {
    const RandomWave wave(random, random() % 40 + 2, random() % 3000);
    wave.write(*make_fst_file(directory.path("random.fst")));
    expect_same(test::read_fst(directory.path("random.fst")), wave.as_read());
  }
  EXPECT_EQ(directory.names(), (std::vector<std::string>{"random.fst"}));
}

/// What GTKWave's reader says of all signals at a time when it has read nothing before that.
void expect_values_at(const std::string& path, std::uint64_t time, const test::Vcd& expected) {
  const std::unique_ptr<void, void (*)(void*)> reader(fstReaderOpen(path.c_str()), fstReaderClose);
  ASSERT_GE(fstReaderGetValueChangeSectionCount(reader.get()), 3U);
  std::vector<std::string> scopes{""};
  while (const fstHier* entry = fstReaderIterateHier(reader.get())) {
    if (entry->htyp == FST_HT_SCOPE) scopes.push_back(scopes.back() + entry->u.scope.name + ".");
    if (entry->htyp == FST_HT_UPSCOPE) scopes.pop_back();
    if (entry->htyp != FST_HT_VAR) continue;
    const std::string name = entry->u.var.name;
    std::array<char, 65> digits{};
    ASSERT_NE(
        fstReaderGetValueFromHandleAtTime(reader.get(), time, entry->u.var.handle, digits.data()),
        nullptr);
    const std::string text = digits.data();
    test::Vcd::Value value;
    if (text.find_first_not_of("01") == text.npos) value = std::stoull(text, nullptr, 2);
    const std::string signal = scopes.back() + name.substr(0, name.find(' '));
    ASSERT_EQ(value, expected.at(signal, time)) << signal << " at " << time;
  }
}

// More than a piece, and what it says of its size meanwhile.
TEST(FstFileTest, KeepsManyChanges) {
  const TempDirectory directory;
  std::mt19937_64 random(11);
  const RandomWave wave(random, 200, 2'000'000, false);
  const auto file = make_fst_file(directory.path("large.fst"));
  file->begin(wave.begin, wave.signals, wave.first);
  std::uint64_t known = 0, grew = 0;
  for (const RandomWave::Step& step : wave.steps) {
    file->change(step.time, step.signal, step.value);
    grew += file->bytes() > known ? 1 : 0;
    EXPECT_GE(file->bytes(), known);
    known = file->bytes();
  }
  file->commit(wave.end);
  EXPECT_GE(grew, 3U);
  EXPECT_GT(known, std::filesystem::file_size(directory.path("large.fst")) / 3);
  EXPECT_LE(known, std::filesystem::file_size(directory.path("large.fst")));
  const test::Vcd expected = wave.as_read();
  expect_same(test::read_fst(directory.path("large.fst")), expected);
  // A reader that begins anywhere: each piece has the values with which it begins.
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t time = wave.begin + random() % (wave.end - wave.begin);
    expect_values_at(directory.path("large.fst"), time, expected);
  }
}

/// What is said of files that may not have more than so many bytes.
std::string error_with_room_for(rlim_t bytes, const std::function<void()>& work) {
  return input_error_of([&] {
    static_cast<void>(in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{bytes, bytes};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      work();
      return 0;
    }));
  });
}

TEST(FstFileTest, AFullDiskIsNoticed) {
  const TempDirectory directory;
  std::mt19937_64 random(19);
  const RandomWave wave(random, 30, 20'000);
  const std::string path = directory.path("run.fst");
  wave.write(*make_fst_file(path));
  const std::string whole = read_file(path);
  const rlim_t room = whole.size() - 100;
  const auto cannot = testing::HasSubstr("run.fst: cannot be written as a whole");
  EXPECT_THAT(error_with_room_for(room, [&] { wave.write(*make_fst_file(path)); }), cannot);
  EXPECT_TRUE(read_file(path) == whole);
  wave.write(*make_fst_file(directory.path("part.fst")));
  const auto merge = [&] { merge_fst(path, {{directory.path("part.fst"), "rtl"}}); };
  EXPECT_THAT(error_with_room_for(room / 2, merge), cannot);
  EXPECT_TRUE(read_file(path) == whole);
  EXPECT_EQ(directory.names(), (std::vector<std::string>{"part.fst", "run.fst"}));
}

TEST(FstFileTest, LeavesNothingWithoutACommit) {
  const TempDirectory directory;
  std::mt19937_64 random(3);
  const RandomWave wave(random, 5, 100);
  {
    const auto file = make_fst_file(directory.path("run.fst"));
    file->begin(wave.begin, wave.signals, wave.first);
  }
  EXPECT_TRUE(directory.names().empty());
  std::filesystem::create_symlink("/dev/full", directory.path("device.fst"));
  EXPECT_THAT(input_error_of([&] { (void)make_fst_file(directory.path("device.fst")); }),
              testing::HasSubstr("device.fst: no regular file"));
  EXPECT_THAT(input_error_of([&] { (void)make_fst_file(directory.path("none/run.fst")); }),
              testing::HasSubstr("none/run.fst"));
}

/// Changes of a VCD in which numbers may have leading zeros, without what fst2vcd puts before the
/// first values.
std::map<std::string, std::vector<std::pair<std::uint64_t, std::string>>> lenient_changes(
    const std::string& text) {
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::string>>> changes;
  std::map<std::string, std::string> names;
  std::vector<std::string> scopes;
  std::istringstream in(text);
  std::uint64_t time = 0;
  bool begun = false;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string first, kind, width, id, name;
    words >> first;
    if (first == "$scope") {
      words >> kind >> name;
      scopes.push_back(name);
    } else if (first == "$upscope") {
      scopes.pop_back();
    } else if (first == "$var") {
      words >> kind >> width >> id >> name;
      std::string path;
      for (const std::string& scope : scopes) path += scope + ".";
      names[id] = path + name;
    } else if (first == "$enddefinitions") {
      begun = true;
    } else if (begun && first[0] == '#') {
      time = std::stoull(first.substr(1));
    } else if (begun && std::string("b01xz").find(first[0]) != std::string::npos) {
      const bool vector = first[0] == 'b';
      if (vector) words >> id;
      std::string digits = vector ? first.substr(1) : first.substr(0, 1);
      const std::string& path = names.at(vector ? id : first.substr(1));
      digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
      if (digits.find_first_not_of(digits[0]) == digits.npos && digits[0] != '1') {
        digits.resize(1);  // all unknown, without a value, or zero
      }
      auto& of = changes[path];
      if (!of.empty() && of.back().first == time) of.pop_back();
      if (of.empty() || of.back().second != digits) of.emplace_back(time, digits);
    }
  }
  return changes;
}

TEST(FstFileTest, IsReadAlikeByGtkwavesConverter) {
  if (std::system("command -v fst2vcd >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "fst2vcd, of the package gtkwave, is not installed: NOT COMPARED with it";
  }
  const TempDirectory directory;
  std::mt19937_64 random(5);
  for (int i = 0; i < 10; ++i) {
    const RandomWave wave(random, random() % 40 + 2, random() % 3000);
    wave.write(*make_fst_file(directory.path("a.fst")));
    wave.write(*make_vcd_file(directory.path("a.vcd")));
    const std::string command = "fst2vcd -f " + directory.path("a.fst") + " -o " +
                                directory.path("b.vcd") + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(lenient_changes(read_file(directory.path("b.vcd"))),
              lenient_changes(read_file(directory.path("a.vcd"))));
  }
}

TEST(FstMergeTest, PutsPartsOnTheTimeOfTheWhole) {
  const TempDirectory directory;
  std::mt19937_64 random(13);
  for (int i = 0; i < 20; ++i) {
    RandomWave whole(random, random() % 20 + 2, random() % 2000 + 10);
    std::array<RandomWave, 2> parts = {RandomWave(random, random() % 20 + 2, random() % 2000),
                                       RandomWave(random, random() % 20 + 2, random() % 2000)};
    // One begins before it, one in it, as the second of two blocks does.
    const std::uint64_t shift = (whole.end - whole.begin) / 3 + parts[0].end;
    whole.begin += shift, whole.end += shift;
    for (RandomWave::Step& step : whole.steps) step.time += shift;
    const std::uint64_t late = whole.begin + (whole.end - whole.begin) / 2;
    parts[1].begin += late, parts[1].end += late;
    for (RandomWave::Step& step : parts[1].steps) step.time += late;
    whole.write(*make_fst_file(directory.path("whole.fst")));
    parts[0].write(*make_fst_file(directory.path("0.fst")));
    parts[1].write(*make_fst_file(directory.path("1.fst")));
    merge_fst(directory.path("whole.fst"),
              {{directory.path("0.fst"), "rtl"}, {directory.path("1.fst"), "rtl.inner"}},
              random() % 4000 + 100);
    const test::Vcd merged = test::read_fst(directory.path("whole.fst"));
    EXPECT_EQ(merged.begin, whole.begin);
    EXPECT_EQ(merged.end, whole.end);
    std::size_t variables = 0;
    const auto expect = [&](const std::string& scope, const RandomWave& wave) {
      const test::Vcd own = wave.as_read();
      for (const auto& [path, variable] : own.variables) {
        ++variables;
        for (int at = 0; at < 50; ++at) {
          const std::uint64_t time = whole.begin + random() % (whole.end - whole.begin + 1);
          test::Vcd::Value value;  // none before it begins
          if (time >= own.begin) value = own.at(path, std::min(time, own.end));
          ASSERT_EQ(merged.at(scope + path, time), value) << scope << path << " at " << time;
        }
      }
    };
    expect("", whole);
    expect("rtl.", parts[0]);
    expect("rtl.inner.", parts[1]);
    EXPECT_EQ(merged.variables.size(), variables);
  }
}

TEST(FstMergeTest, NamesAFileThatIsNoWaveform) {
  const TempDirectory directory;
  std::mt19937_64 random(17);
  const RandomWave wave(random, 4, 50);
  wave.write(*make_fst_file(directory.path("whole.fst")));
  const std::string before = read_file(directory.path("whole.fst"));
  directory.write("text.fst", "no waveform");
  EXPECT_THAT(input_error_of([&] {
                merge_fst(directory.path("whole.fst"), {{directory.path("text.fst"), "rtl"}});
              }),
              testing::HasSubstr("text.fst: no FST file"));
  EXPECT_EQ(read_file(directory.path("whole.fst")), before);
}

}  // namespace
}  // namespace systole::testbench
