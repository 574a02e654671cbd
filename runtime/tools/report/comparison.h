#pragma once

#include <string>
#include <vector>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// A page about several runs as JSON: their states, curves that share charts, the pictures that
/// they logged (6 MB), the keys in which their configs differ, and what changed in their code since
/// the first. What cannot be read of a run becomes a note. All curves together have about 100,000
/// points.
std::string comparison_data(const std::vector<RunDirectory>& runs);

/// A complete page with this data, as `report_page` makes it about one run.
std::string comparison_page(const std::string& data, const std::string& title,
                            bool is_live = false);

/// Writes the page to `path`, completely or not at all. Throws Error when that fails.
void write_comparison(const std::vector<RunDirectory>& runs, const std::string& path);

}  // namespace stepop
