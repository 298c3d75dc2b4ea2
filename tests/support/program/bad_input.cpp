#include "support/program/bad_input.h"

#include <algorithm>
#include <regex>
#include <stdexcept>
#include <utility>

#include "support/npy_bytes.h"
#include "support/paths.h"
#include "support/text_lines.h"

namespace systole::testbench {
namespace {

/// `\n` ends a line, `\xHH` is a byte, `\*N` makes N of the byte before it.
std::string unescaped(const std::string& text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "\\n") == 0) {
      bytes += '\n';
      ++at;
    } else if (text.compare(at, 2, "\\x") == 0) {
      bytes += static_cast<char>(std::stoi(text.substr(at + 2, 2), nullptr, 16));
      at += 3;
    } else if (text.compare(at, 2, "\\*") == 0) {
      std::size_t digits = 0;
      bytes.append(std::stoul(text.substr(at + 2), &digits) - 1, bytes.back());
      at += 1 + digits;
    } else {
      bytes += text[at];
    }
  }
  return bytes;
}

/// `text` up to `last` and that, and what follows after a blank, unescaped.
std::pair<std::string, std::string> split_after(const std::string& text, char last) {
  const std::size_t end = std::min(text.rfind(last), text.size() - 1) + 1;
  return {text.substr(0, end), unescaped(text.substr(std::min(end + 1, text.size())))};
}

/// `bytes` with those replaced that "FIND + N = BYTES" names: N after FIND, which may be several
/// texts that follow one another, with "..." between them.
std::string patched(std::string bytes, const std::string& patch) {
  const std::size_t equals = patch.rfind(" = "), plus = patch.rfind(" + ", equals);
  std::string find = patch.substr(0, plus);
  std::size_t at = 0;
  for (std::size_t dots; (dots = find.find("...")) != std::string::npos;) {
    at = bytes.find(find.substr(0, dots), at);
    find.erase(0, dots + 3);
  }
  at = bytes.find(find, at) + std::stoul(patch.substr(plus + 3));
  const std::string by = unescaped(patch.substr(equals + 3));
  return bytes.replace(at, by.size(), by);
}

/// Contents of the file `name` after the column "`verb` NAME: `text`", see refusals.txt.
std::string contents_of(const std::string& verb, const std::string& text,
                        const std::string& before) {
  if (verb == "file") return unescaped(text);
  if (verb == "append") return before + unescaped(text);
  if (verb == "half") return before.substr(0, before.size() / 2);
  if (verb == "patch") return patched(before, text);
  if (verb == "copy") return read_file(source_path(text));
  if (verb == "program") {
    const TempDirectory directory;
    output_of({"map", "-m", "gemmini", "--model", "vit17", "--out", directory.path("p")});
    return read_file(directory.path("p"));
  }
  const auto [header, data] = split_after(text, verb == "safetensors" ? '}' : ')');
  if (verb == "safetensors") {
    std::string length;
    for (int i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i));
    return length + header + data;
  }
  if (verb == "floats") {
    std::vector<float> values;
    for (const std::string& word : words_of(data)) values.push_back(std::stof(word));
    return npy_floats(header, values);
  }
  const std::size_t blank = header.find(' ');
  const std::string type = header.substr(0, blank), sizes = header.substr(blank + 1);
  return npy_of(npy_header(type == "bool" ? "|b1" : unescaped(type), sizes), data);
}

}  // namespace

BadInput bad_input_of(const Words& columns) {
  static const std::regex file(
      "(file|append|half|patch|copy|program|safetensors|floats|npy) \\S+:.*");
  BadInput bad{columns.at(0), {}, {{}}, {}};
  for (const std::string& word : words_of(columns.at(1))) bad.arguments.push_back(unescaped(word));
  for (std::size_t i = 2; i < columns.size(); ++i) {
    if (std::regex_match(columns[i], file)) {
      bad.files.push_back(columns[i]);
    } else if (columns[i] == "next line") {
      bad.errors.emplace_back();
    } else {
      bad.errors.back().push_back(columns[i]);
    }
  }
  if (bad.errors.back().empty()) throw std::runtime_error(bad.name + ": no text is expected");
  return bad;
}

void expect_refused(const BadInput& bad, const TempDirectory& directory) {
  SCOPED_TRACE(bad.name);
  for (const std::string& column : bad.files) {
    const std::size_t blank = column.find(' '), colon = column.find(':');
    const std::string name = column.substr(blank + 1, colon - blank - 1);
    const Words names = directory.names();
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    directory.write(name, contents_of(column.substr(0, blank),
                                      column.substr(std::min(colon + 2, column.size())),
                                      known ? read_file(directory.path(name)) : ""));
  }
  const Words before = directory.names();
  const ProgramRun result = run_systole(bad.arguments, directory.path());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  const Words lines = lines_of(result.err);
  ASSERT_EQ(lines.size(), bad.errors.size()) << result.err;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].rfind("systole: ", 0), 0U) << lines[i];
    for (const std::string& text : bad.errors[i]) {
      EXPECT_NE(lines[i].find(text), std::string::npos) << "'" << text << "' in: " << lines[i];
    }
  }
  EXPECT_EQ(directory.names(), before);
}

void expect_rows_refused(const std::string& table, const TempDirectory& directory) {
  for (const Words& columns : rows_in(table)) expect_refused(bad_input_of(columns), directory);
}

}  // namespace systole::testbench
