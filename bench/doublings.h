#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace systole::bench {

/// Pairs of machines that differ in one resource by a factor of two.
class Doublings {
 public:
  /// A doubling that costs more than this is a failure of monotony.
  static constexpr double kTolerance = 0.01;

  /// `cost` and `expected`: cycles with the doubled resource over those without, less 1, simulated
  /// and as the mapper has them.
  void add(const std::string& resource, const std::string& place, double cost, double expected) {
    Resource& of = resources_[resource];
    ++of.pairs;
    if (cost > of.worst) {
      of.worst = cost;
      of.place = place;
    }
    if (cost <= kTolerance) return;
    ++of.slower;
    slower_.push_back({resource, place, cost, expected});
  }

  /// By resource: pairs, those in which the doubled one takes over 1 % longer, and the worst; and
  /// all of those, the worst first.
  [[nodiscard]] nlohmann::ordered_json figures() const {
    using nlohmann::ordered_json;
    ordered_json rows = ordered_json::array(), list = ordered_json::array();
    for (const auto& [name, of] : resources_) {
      rows.push_back({{"doubled", name},
                      {"pairs", of.pairs},
                      {"slower", of.slower},
                      {"worst", of.worst},
                      {"worst_place", of.place}});
    }
    std::vector<Slower> sorted = slower_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Slower& a, const Slower& b) { return a.cost > b.cost; });
    for (const Slower& one : sorted) {
      list.push_back({{"doubled", one.resource},
                      {"cost", one.cost},
                      {"expected_cost", one.expected},
                      {"place", one.place}});
    }
    return {{"resources", rows}, {"slower", list}};
  }

  /// Of figures(), if there are pairs; `all`: also every pair that is slower.
  static void print(const nlohmann::ordered_json& figures, bool all) {
    const auto text = [](const nlohmann::ordered_json& row, const char* key) {
      return row.at(key).get<std::string>();
    };
    if (figures.at("resources").empty()) return;
    std::size_t pairs = 0, slower = 0;
    double worst = 0;
    std::printf("%-24s %6s %14s %8s  %s\n", "doubled", "pairs", "over 1% slower", "worst %",
                "where");
    for (const auto& row : figures.at("resources")) {
      pairs += row.at("pairs").get<std::size_t>();
      slower += row.at("slower").get<std::size_t>();
      worst = std::max(worst, row.at("worst").get<double>());
      std::printf("%-24s %6zu %14zu %8.1f  %s\n", text(row, "doubled").c_str(),
                  row.at("pairs").get<std::size_t>(), row.at("slower").get<std::size_t>(),
                  100 * row.at("worst").get<double>(), text(row, "worst_place").c_str());
    }
    std::printf("%-24s %6zu %14zu %8.1f\n", "all", pairs, slower, 100 * worst);
    if (!all || figures.at("slower").empty()) return;
    std::printf("\n%8s %10s  %-24s %s\n", "slower %", "expected %", "doubled", "where");
    for (const auto& row : figures.at("slower")) {
      std::printf("%8.1f %10.1f  %-24s %s\n", 100 * row.at("cost").get<double>(),
                  100 * row.at("expected_cost").get<double>(), text(row, "doubled").c_str(),
                  text(row, "place").c_str());
    }
  }

 private:
  struct Resource {
    std::size_t pairs = 0, slower = 0;
    double worst = 0;
    std::string place;
  };
  struct Slower {
    std::string resource, place;
    double cost, expected;
  };
  std::map<std::string, Resource> resources_;
  std::vector<Slower> slower_;
};

}  // namespace systole::bench
