#include "testbench/cores/shown_programs.h"

namespace systole::testbench {

ShownPrograms::ShownPrograms(const CorePlan& plan, std::size_t core) {
  for (std::size_t i = 0; i < plan.programs.size(); ++i) {
    if (plan.programs[i].core != core) continue;
    const hw::Program& program = plan.programs[i].mapping->program;
    const Place place{static_cast<std::uint32_t>(program_.operators.size()),
                      static_cast<std::uint32_t>(program_.commands.size())};
    places_.emplace(i, place);
    program_.operators.insert(program_.operators.end(), program.operators.begin(),
                              program.operators.end());
    for (hw::Command command : program.commands) {
      command.op += place.op;
      program_.commands.push_back(command);
    }
  }
}

}  // namespace systole::testbench
