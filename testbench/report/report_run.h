#pragma once

#include <string>
#include <utility>
#include <vector>

#include "testbench/report/measurement.h"

namespace systole::testbench {

/// What a run found, for people: at most kTextWidth columns. `more` are lines of label and value
/// that only this run has, `files` have been written (empty names aside).
[[nodiscard]] std::string report_text(
    const Measurement& measurement, const std::vector<std::string>& files,
    const std::vector<std::pair<std::string, std::string>>& more = {});

/// One line per block that ran as RTL.
[[nodiscard]] std::string rtl_table(const RtlReport& report);

/// One line per account of a block or a part of it: where its time went.
[[nodiscard]] std::string block_table(const std::vector<hw::BlockReport>& blocks);

}  // namespace systole::testbench
