#include "testbench/cli/command.h"

namespace systole::testbench {

void add_examples(CLI::App& command, const std::vector<std::string>& lines) {
  std::string text = "Examples:";
  for (const std::string& line : lines) text += "\n  " + line;
  command.footer(text);
}

}  // namespace systole::testbench
