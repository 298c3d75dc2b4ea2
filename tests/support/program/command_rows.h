#pragma once

#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/temp_directory.h"
#include "support/text_lines.h"

/// Tables of command lines: rows of columns between `|`, a comment after `#` at the start of a
/// line.
namespace systole::testbench {

/// The columns of each row of a file of the project, without the blanks around them.
inline std::vector<std::vector<std::string>> rows_of(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : lines_of(read_file(source_path(path)))) {
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string>& columns = rows.emplace_back();
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = line.find('|', begin);
      const std::string column = line.substr(begin, end - begin);
      const std::size_t first = column.find_first_not_of(' ');
      const std::size_t last = column.find_last_not_of(' ');
      columns.push_back(first == std::string::npos ? "" : column.substr(first, last + 1 - first));
    }
  }
  return rows;
}

/// The words of a command line, of which some may be in double quotes.
inline std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> std::quoted(word);) words.push_back(word);
  return words;
}

}  // namespace systole::testbench
