#include "runtime/tools/code/build_settings.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace stepop {
namespace build_settings_test {

TEST_CASE("an installation in /usr does not name the compiler's own folder") {
  using Flags = std::vector<std::string>;
  CHECK(without_usual_folder({"-std=c++20", "-isystem", "/usr/lib/../include", "-isystem",
                              "/usr/lib/../include/stepop", "-DX"}) ==
        Flags{"-std=c++20", "-isystem", "/usr/lib/../include/stepop", "-DX"});
  CHECK(without_usual_folder({"-isystem", "/usr/include/"}).empty());
  CHECK(without_usual_folder({"-isystem"}) == Flags{"-isystem"});
}

}  // namespace build_settings_test
}  // namespace stepop
