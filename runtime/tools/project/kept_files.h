#pragma once

#include <string>
#include <vector>

namespace stepop {

/// What stepop keeps of one kind, and can make again.
struct KeptFiles {
  std::string what;   ///< `compiled code`
  std::string where;  ///< The folder.
  double bytes = 0;
  std::vector<std::string> paths = {};  ///< Files, and folders whole; none of an installation.
};

/// All kinds of which there is something: in the cache folder, and the headers that
/// `stepop prepare` precompiles in the installation. A file of the cache folder that stepop does
/// not know is in none.
std::vector<KeptFiles> kept_files();

/// A line for each kind, with its size and its folder.
std::string kept_files_table(const std::vector<KeptFiles>& kept);

}  // namespace stepop
