// Files from elsewhere that are made to harm their reader; hostile_files.py writes them.

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "eval_out/hdf5/hdf5_file.h"
#include "eval_out/hdf5/hdf5_rows.h"
#include "eval_out/read/eval_reader.h"
#include "eval_out/read/eval_statistics.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace hostile_files_test {

/// A file of that kind.
class Hostile {
 public:
  explicit Hostile(const std::string& kind) : path_(folder_.path("outputs.h5")) {
    run_python(
        "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], None, "
        "'__main__')",
        {STEPOP_SOURCE_DIR "/tests/eval_out/hostile_files.py", kind, path_});
  }

  const std::string& path() const { return path_; }

  /// What opening it as outputs of an evaluation says, without the file's path.
  std::string message() const {
    std::string text = message_of([&] { EvalFile file(path_); });
    if (text.starts_with(path_ + ": ")) text.erase(0, path_.size() + 2);
    return text;
  }

  /// The names of its arrays as any HDF5 file, or the message.
  std::string names() const {
    std::string names;
    const std::string message = message_of([&] {
      const Hdf5Lock lock;
      for (const auto& array : list_hdf5(open_hdf5(path_))) names += array.name + " ";
    });
    return message == "no error" ? names : message;
  }

 private:
  ScratchFolder folder_;
  std::string path_;
};

TEST_CASE("a group with two names, which may hold itself, is refused where it appears again") {
  const std::string again =
      " is a group that is there under another name already; in a file of outputs each has one";
  CHECK(Hostile("cycle").message() == "outputs/self" + again);
  const std::string doubled = Hostile("doubling").message();
  CHECK(doubled.starts_with("outputs/top/a/"));
  CHECK(doubled.ends_with(again));
}

TEST_CASE("any HDF5 file with such groups is listed, each array once") {
  CHECK(Hostile("cycle").names() == "index outputs/x ");
  CHECK(Hostile("doubling").names() == "index outputs/x ");
}

TEST_CASE("groups that lie too deep in one another are reported with what helps") {
  const Hostile deep("deep");
  for (const std::string& message : {deep.message(), deep.names()}) {
    CHECK(message.find("/g/g/g/") != std::string::npos);
    CHECK(message.find("groups lie more than 64 deep in one another") != std::string::npos);
    CHECK(message.ends_with("copy the arrays out of it, with h5copy or h5py"));
  }
}

TEST_CASE("a link to another file is not followed, wherever it is") {
  const std::string refused =
      " is a link to another file, which stepop does not follow; copy what it leads to into its "
      "place, with h5copy or h5py";
  CHECK(Hostile("external_link").message() == "outputs/link" + refused);
  CHECK(Hostile("external_index").message() == "index" + refused);
  CHECK(Hostile("soft_link").message().starts_with("outputs/link is a link to another name, "));
  CHECK(Hostile("external_link").names() == "index outputs/x ");
}

TEST_CASE("even when nobody looks at the link, HDF5 opens no other file") {
  const Hostile hostile("external_link");
  const Hdf5Lock lock;
  const Hdf5Id file = open_hdf5(hostile.path());
  CHECK(H5Oopen(file, "outputs/link", H5P_DEFAULT) < 0);  // else it waits for the FIFO's writer
}

TEST_CASE("arrays whose numbers lie in other files are refused") {
  CHECK(Hostile("external_storage").message() ==
        "outputs/raw has its numbers in another file: stepop reads no file that another one names; "
        "copy the array into the file itself, with h5repack or h5py");
  CHECK(Hostile("virtual").message().starts_with(
      "outputs/virtual is a virtual dataset, put together from other files: "));
  CHECK(Hostile("external_storage").names().starts_with("outputs/raw has its numbers in another"));
}

TEST_CASE("what arrays claim to hold is compared with what the file stores before it is read") {
  for (const char* kind : {"bomb", "big_chunk", "claim31", "claim60"}) {
    CAPTURE(kind);
    const Hostile hostile(kind);
    const std::string message = hostile.message();
    CHECK(message.find(" claims to hold ") != std::string::npos);
    CHECK(message.find("it is damaged, or made to fill the memory") != std::string::npos);
    const size_t remedy = message.find("STEPOP_UNPACK_LIMIT=");
    REQUIRE(remedy != std::string::npos);
    // The same for a dataset of any HDF5 file.
    const Hdf5Lock lock;
    const Hdf5Id file = open_hdf5(hostile.path());
    const std::string name = kind[0] == 'b' ? "outputs/bomb" : "outputs/x";
    const Hdf5Id array = open_linked(file, name, name);
    CHECK(message_of([&] {
            Hdf5Rows rows(file, "FILE", describe_hdf5(array, name));
          }).starts_with("FILE: " + name + " claims to hold "));
  }
}

TEST_CASE("the limit of what arrays claim can be raised as its message says") {
  const Hostile hostile("bomb");
  const std::string message = hostile.message();
  const size_t remedy = message.find("STEPOP_UNPACK_LIMIT=") + 20;
  const std::string limit = message.substr(remedy, message.find(' ', remedy) - remedy);
  ::setenv("STEPOP_UNPACK_LIMIT", limit.c_str(), 1);
  CHECK(hostile.message() == "no error");
  ::setenv("STEPOP_UNPACK_LIMIT", "lots", 1);
  CHECK(hostile.message() ==
        "STEPOP_UNPACK_LIMIT: expected a number of bytes such as 20e9, found \"lots\"");
  ::unsetenv("STEPOP_UNPACK_LIMIT");
  // What this process wrote itself may be as empty as it likes.
  CHECK(message_of([&] { EvalFile file(hostile.path(), {}, EvalOrigin::kOwn); }) == "no error");
}

TEST_CASE("references to one long text end where the texts are longer than the file") {
  const Hostile hostile("long_texts");
  const EvalFile file(hostile.path());
  const std::string damaged =
      hostile.path() + ": outputs/text: the file is damaged: its texts are longer than the file";
  CHECK(file.read_texts("outputs/text", 5, 1).at(0).size() == 1'000'000);
  CHECK(message_of([&] { file.read_texts("outputs/text", 0, 100'000); }) == damaged);
  CHECK(message_of([&] { statistics_of(file, "outputs/text"); }) == damaged);
}

}  // namespace hostile_files_test
}  // namespace stepop
