#include "runtime/formats/csv_cell.h"

#include <doctest/doctest.h>

#include "runtime/formats/csv_file.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace csv_cell_test {

TEST_CASE("a cell is quoted where it must be, and read as it was") {
  CHECK(csv_cell("plain text") == "plain text");
  CHECK(csv_cell("a,b") == "\"a,b\"");
  const ScratchFolder folder;
  for (const std::string text : {"a,b", "say \"hi\"", "two\nlines", "\r", " spaces "}) {
    const CsvTable table = read_csv(folder.write("a.csv", csv_cell(text) + "\nx\n"));
    CHECK((table.header == std::vector<std::string>{text}));
  }
}

}  // namespace csv_cell_test
}  // namespace stepop
