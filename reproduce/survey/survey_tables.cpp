/// The survey's tables and charts, as printed.

#include <cmath>

#include "reproduce/survey/survey_published.h"

namespace systole::testbench {
namespace {

constexpr Printed two(double value) { return {value, 2}; }
SurveyCost cost(double gflops, double gmops) { return {two(gflops), two(gmops), {}}; }
SurveyCost cost(double gflops, double gmops, double intensity) {
  return {two(gflops), two(gmops), two(intensity)};
}
constexpr Printed share(double value) { return {value, 0}; }

}  // namespace

const std::vector<SurveyCosts>& survey_table_3() {
  static const std::vector<SurveyCosts> table = {
      {128,
       // 0.60 / 63.62 is 0.0094.
       {cost(7.25, 0.04, 192.00),
        {two(0.60), {0.006, 3, false}, two(63.62)},
        cost(14.50, 0.07, 211.86),
        cost(0.08, 0.02, 3.14)},
       cost(22.42, 0.14, 159.68),
       {share(32), share(3), share(65), {0.3, 1}},
       {share(27), share(7), share(49), share(18)}},
      {512,
       {cost(28.99, 0.07, 438.86), cost(9.62, 0.09, 101.95), cost(57.98, 0.10, 558.54),
        cost(0.42, 0.16, 2.73)},
       {two(97.02), two(0.42), Printed{231.0, 1}},
       {share(30), share(10), share(60), {0.4, 1}},
       // 0.09 of 0.42, and the four make 98.
       {share(16), {20, 0, false}, share(25), share(37)}},
      {4096,
       {cost(231.93, 0.33, 702.17), cost(616.02, 4.98, 123.63), cost(463.86, 0.43, 1068.52),
        cost(11.85, 5.47, 2.16)},
       cost(1323.66, 11.22, 117.96),
       // 616.02 / 1323.66 is 46.54 %.
       {share(18), {46, 0, false}, share(35), share(1)},
       {share(3), share(44), share(4), share(49)}}};
  return table;
}

const std::vector<SurveyFourHeads>& survey_table_10() {
  static const std::vector<SurveyFourHeads> table = {
      {128, cost(22.42, 0.13, 167.14), two(95.69), two(3.30)},
      {512, cost(96.94, 0.32, 303.59), two(219.04), two(3.07)},
      {4096, cost(1318.83, 4.78, 276.00), two(350.61), two(2.40)}};
  return table;
}

const std::vector<SurveyCosts>& survey_table_11() {
  static const std::vector<SurveyCosts> table = {
      {128,
       {cost(7.25, 3.63), cost(0.30, 0.16, 1.92), cost(14.50, 7.26), cost(0.07, 0.03, 2.58)},
       {two(22.12), two(11.08), Printed{2.0, 1}},
       {},
       {}},
      {512,
       // 4.83 / 2.45 is 1.97.
       {cost(28.99, 14.53),
        {two(4.83), two(2.45), Printed{2.00, 2, false}},
        cost(57.98, 29.04),
        cost(0.35, 0.14, 2.47)},
       cost(92.15, 46.17, 2.00),
       {},
       {}},
      {4096,
       {cost(231.93, 116.27), cost(309.24, 155.98, 1.98), cost(463.86, 232.31),
        cost(7.02, 3.25, 2.16)},
       cost(1012.04, 507.80, 1.99),
       {},
       {}}};
  return table;
}

const SurveyCurves& survey_figure_4() {
  static const SurveyCurves curves = {"survey, fig. 4",
                                      "FLOPs",
                                      "GFLOP",
                                      0,
                                      {{128, {22, 73, 22}},
                                       {256, {46, 149, 45}},
                                       {512, {97, 310, 92}},
                                       {1024, {214, 673, 194}},
                                       {2048, {505, 1554, 428}},
                                       {4096, {1324, 3942, 1012}}}};
  return curves;
}

const SurveyCurves& survey_figure_5() {
  static const SurveyCurves curves = {"survey, fig. 5",
                                      "bytes",
                                      "GB",
                                      1,
                                      {{128, {0.1, 0.4, 11.1}},
                                       {256, {0.2, 0.6, 22.5}},
                                       {512, {0.4, 1.1, 46.2}},
                                       {1024, {1.1, 2.9, 97.3}},
                                       {2048, {3.2, 8.7, 214.3}},
                                       {4096, {11.2, 29.9, 507.8}}}};
  return curves;
}

const SurveyCurves& survey_figure_6() {
  static const SurveyCurves curves = {"survey, fig. 6",
                                      "FLOPs per byte",
                                      "FLOP/B",
                                      0,
                                      {{128, {160, 171, 2}},
                                       {256, {215, 239, 2}},
                                       {512, {231, 266, 2}},
                                       {1024, {202, 235, 2}},
                                       {2048, {156, 179, 2}},
                                       {4096, {117, 131, 2}}}};
  return curves;
}

const SurveyCurves& survey_figure_9() {
  static const SurveyCurves curves = {"survey, fig. 9, Xeon Gold 6242",
                                      "latency on a CPU",
                                      "x",
                                      0,
                                      {{128, {1, 3, 45}},
                                       {256, {2, 6, 93}},
                                       {512, {3, 10, 201}},
                                       {1024, {9, 26, 427}},
                                       {2048, {25, 72, 965}},
                                       {4096, {84, 218, 2344}}}};
  return curves;
}

const SurveyCurves& survey_figure_32() {
  static const SurveyCurves curves = {"survey, fig. 32",
                                      "latency",
                                      "x",
                                      0,
                                      {{128, {1, 3, 18}},
                                       {256, {2, 7, 37}},
                                       {512, {5, 14, 75}},
                                       {1024, {11, 33, 159}},
                                       {2048, {28, 82, 352}},
                                       {4096, {80, 229, 840}}}};
  return curves;
}

const std::vector<SurveyTiled>& survey_table_5() {
  static const std::vector<SurveyTiled> table = {
      {128, {170.670, 25.400, 63.750, 128.000, 130.723, 186.182}, 106.110},
      {512, {341.333, 29.882, 102.300, 204.800, 211.862, 409.600}, 111.122},
      {4096, {409.600, 30.788, 118.710, 227.556, 236.308, 512.000}, 47.067}};
  return table;
}

const std::vector<SurveyConvolution>& survey_table_12() {
  static const std::vector<SurveyConvolution> table = {
      {1, 256, 64, 56, 3, .31, .0031, 100.76},   {3, 64, 64, 56, 3, .69, .0013, 527.55},
      {1, 64, 256, 56, 3, .31, .0031, 100.76},   {1, 512, 128, 28, 3, .31, .0017, 181.14},
      {3, 128, 128, 28, 4, .92, .0014, 664.09},  {1, 128, 512, 28, 4, .41, .0023, 181.14},
      {1, 1024, 256, 14, 5, .51, .0026, 200.30}, {3, 256, 256, 14, 6, 1.39, .0041, 335.00},
      {1, 256, 1024, 14, 6, .62, .0031, 200.30}, {1, 2048, 512, 7, 2, .21, .0023, 87.53},
      {3, 512, 512, 7, 3, .69, .0072, 95.96},    {1, 512, 2048, 7, 3, .31, .0035, 87.53}};
  return table;
}

Published printed(const Printed& number, std::string_view unit, std::string_view source,
                  double relative) {
  std::optional<Tolerance> tolerance;
  if (number.consistent) {
    const double rounding = 0.5 * std::pow(10.0, -number.decimals);
    tolerance =
        Tolerance{Tolerance::Kind::kAbsolute, rounding + relative * std::fabs(number.value)};
  }
  return {"", number.value, std::string(unit), source, tolerance, number.decimals};
}

}  // namespace systole::testbench
