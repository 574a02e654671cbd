#include "runtime/tools/code/cache_entry.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>

#include "tests/scratch_folder.h"

namespace stepop {
namespace cache_entry_test {

TEST_CASE("what is compiled and long unused is removed, also what a save made uncertain") {
  const ScratchFolder folder;
  const auto make = [&](const std::string& name, int days) {
    folder.write(name, "");
    std::filesystem::last_write_time(folder / name, std::filesystem::file_time_type::clock::now() -
                                                        std::chrono::hours(24 * days));
  };
  make("used.so.json", 1);
  make("used-1.so", 100);  // the JSON says when it was last used
  make("old.so.json", 61);
  make("old-1.so", 61);
  make("uncertain-2.so", 61);
  make("uncertain-3.so", 59);
  make("object-4.o", 3);
  make("object-5.o", 1);
  make("notes.txt", 100);
  remove_unused_entries(folder.path());
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    left.insert(entry.path().filename().string());
  }
  CHECK(left == std::set<std::string>{"notes.txt", "object-5.o", "uncertain-3.so", "used-1.so",
                                      "used.so.json"});
}

}  // namespace cache_entry_test
}  // namespace stepop
