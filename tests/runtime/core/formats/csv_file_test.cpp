#include "runtime/core/formats/csv_file.h"

#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace csv_file_test {

using Cells = std::vector<std::string>;

/// The error for a file with this content, without the folder that it is in.
std::string message_for(const std::string& content) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.csv", content);
  const std::string message = message_of([&] { read_csv(path); });
  return message.starts_with(path) ? message.substr(folder.path().size() + 1) : message;
}

TEST_CASE("cells come column by column with the line of each row") {
  const ScratchFolder folder;
  const CsvTable table = read_csv(folder.write("a.csv", "a,b\n1,x\n\n2, y \n3,"));
  CHECK(table.header == Cells{"a", "b"});
  CHECK(table.columns == std::vector<Cells>{{"1", "2", "3"}, {"x", " y ", ""}});
  CHECK(table.lines == std::vector<int64_t>{2, 4, 5});
  CHECK(table.where(1, 2) == folder.path("a.csv") + ":5: column \"b\"");
}

TEST_CASE("quotes, CRLF and a byte order mark are read as RFC 4180 and spreadsheets write them") {
  const ScratchFolder folder;
  const CsvTable table = read_csv(folder.write(
      "a.csv", "\xef\xbb\xbf\"a\",b\r\n\"1,\"\"2\"\"\",\"two\r\nlines\"\r\n\"\",x\r\n"));
  CHECK(table.header == Cells{"a", "b"});
  CHECK(table.columns == std::vector<Cells>{{"1,\"2\"", ""}, {"two\r\nlines", "x"}});
  CHECK(table.lines == std::vector<int64_t>{2, 4});
}

TEST_CASE("another separator leaves commas alone") {
  const ScratchFolder folder;
  const CsvTable table = read_csv(folder.write("a.tsv", "a\tb\n1,5\t2\n"), '\t');
  CHECK(table.columns == std::vector<Cells>{{"1,5"}, {"2"}});
}

TEST_CASE("a malformed table is reported with its line") {
  CHECK(message_for("a,b\n1,2\n1,2,3\n") == "a.csv:3: 3 cells, the header has 2 columns");
  CHECK(message_for("a,b\n1\n") == "a.csv:2: 1 cell, the header has 2 columns");
  CHECK(message_for("a\n1\n\"2\n3\n") == "a.csv:3: a quoted cell begins and never ends");
  CHECK(message_for("a\n\"2\n3\"x\n") ==
        "a.csv:3: \"x\" follows the quote that ends a cell; a quote inside a cell is written "
        "\"\"");
  CHECK(message_for("a,b\n1, \"2,3\"\n") ==
        "a.csv:2: a quote inside a cell that is not quoted; write the whole cell in quotes, and "
        "\"\" for a quote in it");
  CHECK(message_for("a,b,a\n") == "a.csv:1: two columns are named \"a\"");
  CHECK(message_for("\n\n") ==
        "a.csv: expected a line with the names of the columns, the file is empty");
}

TEST_CASE("a cell is quoted where it must be, and read as it was") {
  CHECK(csv_cell("plain text") == "plain text");
  CHECK(csv_cell("a,b") == "\"a,b\"");
  const ScratchFolder folder;
  for (const std::string text : {"a,b", "say \"hi\"", "two\nlines", "\r", " spaces "}) {
    const CsvTable table = read_csv(folder.write("a.csv", csv_cell(text) + "\nx\n"));
    CHECK((table.header == std::vector<std::string>{text}));
  }
}

}  // namespace csv_file_test
}  // namespace stepop
