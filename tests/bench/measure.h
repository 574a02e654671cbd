#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace stepop::bench {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The middle of `values`, of which there is at least one.
double median(std::vector<double> values);

/// Does one portion of work and returns the seconds that it took.
using Portion = std::function<double()>;

/// The seconds of every portion by round: `times[portion][round]`. The portions take turns, in
/// every other round backwards, so that what else the machine does falls on all of them; one round
/// before the first is not counted.
std::vector<std::vector<double>> take_turns(int rounds, const std::vector<Portion>& portions);

/// The median over the rounds of baseline / ours: how many times faster ours is.
double speedup(const std::vector<double>& ours, const std::vector<double>& baseline);

/// One row of the table that is printed; the texts are for people.
struct Row {
  std::string what;
  std::string baseline;
  double ratio = 0;
  std::string ours;         ///< Absolute value, `2,340 steps/s`.
  std::string of_baseline;  ///< Likewise.
};

/// Both are also lines of JSON at the end of the file that STEPOP_BENCH_ROWS in the environment
/// names:
/// {"title": ...}, and {"what", "baseline", "ratio", "ours", "of_baseline"}.
void print_header(const std::string& title);
void print_row(const Row& row);

/// `2,340 steps/s` for 0.43 s and 1,000 steps.
std::string per_second(double count, double seconds, const std::string& unit);
/// `4.5 us`, `1.30 ms`, `2.15 s`.
std::string duration_text(double seconds);

/// Memory of this process that is in RAM, in MB.
double resident_megabytes();

}  // namespace stepop::bench
