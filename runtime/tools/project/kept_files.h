#pragma once

#include <string>
#include <vector>

namespace stepop {

/// The files of one kind that stepop keeps, and can make again.
struct KeptFiles {
  std::string what;   ///< `compiled code`
  std::string where;  ///< The folder.
  double bytes = 0;
  std::vector<std::string> paths = {};  ///< Files and whole folders; empty for an installation.
};

/// All kinds with at least one file: in the cache folder, and the headers that `stepop prepare`
/// precompiles in the installation. Unknown files in the cache folder are left out.
std::vector<KeptFiles> kept_files();

/// A line for each kind, with its size and its folder.
std::string kept_files_table(const std::vector<KeptFiles>& kept);

}  // namespace stepop
