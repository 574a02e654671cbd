#include "runtime/core/base/number_text.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>

namespace stepop {

std::string with_thousands(int64_t number) {
  std::string digits = fmt::format("{}", number < 0 ? -number : number);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<size_t>(i), 1, ',');
  }
  return (number < 0 ? "-" : "") + digits;
}

std::string counted(int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", with_thousands(number), noun, number == 1 ? "" : "s");
}

std::string short_number(double number) {
  if (std::isnan(number)) return "nan";  // the sign of NaN has no meaning
  if (number == std::floor(number) && std::abs(number) < 1e6) return fmt::format("{:.0f}", number);
  return fmt::format("{:.4g}", number);
}

std::string size_text(double bytes) {
  constexpr std::array<const char*, 4> kUnits = {"B", "kB", "MB", "GB"};
  size_t unit = 0;
  for (; bytes >= 999.95 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string clock_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "-:--";
  const auto total = std::llround(seconds);
  if (total < 3600) return fmt::format("{}:{:02}", total / 60, total % 60);
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

std::string span_text(double seconds) {
  const int64_t whole = seconds > 0 && seconds < 1e12 ? std::llround(seconds) : 0;
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min", whole / 60);
  if (whole < 48 * 3600) return fmt::format("{} h", whole / 3600);
  return fmt::format("{} days", whole / 86400);
}

std::string age_text(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const auto written = fs::last_write_time(path, failed);
  if (failed) return "";
  const std::chrono::duration<double> passed = fs::file_time_type::clock::now() - written;
  return span_text(passed.count()) + " ago";
}

std::string local_time(const char* format, int64_t seconds_later) {
  const std::time_t now = std::time(nullptr) + static_cast<std::time_t>(seconds_later);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

}  // namespace stepop
