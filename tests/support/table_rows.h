#pragma once

#include <string>
#include <vector>

#include "support/paths.h"
#include "support/temp_directory.h"
#include "support/text_lines.h"

namespace systole {

/// The columns between `|` of each row of a table, without the blanks around them. A line that
/// begins with `#` is a comment.
inline std::vector<std::vector<std::string>> rows_in(const std::string& table) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : lines_of(table)) {
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

/// Those of a file of the project.
inline std::vector<std::vector<std::string>> rows_of(const std::string& path) {
  return rows_in(read_file(source_path(path)));
}

}  // namespace systole
