#pragma once

#include <cstdint>
#include <string>

#include "runtime/train/run/run_directory.h"

namespace stepop {

struct ReportOptions {
  int64_t picture_bytes = 6'000'000;  ///< All pictures together; more are thinned out evenly,
                                      ///< those of the worst examples take half at most.
  int64_t text_bytes = 1'000'000;     ///< Texts of log ops and callbacks, likewise.
  size_t worst_examples = 16;
};

/// What a report says about a run, as JSON (its keys: report_data.cpp): curves thinned,
/// pictures as base64. Whatever of the run cannot be read is reported in `notes` and left out.
std::string report_data(const RunDirectory& run, const ReportOptions& options = {});

/// A page with that in it, whole: it needs no other file and no network. All text of the run is
/// data to it, never markup.
std::string report_page(const std::string& data, const std::string& title);

/// Writes the page about a run to `path`, whole or not at all. Throws Error when that fails.
void write_report(const RunDirectory& run, const std::string& path,
                  const ReportOptions& options = {});

}  // namespace stepop
