// What happens to a .part that somebody has open.

#include <ATen/ops/ones.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace eval_writer_lock_test {

/// The lock that HDF5 holds on a file that is open: shared for reading, else exclusive.
class OpenElsewhere {
 public:
  OpenElsewhere(const std::string& path, int operation) : file_(::open(path.c_str(), O_RDONLY)) {
    REQUIRE(file_ >= 0);
    REQUIRE(::flock(file_, operation | LOCK_NB) == 0);
  }
  ~OpenElsewhere() { ::close(file_); }
  OpenElsewhere(const OpenElsewhere&) = delete;
  OpenElsewhere& operator=(const OpenElsewhere&) = delete;

  /// All that is in the file that was opened, whatever its name is now.
  std::string bytes() const { return read_bytes("/proc/self/fd/" + std::to_string(file_)); }

 private:
  int file_;
};

const OrderedMap<Attribute> kAbout = {{"git", std::string("a")}};

/// The .part of an evaluation that ended after two of four rows.
std::string leave_two_rows(const std::string& path) {
  EvalWriter writer(path, 4, kAbout);
  writer.write({.labels = {{"loss", at::ones({2})}}}, std::vector<int64_t>{0, 1});
  return path + ".part";
}

TEST_CASE("rows that a reader has open are neither resumed nor harmed") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  const std::string part = leave_two_rows(path);
  const std::string before = read_bytes(part);
  {
    const OpenElsewhere reader(part, LOCK_SH);
    CHECK(message_of([&] { EvalWriter(path, 4, kAbout, {.resume = true}); }) ==
          "cannot resume " + part +
              ": another process has it open; close it there, then start again");
  }
  CHECK(read_bytes(part) == before);
  CHECK(EvalWriter(path, 4, kAbout, {.resume = true}).rows() == 2);
}

TEST_CASE("a new file takes the place of one that a reader has open, which keeps its bytes") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  const std::string part = leave_two_rows(path);
  const std::string before = read_bytes(part);
  const OpenElsewhere reader(part, LOCK_SH);
  EvalWriter writer(path, 1, {{"git", std::string("b")}}, {.resume = true});
  writer.write({.labels = {{"loss", at::ones({1})}}}, std::vector<int64_t>{0});
  writer.finish();
  CHECK(reader.bytes() == before);
  CHECK(EvalFile(path).rows() == 1);
}

TEST_CASE("a file that another process is writing is not taken from it") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  const std::string part = leave_two_rows(path);
  const OpenElsewhere writer(part, LOCK_EX);
  CHECK(message_of([&] { EvalWriter(path, 4); }) ==
        "cannot create " + part + ": another process is writing it");
  CHECK(EvalFile(part).rows() == 2);
}

TEST_CASE("a .part is read while another process writes it; another file is not") {
  const ScratchFolder folder;
  const std::string part = leave_two_rows(folder.path("outputs.h5"));
  {
    const OpenElsewhere writer(part, LOCK_EX);
    CHECK(EvalFile(part).rows() == 2);
  }
  const std::string whole = folder.write("other.h5", read_bytes(part));
  const OpenElsewhere writer(whole, LOCK_EX);
  CHECK(message_of([&] { EvalFile file(whole); }) ==
        "cannot read " + whole + ": another process is writing it");
}

TEST_CASE("a .part that cannot be opened is not replaced") {
  const ScratchFolder folder;
  // A link to itself: the system opens it for nobody.
  const std::string looped = folder.path("looped.h5");
  REQUIRE(::symlink("looped.h5.part", (looped + ".part").c_str()) == 0);
  CHECK(message_of([&] { EvalWriter(looped, 4, kAbout, {.resume = true}); }) ==
        "cannot resume " + looped + ".part: Too many levels of symbolic links");
}

}  // namespace eval_writer_lock_test
}  // namespace stepop
