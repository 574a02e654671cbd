// Files that look like evaluation outputs and are not quite.

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

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

/// `number` of 8 bytes, of little endian.
std::string bytes_of(uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

/// A file with its first text's reference, to a place and an index in it, changed by `change`.
template <class Change>
std::string message_of_reference(const std::string& text, const Change& change) {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  run_python(kWrite,
             {path, "f['outputs/text'][0] = '" + text + "'\nf.attrs['git'] = '" + text + "'"});
  std::string bytes = read_bytes(path);
  size_t found = 0;
  for (size_t heap = 0; (heap = bytes.find("GCOL", heap)) != std::string::npos; ++heap) {
    const std::string length = bytes_of(text.size()).substr(0, 4);
    for (size_t at = 0; (at = bytes.find(length + bytes_of(heap), at)) != std::string::npos; ++at) {
      change(bytes, at);
      ++found;
    }
  }
  REQUIRE(found > 0);
  write_bytes(path, bytes);
  std::string message = message_of([&] {
    const EvalFile file(path);
    file.read_texts("outputs/text", 0, 4);
  });
  if (message.starts_with(path)) message.replace(0, path.size(), "FILE");
  return message;
}

TEST_CASE("a reference to a text that is not there is found before the library follows it") {
  const std::string text(1234, 't');
  CHECK(message_of_reference(text, [](std::string&, size_t) {}) == "no error");
  const std::string begin = "FILE: cannot read the attribute git: the file is damaged: ";
  CHECK(message_of_reference(text, [](std::string& bytes, size_t at) {
          bytes.replace(at + 12, 4, std::string("\xff\xff\0\0", 4));  // the index
        }).starts_with(begin + "the heap of texts at byte "));
  CHECK(message_of_reference(text, [](std::string& bytes, size_t at) {
          bytes.replace(at, 4, std::string("\1\0\0\0", 4));  // shorter than it is: would overflow
        }).starts_with(begin + "the heap of texts at byte "));
  CHECK(message_of_reference(text, [](std::string& bytes, size_t at) {
          bytes.replace(at + 4, 8, bytes_of(~uint64_t{0} - 7));
        }).starts_with(begin + "no heap of texts is at byte "));
}

TEST_CASE("so is one of an array, row by row, chunked and compressed as well") {
  for (const char* options : {"", "chunks=(2,)", "chunks=(3,), compression='gzip', shuffle=True"}) {
    CAPTURE(options);
    const ScratchFolder folder;
    const std::string path = folder.path("outputs.h5");
    const std::string replace =
        "del f['outputs/text']\n"
        "f.create_dataset('outputs/text', data=['a', 'bb', '', 'd' * 9000], "
        "dtype=h5py.string_dtype(), " +
        std::string(options) + ")\n";
    run_python(kWrite, {path, replace});
    const std::vector<std::string> expected = {"a", "bb", "", std::string(9000, 'd')};
    {
      const EvalFile file(path);
      CHECK(file.read_texts("outputs/text", 0, 4) == expected);
      CHECK(file.read_lengths("outputs/text", 1, 3) == std::vector<int64_t>{2, 0, 9000});
    }
    std::string bytes = read_bytes(path);
    const size_t long_text = bytes.find(std::string(9000, 'd'));
    REQUIRE(long_text != std::string::npos);
    bytes[long_text - 8] = 1;  // of the length of the object
    write_bytes(path, bytes);
    const std::string message = message_of([&] {
      const EvalFile file(path);
      file.read_texts("outputs/text", 0, 4);
    });
    CHECK(message.starts_with(path + ": outputs/text: row 3: the file is damaged: "));
  }
}

TEST_CASE("text whose characters are longer than a byte is refused, or it would take gigabytes") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  const auto message_of_wide = [&](const std::string& last) {
    run_python(kWrite, {path, ""});
    std::string bytes = read_bytes(path);
    // The type of an array or an attribute: text of variable length, 16 bytes, characters of 1.
    const std::string type("\x19\1\1\0\x10\0\0\0\x10\0\0\0\1\0\0\0", 16);
    const size_t at = last.empty() ? bytes.find(type) : bytes.find(type, bytes.find(last));
    REQUIRE(at != std::string::npos);
    bytes[at + 15] = 0x10;
    write_bytes(path, bytes);
    return message_of([&] {
      const EvalFile file(path);
      file.read_texts("outputs/text", 0, 4);
    });
  };
  const std::string wide = message_of_wide("");
  const bool is_ours =
      wide == path + ": the file is damaged: its text has characters of 268435457 bytes";
  // HDF5 1.14 looks first.
  const bool is_of_hdf5 = wide.starts_with(path + ": cannot open outputs/text: ") &&
                          wide.find("size = 268435457 bytes") != std::string::npos;
  CAPTURE(wide);
  CHECK((is_ours || is_of_hdf5));
  CHECK(message_of_wide("split") ==
        path +
            ": cannot read the attribute split: the file is damaged: its characters have many "
            "bytes");
}

TEST_CASE("attributes of text that cannot be checked are not read, with what helps") {
  const std::string path = STEPOP_SOURCE_DIR "/tests/data/hdf5/dense.h5";
  CHECK(message_of([&] { EvalFile file(path); }) ==
        path +
            ": cannot read the attribute config: text in dense storage, or of a shared type, is "
            "not read; \"h5repack OLD NEW\" writes a file with another one");
  CHECK(message_of([&] { EvalFile file(STEPOP_SOURCE_DIR "/tests/data/hdf5/later.h5"); }) ==
        "no error");
}

TEST_CASE("an array that becomes shorter while the file is open is not read as zeros") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  run_python(kWrite, {path, "put('outputs/x', np.ones((4, 10000)))"});
  const EvalFile file(path);
  CHECK(file.read("outputs/x").sum().item<double>() == 40'000);
  std::filesystem::resize_file(path, 100'000);
  CHECK(message_of([&] {
          file.read("outputs/x");
        }).starts_with(path + ": became shorter while it was read: it has 100000 bytes"));
}

}  // namespace damaged_outputs_test
}  // namespace stepop
