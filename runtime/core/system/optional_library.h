#pragma once

#include <string>
#include <type_traits>

namespace stepop {

/// A shared library that is loaded when it is needed, so that no installation needs it.
class OptionalLibrary {
 public:
  /// `file` such as libwebp.so.7. Throws Error with `need`, what needs the library and how it is
  /// installed, when it cannot be loaded.
  OptionalLibrary(const std::string& file, const std::string& need);

  /// Sets a pointer to the function `name`; throws Error when the library has none.
  template <class Function>
  void find(Function*& function, const char* name) const {
    static_assert(std::is_function_v<Function>);
    function = reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name) const;

  std::string file_;
  void* library_;  ///< Never unloaded.
};

}  // namespace stepop
