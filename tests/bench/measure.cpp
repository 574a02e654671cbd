#include "tests/bench/measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runtime/core/base/number_text.h"

namespace stepop::bench {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<std::vector<double>> take_turns(int rounds, const std::vector<Portion>& portions) {
  std::vector<std::vector<double>> times(portions.size());
  for (int round = -1; round < rounds; ++round) {
    for (size_t i = 0; i < portions.size(); ++i) {
      const size_t portion = round % 2 == 0 ? i : portions.size() - 1 - i;
      const double seconds = portions[portion]();
      if (round >= 0) times[portion].push_back(seconds);
    }
  }
  return times;
}

double speedup(const std::vector<double>& ours, const std::vector<double>& baseline) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(baseline[i] / ours[i]);
  return median(ratios);
}

namespace {

void write_line(const nlohmann::ordered_json& line) {
  const char* path = std::getenv("STEPOP_BENCH_ROWS");
  if (path == nullptr) return;
  std::ofstream file(path, std::ios::app);
  file << line.dump() << std::endl;
  if (!file) throw std::runtime_error(fmt::format("STEPOP_BENCH_ROWS: cannot write \"{}\"", path));
}

}  // namespace

void print_header(const std::string& title) {
  write_line({{"title", title}});
  fmt::print("\n{}\n  {:<34} {:<44} {:>6}  {:>17} {:>17}\n", title, "", "baseline", "ratio",
             "stepop", "baseline");
}

void print_row(const Row& row) {
  write_line({{"what", row.what},
              {"baseline", row.baseline},
              {"ratio", row.ratio},
              {"ours", row.ours},
              {"of_baseline", row.of_baseline}});
  fmt::print("  {:<34} {:<44} {:>6.3f}  {:>17} {:>17}\n", row.what, row.baseline, row.ratio,
             row.ours, row.of_baseline);
  std::fflush(stdout);
}

std::string per_second(double count, double seconds, const std::string& unit) {
  return fmt::format("{} {}/s", with_thousands(std::llround(count / seconds)), unit);
}

std::string duration_text(double seconds) {
  const double size = std::abs(seconds);
  if (size < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (size < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

}  // namespace stepop::bench
