#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepop {

/// `12,345`.
std::string with_thousands(int64_t number);

/// `1 row`, `12,345 rows`.
std::string counted(int64_t number, std::string_view noun);

/// A number with about four digits that matter: `0.3124`, `12.35`, `1.2e-05`, `8940`.
std::string short_number(double number);

/// A number of bytes, in powers of 1000: `5 B`, `266.4 kB`, `3.4 MB`, `1.2 GB`.
std::string size_text(double bytes);

/// A span of time in seconds: `0:21`, `1:02:03`.
std::string clock_text(double seconds);

/// A span of time in seconds, roughly: `90 s`, `12 min`, `3 h`, `5 days`.
std::string span_text(double seconds);

/// How long ago the file was written: `90 s ago`; empty when unknown.
std::string age_text(const std::string& path);

/// The local time now, or some seconds later, in a format of strftime.
std::string local_time(const char* format, int64_t seconds_later = 0);

}  // namespace stepop
