// Files that look like evaluation outputs and are not quite.

#include <doctest/doctest.h>

#include "eval_out/read/eval_reader.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace damaged_outputs_test {

/// Four rows; the argument after the path is run before the file is closed.
const std::string kWrite = R"(
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1], "w")
f["outputs/x"] = np.arange(4.0)
f["outputs/text"] = ["a", "b", "c", "d"]
f["outputs/boxes/values"] = np.arange(10).reshape(5, 2)
f["outputs/boxes/offsets"] = [0, 2, 2, 4, 5]
f["outputs/boxes"].attrs["ragged"] = True
f["index"] = [3, 4, 7, 9]
f.attrs.update(format_version=1, rows=4, complete=True, split="validation")
def put(name, value):
    del f[name]
    f[name] = value
exec(sys.argv[2])
f.close()
)";

/// What reading all of a file says that was changed so; its path is FILE.
std::string message(const std::string& change) {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  run_python(kWrite, {path, change});
  std::string text = message_of([&] {
    const EvalFile file(path);
    file.index();
    file.read("outputs/x");
    file.read_texts("outputs/text", 0, 4);
    file.read_ragged("outputs/boxes", 0, 4);
  });
  if (const size_t at = text.find(path); at != std::string::npos) {
    text.replace(at, path.size(), "FILE");
  }
  return text;
}

TEST_CASE("a file without damage is read") { CHECK(message("") == "no error"); }

TEST_CASE("arrays of other shapes than the format's are refused with what was found") {
  CHECK(message("put('outputs/text', np.array([['a', 'b']] * 4, dtype=object))") ==
        "FILE: outputs/text is text of shape [4, 2]; text is [N]");
  CHECK(message("put('outputs/x', 3.0)") == "FILE: outputs/x is a single value");
  CHECK(message("put('outputs/boxes/values', 3)") ==
        "FILE: outputs/boxes/values is a single value");
  CHECK(message("put('outputs/boxes/offsets', [[0], [2], [2], [4], [5]])") ==
        "FILE: outputs/boxes/offsets must be whole numbers [N + 1], found int64 [5, 1]");
  CHECK(message("put('outputs/boxes/offsets', 5)") ==
        "FILE: outputs/boxes/offsets must be whole numbers [N + 1], found int64 []");
  CHECK(message("put('outputs/boxes/values', ['a', 'b'])") ==
        "FILE: outputs/boxes/values is text; ragged arrays are of numbers");
}

TEST_CASE("an index that is missing, or none, is reported when the file is opened") {
  CHECK(message("del f['index']") == "FILE: not a file of evaluation outputs: it has no \"index\"");
  CHECK(message("put('index', 7)") == "FILE: index must be whole numbers [N], found int64 []");
  CHECK(message("put('index', [[3], [4], [7], [9]])") ==
        "FILE: index must be whole numbers [N], found int64 [4, 1]");
  CHECK(message("put('index', [3.0, 4.0, 7.0, 9.0])") ==
        "FILE: index must be whole numbers [N], found float64 [4]");
  CHECK(message("put('index', ['a', 'b', 'c', 'd'])") ==
        "FILE: index must be whole numbers [N], found text [4]");
}

TEST_CASE("an array with fewer rows than the file says is named") {
  const std::string told = " rows, the file says that 4 were written";
  CHECK(message("put('index', [3, 4])") == "FILE: index has 2" + told);
  CHECK(message("put('outputs/x', [1.0])") == "FILE: outputs/x has 1" + told);
  CHECK(message("put('outputs/text', ['a', 'b', 'c'])") == "FILE: outputs/text has 3" + told);
  CHECK(message("put('outputs/boxes/offsets', [0, 2, 2])") ==
        "FILE: outputs/boxes/offsets has 2" + told);
  CHECK(message("f.attrs['rows'] = -1") ==
        "FILE: not a file of evaluation outputs: its attribute \"rows\" is -1");
}

TEST_CASE("offsets that are none are damage") {
  const std::string damage =
      "FILE: outputs/boxes: the file is damaged: its offsets decrease, or "
      "point outside of values";
  CHECK(message("f['outputs/boxes/offsets'][2] = 1") == damage);
  CHECK(message("f['outputs/boxes/offsets'][4] = 6") == damage);
  CHECK(message("f['outputs/boxes/offsets'][0] = -1") == damage);
  CHECK(message("f['outputs/boxes/offsets'][4] = 2**62") == damage);
}

TEST_CASE("an attribute that cannot be read is named, and so is its file") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  run_python(kWrite, {path, ""});
  std::string bytes = read_bytes(path);
  for (size_t at = 0; (at = bytes.find("GCOL", at)) != std::string::npos; ++at) bytes[at] = 'X';
  write_bytes(path, bytes);  // the heap of the texts
  CHECK(message_of([&] {
          EvalFile file(path);
        }).starts_with(path + ": cannot read the attribute split: "));
}

}  // namespace damaged_outputs_test
}  // namespace stepop
