#pragma once

#include <string>
#include <utility>

namespace stepop {

/// The file that an evaluation writes until it has its name. Removes it in the end when it is
/// worthless: when its writing failed, or did not begin, before it held a row.
struct EvalPartFile {
  explicit EvalPartFile(std::string part) : path(std::move(part)) {}
  ~EvalPartFile();
  EvalPartFile(const EvalPartFile&) = delete;
  EvalPartFile& operator=(const EvalPartFile&) = delete;

  /// Whether there is such a file. Throws Error when there is one that the system does not open.
  static bool can_open(const std::string& part);

  /// Removes one that is there; who reads it keeps it as it is. Throws Error, also when another
  /// process is writing it.
  void make_way() const;

  std::string path;
  bool is_worthless = false;
};

}  // namespace stepop
