#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <systemc>
#include <tlm>

#include "tlm/common/time.h"

namespace systole::test {

inline sc_core::sc_time ns(std::uint64_t count) { return tlm_model::from_ps(count * 1000); }

/// Base of every fixture that builds modules.
///
/// Every report of severity warning or worse fails the test unless it was announced. The destructor
/// hands the next test of the process a fresh kernel; it runs after the members of the derived
/// fixture are gone, because resetting a kernel with live modules crashes.
class SystemCTest : public ::testing::Test {
 protected:
  SystemCTest() {
    expected_.clear();
    sc_core::sc_report_handler::set_handler(&SystemCTest::on_report);
  }

  ~SystemCTest() override {
    sc_core::sc_get_curr_simcontext()->reset();
    // Neither the quantum nor the reports belong to the context.
    tlm::tlm_global_quantum::instance().set(sc_core::SC_ZERO_TIME);
    sc_core::sc_report_handler::initialize();
    sc_core::sc_report_handler::set_handler(nullptr);
  }

  /// Reports of this type do not fail the test.
  static void expect_report(const std::string& msg_type) { expected_.insert(msg_type); }

 private:
  static void on_report(const sc_core::sc_report& report, const sc_core::sc_actions& actions) {
    const bool unexpected = expected_.count(report.get_msg_type()) == 0;
    if (report.get_severity() >= sc_core::SC_WARNING && unexpected) {
      ADD_FAILURE_AT(report.get_file_name(), report.get_line_number()) << report.what();
    }
    if (report.get_severity() >= sc_core::SC_ERROR) {
      sc_core::sc_report_handler::default_handler(report, actions);
    }
  }

  inline static std::set<std::string> expected_;
};

}  // namespace systole::test
