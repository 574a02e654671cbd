#pragma once

#include <cstdint>
#include <string>

#include "runtime/train/run/run_directory.h"

namespace stepop {

struct ReportOptions {
  int64_t picture_bytes = 6'000'000;  ///< All pictures together; more are thinned out evenly, and
                                      ///< the worst examples take at most half.
  int64_t text_bytes = 1'000'000;     ///< Texts of log ops and callbacks, thinned the same way.
  size_t worst_examples = 16;
};

/// The report on a run as JSON (keys: report_data.cpp): curves are thinned out, pictures are
/// base64. Unreadable parts of the run are reported in `notes` and left out.
std::string report_data(const RunDirectory& run, const ReportOptions& options = {});

/// A complete page with this data: it needs no other file and no network. All text of the run is
/// data, never markup. A live page asks its server for newer data (see LivePage).
std::string report_page(const std::string& data, const std::string& title, bool is_live = false);

/// Writes a run's page to `path`, completely or not at all. Throws Error when that fails.
void write_report(const RunDirectory& run, const std::string& path,
                  const ReportOptions& options = {});

}  // namespace stepop
