#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// A new folder in $TMPDIR or /tmp, which is removed with its contents by the destructor.
class TemporaryFolder {
 public:
  /// `name` is the beginning of the folder's name. Throws Error when it cannot be made.
  explicit TemporaryFolder(std::string_view name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// Removes the folder early; what cannot be removed stays.
  void remove();

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace stepop
