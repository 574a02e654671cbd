// What is said when a dataset, its config or an example cannot be used.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "runtime/core/base/text.h"
#include "tests/message_of.h"
#include "tests/runtime/data/python/python_files.h"

namespace stepop {
namespace python_errors_test {

constexpr const char* kData = R"(import numpy

class Small:
    def __init__(self, size=4): self.size = size
    def __len__(self): return self.size
    def __getitem__(self, index): return numpy.zeros(2), index

class Bad(Small):
    def __init__(self): raise ValueError("no such folder: data")

class Caused(Small):
    def __init__(self):
        try:
            open("/nowhere/file")
        except OSError as error:
            raise RuntimeError("cannot open it") from error

class Exits(Small):
    def __init__(self): raise SystemExit("usage: data")

class Dies(Small):
    def __init__(self):
        import os, sys
        print("about to end", file=sys.stderr)
        os._exit(7)

class NoLength:
    def __getitem__(self, index): return index

class Nothing: pass

class DataLoader:
    dataset = Small()
    def __len__(self): return 1
    def __iter__(self): return iter([])

def splits(): return {"train": Small(), "test": Small()}
def generator(): yield 1
def number(): return 7
ready = Small()
five = 5
)";

struct Files : PythonFiles {
  Files() : PythonFiles(kData) {}
  /// What is said of a dataset, without the folder.
  std::string message(const std::string& name, const std::string& more = "") const {
    return without_folder(message_of([&] { dataset(name, more); }));
  }
  std::string without_folder(std::string text) const {
    for (const std::string& folder : {std::string(kPython), path() + "/"}) {
      const std::string name = folder == kPython ? "PYTHON" : "";
      for (size_t at = 0; (at = text.find(folder)) != std::string::npos;) {
        text.replace(at, folder.size(), name);
      }
    }
    return text;
  }
};

TEST_CASE("what cannot be a dataset is refused with its reason") {
  const Files files;
  CHECK(files.message("Smal") == "data: object: my_data.py has no Smal; did you mean Small?");
  CHECK(files.message("Quite") ==
        "data: object: my_data.py has no Quite; it has: Small, Bad, Caused, Exits, Dies, NoLength, "
        "Nothing, DataLoader, splits, generator, number, ready, five");
  CHECK(files.message("NoLength") ==
        "data: object: a NoLength has no __len__: how many examples are there?");
  CHECK(files.message("Nothing") ==
        "data: object: found Nothing, which has neither __getitem__ nor __iter__");
  CHECK(files.message("number") ==
        "data: object: found int, which has neither __getitem__ nor __iter__");
  CHECK(files.message("five") ==
        "data: object: expected a dataset, a class or a function, found int");
  CHECK(files.message("DataLoader") ==
        "data: object: found a DataLoader; give the dataset inside of it: batches are made here");
  CHECK(files.message("splits") ==
        "data: object: found a dictionary with train, test; take one of them, such as by kwargs: "
        "{split: train}");
  CHECK(files.message("generator") ==
        "data: object: a generator can be read only once: give an object whose __iter__ begins "
        "anew");
  CHECK(files.message("ready", "kwargs: {size: 3}") ==
        "data: kwargs: my_data.py:ready is an object that exists already, not a class or a "
        "function");
  CHECK(files.dataset("ready")->size() == 4);
}

TEST_CASE("what fails while a dataset is built is shown with its place in the user's file") {
  const Files files;
  const std::string unknown = files.message("Small", "kwargs: {sise: 3}");
  const std::string usual =
      "data: kwargs: Small.__init__() got an unexpected keyword argument 'sise'";
  CHECK((unknown == usual || unknown == usual + ". Did you mean 'size'?"));  // Python 3.13
  CHECK(files.message("Bad").starts_with(
      "data: my_data.py:9: ValueError: no such folder: data\n"
      "Traceback of Python (most recent call last):\n"
      "  File \"my_data.py\", line 9, in __init__\n"
      "    def __init__(self): raise ValueError(\"no such folder: data\")"));
  const std::string caused = files.message("Caused");
  CHECK(caused.starts_with("data: my_data.py:16: RuntimeError: cannot open it\n"));
  CHECK(caused.find("\ncaused by my_data.py:14: FileNotFoundError: [Errno 2] No such file or "
                    "directory: '/nowhere/file'\n") != std::string::npos);
  CHECK(files.message("Exits") == "data: the dataset ended Python: SystemExit: usage: data");
  CHECK(files.message("Dies") == "data: PYTHON ended with exit status 7\nabout to end");
  files.write("broken.py", "import numpy\n\ndef f(:\n");
  const std::string broken = files.without_folder(message_of([&] {
    dataset_of(
        fmt::format("{{class: Python, python: {}, object: '{}:f'}}", kPython, files / "broken.py"));
  }));
  CHECK(broken == "data: broken.py:3: SyntaxError: invalid syntax");
  files.write("imports.py", "import numpy\nimport not_there_at_all\n");
  CHECK(files
            .without_folder(message_of([&] {
              dataset_of(fmt::format("{{class: Python, python: {}, object: '{}:f'}}", kPython,
                                     files / "imports.py"));
            }))
            .starts_with("data: imports.py:2: ModuleNotFoundError: No module named "
                         "'not_there_at_all'\n"));
}

TEST_CASE("mistakes in the config are refused at their place") {
  const Files files;
  const auto message = [&](const std::string& keys) {
    return files.without_folder(message_of(
        [&] { dataset_of(fmt::format("{{class: Python, python: {}, {}}}", kPython, keys)); }));
  };
  CHECK(files.message("Small", "kwargs: [3]") ==
        "test.yaml:1: data/kwargs: expected a map from arguments to values, found [3]");
  CHECK(files.message("Small", "keys: image") ==
        "test.yaml:1: data/keys: expected the names of the parts of an example, [image, class], or "
        "a map to its own names, {image: pixels}; found \"image\"");
  CHECK(files.message("Small", "resume: often") ==
        "test.yaml:1: data/resume: expected state or skip, found \"often\"");
  CHECK(files.message("Small", "timeout: -1") ==
        "test.yaml:1: data/timeout: expected 0 or more, found -1");
  CHECK(message("object: ''") ==
        "test.yaml:1: data/object: expected \"my_data.py:Train\" or \"package.module:Name\", found "
        "\"\"");
  CHECK(message("object: Train") ==
        "data: object: expected \"my_data.py:Train\" or \"package.module:Name\", found \"Train\"");
  CHECK(message("object: /nowhere/data.py:Train") ==
        "test.yaml:1: data/object: no such file: /nowhere/data.py");
  CHECK(message("object: " + files.path() + "/my_data.py") ==
        "test.yaml:1: data/object: expected a class or a function of the file, "
        "\"my_data.py:Train\", found \"my_data.py\"");
  CHECK(message("object: 'not_there.data:Train'") ==
        "data: object: PYTHON has no module not_there.data: PYTHON -m pip install not_there");
  CHECK(message("object: 'json.not_there:Train'") ==
        "data: object: Python has no module json.not_there");
  CHECK(message("object: 'numpy:arrange'") ==
        "data: object: numpy has no arrange; did you mean arange?");
  CHECK(files.message("Small", "collate_fn: 'numpy:arrange'") ==
        "data: collate_fn: numpy has no arrange; did you mean arange?");
  CHECK(files.message("Small", "collate_fn: '" + files.path() + "/my_data.py:five'") ==
        "data: collate_fn: expected a function, found int");
  CHECK(files.message("Small", "folder: /nowhere")
            .starts_with("test.yaml:1: data/folder: no such folder: /nowhere") == false);
  CHECK(message_of([] { dataset_of("{class: Python, python: no-python, object: 'a:b'}"); }) ==
        "data: no Python to read it with: no-python: not found; give one by \"python\" or by the "
        "environment's STEPOP_PYTHON");
}

constexpr const char* kExamples = R"(import numpy

def raises(index): return {"x": [1, 2][index]}
def exits(index): raise SystemExit("enough")

class Examples:
    """Example i is the i-th of the values, as `x`."""
    def __init__(self, values=None, call=None):
        self.values = eval(values, globals()) if values else None
        self.call = globals()[call] if call else None
    def __len__(self): return len(self.values) if self.values else 8
    def __getitem__(self, index): return self.call(index) if self.call else self.values[index]
)";

TEST_CASE("a value that is no tensor is refused with its key and its example") {
  const PythonFiles files(kExamples);
  const auto message = [&](const std::string& values, const std::string& more = "",
                           const std::vector<int64_t>& indices = {0, 1}) {
    const auto dataset = files.dataset(
        "Examples",
        fmt::format("kwargs: {{values: '{}'}}{}{}", values, more.empty() ? "" : ", ", more));
    return message_of([&] { batch_of(*dataset, indices); });
  };
  CHECK(message("[{\"x\": 1}, {\"x\": None}]") ==
        "example 1: \"x\": None is neither a tensor nor a text: leave it out with keys, or give a "
        "number for it");
  CHECK(message("[{\"x\": None}] * 2") ==
        "example 0: \"x\": None is neither a tensor nor a text: leave it out with keys, or give a "
        "number for it");
  CHECK(message("[{\"x\": None, \"y\": 1}] * 2", "keys: [y]") == "no error");
  CHECK(message("[{\"x\": b\"ab\"}] * 2") ==
        "example 0: \"x\": bytes are neither a tensor nor a text: decode them, or "
        "numpy.frombuffer(value, numpy.uint8)");
  CHECK(message("[{\"x\": numpy.array([1, None])}] * 2") ==
        "example 0: \"x\": an array of object cannot be a tensor");
  CHECK(message("[{\"x\": numpy.array([\"a\"])}] * 2") ==
        "example 0: \"x\": an array of <U1 cannot be a tensor: decode it to str");
  CHECK(message("[{\"x\": {1, 2}}] * 2") ==
        "example 0: \"x\": set is neither a tensor, an array, an image, a number nor a text");
  CHECK(message("[{\"x\": 2**63}] * 2") ==
        "example 0: \"x\": a whole number does not fit into an int64");
  CHECK(message("[{\"x\": [[1, 2], [3]]}] * 2") ==
        "example 0: \"x\": a list whose rows have different lengths cannot be one tensor");
  CHECK(message("[{\"x\": [1, 2**70]}] * 2") ==
        "example 0: \"x\": a whole number does not fit into an int64");
  CHECK(
      message("[{\"x\": [1, None]}] * 2") ==
      "example 0: \"x/1\": None is neither a tensor nor a text: leave it out with keys, or give a "
      "number for it");
  CHECK(message("[{\"a\": {\"b\": 1}, \"a/b\": 2}] * 2") ==
        "example 0: two values have the name \"a/b\"");
  CHECK(message("[{\"x\": numpy.zeros(3)}, {\"x\": numpy.zeros(4)}]") ==
        "cannot put examples 0 and 1 into one batch: \"x\" is float64 [3] in the first and float64 "
        "[4] in the second; the dataset may have a collate_fn, Padded may pad it, or a transform "
        "may give one size");
  CHECK(message("[{\"x\": 1}, {\"x\": \"one\"}]")
            .starts_with("cannot put examples 0 and 1 into one batch: \"x\" is "));
  CHECK(message("[{\"x\": 1}, {\"y\": 1}]") ==
        "cannot put examples 0 and 1 into one batch: the first has x, the second y");
}

TEST_CASE("keys that do not fit an example are refused with what the example has") {
  const PythonFiles files(kExamples);
  const auto message = [&](const std::string& example, const std::string& keys) {
    const auto dataset = files.dataset(
        "Examples", fmt::format("kwargs: {{values: '[{}] * 4'}}, keys: {}", example, keys));
    return message_of([&] { batch_of(*dataset, {2, 3}); });
  };
  CHECK(message("(numpy.zeros((2, 3)), 4)", "null") ==
        "example 2: an example is (float64 [2, 3], int), which has no names: give them as keys: "
        "[image, class]");
  CHECK(message("numpy.zeros(3)", "null") ==
        "example 2: an example is float64 [3], which has no names: give them as keys: [image]");
  CHECK(message("(1, 2.5)", "null") ==
        "example 2: an example is tuple of 2 numbers, which has no names: give them as keys: "
        "[image]");
  CHECK(message("(numpy.zeros(2), 4)", "[image]") ==
        "example 2: keys: an example has 2 parts, (float64 [2], int), and 1 names");
  CHECK(message("numpy.zeros(3)", "[a, b]") ==
        "example 2: keys: an example is one value, float64 [3], and there are 2 names");
  CHECK(message("{\"image\": 1, \"label\": 2}", "[image, class]") ==
        "example 2: keys: an example has no \"class\"; it has: image, label");
  CHECK(message("{\"image\": {\"a\": 1}, \"label\": 2}", "{image: pixels}") ==
        "example 2: keys/image: an example has no \"pixels\"; it has: image/a, label");
}

TEST_CASE("an exception in an example is shown with the example and Python's traceback") {
  const PythonFiles files(kExamples);
  const auto dataset = files.dataset("Examples", "kwargs: {call: raises}");
  const std::string file = files / "my_data.py";
  const std::string expected = fmt::format(
      "example 5: {0}:3: IndexError: list index out of range\n"
      "Traceback of Python (most recent call last):\n"
      "  File \"{0}\", line 12, in __getitem__\n",
      file);
  CHECK(message_of([&] { batch_of(*dataset, {0, 5, 1}); }).starts_with(expected));
  // The worker goes on.
  CHECK(batch_of(*dataset, {0, 1}).size() == 2);
  CHECK(message_of([&] { example_of(*dataset, 5); }).starts_with(expected.substr(11)));
  const auto ends = files.dataset("Examples", "kwargs: {call: exits}");
  const std::string message = message_of([&] { batch_of(*ends, {6, 7}); });
  CHECK(message.starts_with("example 6: the Python process "));
  CHECK(message.find(" that read it ended with exit status 1\n") != std::string::npos);
  CHECK(message.ends_with("\nSystemExit: enough"));
}

constexpr const char* kStrange = R"(import numpy

class Mute(Exception):
    def __str__(self): raise TypeError("no text")

def long(index): raise ValueError("y" * 50_000_000)
def mute(index): raise Mute()
def circle(index):
    first, second = ValueError("one"), ValueError("two")
    first.__cause__, second.__cause__ = second, first
    raise first
def deep(index):
    error = ValueError("0")
    for number in range(3000):
        error, inner = ValueError("%d" % (number + 1)), error
        error.__cause__ = inner
    raise error
def first(depth): second(depth + 1)
def second(depth): first(depth + 1)
def list_in_itself(index):
    made = [1]
    made.append(made)
    return {"a": {"x": made}}
def lists_in_itself(index):
    made = []
    made.append(made)
    return {"x": made}
def map_in_itself(index):
    made = {"y": 1}
    made["x"] = made
    return made
def only_itself(index):
    made = []
    made.append(made)
    return made
def tuple_of_itself(index):
    made = []
    made.append(made)
    return made, 3

class Strange:
    def __init__(self, call): self.call = globals()[call]
    def __len__(self): return 8
    def __getitem__(self, index): return self.call(index)

class Grows(Strange):
    def __init__(self): raise ValueError("y" * 50_000_000)
)";

TEST_CASE("an exception whose text is long, fails or has no end is shown in a limit") {
  const PythonFiles files(kStrange);
  std::string said;
  const auto message = [&](const std::string& call) {
    const auto dataset = files.dataset("Strange", "kwargs: {call: " + call + "}");
    std::string text = message_of([&] { batch_of(*dataset, {2, 3}); });
    CHECK(text.size() < 20'000);
    // The worker goes on.
    CHECK(message_of([&] { batch_of(*dataset, {2, 3}); }).starts_with("example 2: "));
    return text;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(message("long"), "ValueError: yyyy");
  has(message("long"), "yyy ... (50000000 characters)\nTraceback");
  has(message("mute"), "Mute: (its message cannot be read: TypeError)\n");
  has(message("circle"), "ValueError: one\n");
  has(message("circle"), "\ncaused by ValueError: two");
  has(message("deep"), "ValueError: 3000\n");
  has(message("deep"), "caused by ValueError: 2991");
  has(message("deep"), "further causes are left out");
  has(message("first"), "RecursionError: ");
  has(message("first"), "frames are left out");
  CHECK(message_of([&] { files.dataset("Grows"); }).size() < 20'000);
}

TEST_CASE("a list or a map that holds itself is refused with its key") {
  const PythonFiles files(kStrange);
  const auto message = [&](const std::string& call, const std::string& more = "") {
    const auto dataset = files.dataset("Strange", "kwargs: {call: " + call + "}" + more);
    return message_of([&] { batch_of(*dataset, {2, 3}); });
  };
  const std::string end = "values are nested more than 64 deep: does a list or a map hold itself?";
  CHECK(message("list_in_itself") == "example 2: \"a/x/1/1/...\": " + end);
  CHECK(message("lists_in_itself") == "example 2: \"x\": " + end);
  CHECK(message("map_in_itself") == "example 2: \"x/x/x/x/...\": " + end);
  CHECK(message("map_in_itself", ", keys: {z: x}") == "example 2: \"x/x/x/x/...\": " + end);
  CHECK(message("tuple_of_itself", ", keys: [z, y]") == "example 2: \"z\": " + end);
  CHECK(message("tuple_of_itself") == "example 2: \"0\": " + end);
  CHECK(message("only_itself", ", keys: [z]") == "example 2: an example: " + end);
}

constexpr const char* kNames = R"(import numpy

NAME = "caf\udce9"
MADE = {"key": {NAME: 1}, "inner": {"a": {NAME: "text"}}, "value": {"x": NAME}}

class Names:
    """A file's name that is not UTF-8 has such characters."""
    def __init__(self, what): self.what = what
    def __len__(self): return 8
    def __getitem__(self, index): return MADE[self.what]

class Stream:
    def __init__(self, what): self.what = what
    def __iter__(self): return iter([MADE.get(self.what, {"x": 1})] * 8)
    def state_dict(self): return {"file": NAME if self.what == "state" else "", "low": -float("inf") if self.what == "infinite" else 0}
    def load_state_dict(self, state): pass

class Classes(Names):
    classes = [NAME, "b"]
    def __getitem__(self, index): return numpy.zeros(2), 1

class Fails(Names):
    def __init__(self): raise FileNotFoundError(NAME)
)";

TEST_CASE("a key that is not Unicode is refused, and no other text breaks the connection") {
  const PythonFiles files(kNames);
  const auto message = [&](const std::string& name, const std::string& what,
                           const std::string& more = "") {
    return message_of([&] {
      const auto dataset = files.dataset(name, "kwargs: {what: " + what + "}" + more);
      batch_of(*dataset, {2, 3});
    });
  };
  const std::string end = ": the name of a value is not valid Unicode: give it another one by keys";
  CHECK(message("Names", "key") == "\"caf\\udce9\"" + end);
  CHECK(message("Names", "inner") == "\"a/caf\\udce9\"" + end);
  CHECK(message("Names", "value") == "no error");
  CHECK(message("Stream", "key", ", examples: 8") == "example 2: example 0: \"caf\\udce9\"" + end);
  CHECK(message("Stream", "value", ", examples: 8") == "no error");
  CHECK(message("Classes", "none", ", keys: [image, class]") == "no error");
  CHECK(message_of([&] { files.dataset("Fails"); }).find("FileNotFoundError: caf?\n") !=
        std::string::npos);
}

TEST_CASE("a state that JSON cannot hold is refused with its value") {
  const PythonFiles files(kNames);
  for (const std::string what : {"state", "infinite"}) {
    const auto dataset = files.dataset("Stream", "kwargs: {what: " + what + "}, examples: 8");
    CHECK(message_of([&] {
            for (int64_t i = 0; i < 8; ++i) example_of(*dataset, i);
          }).find("the state of the dataset is not made of") != std::string::npos);
  }
}

constexpr const char* kCollate = R"(import numpy

class Own:
    def __init__(self, kind="good"): self.kind = kind
    def __len__(self): return 8
    def __getitem__(self, index): return list(range(index + 1))
    def collate_fn(self, examples):
        return COLLATE[self.kind](examples)

def padded(examples):
    made = numpy.zeros((len(examples), max(map(len, examples))), "int64")
    for row, example in zip(made, examples): row[:len(example)] = example
    return {"x": made, "length": [len(each) for each in examples], "name": ["n%d" % len(each) for each in examples]}

COLLATE = {"good": padded, "one": lambda examples: {"x": numpy.zeros(2)}, "number": lambda examples: {"x": 3},
           "tuple": lambda examples: (padded(examples)["x"], [len(each) for each in examples]),
           "raises": lambda examples: {}[1]}
)";

TEST_CASE("a collate_fn makes the batches, the dataset's own or that of the config") {
  const PythonFiles files(kCollate);
  const auto batch = [&](const std::string& more) {
    return batch_of(*files.dataset("Own", more), {1, 3, 0});
  };
  for (const std::string& more :
       {std::string(),
        "collate_fn: '" + files.path() + "/my_data.py:padded', kwargs: {kind: raises}"}) {
    const Batch padded = batch(more);
    CHECK(padded["x"].sizes() == at::IntArrayRef({3, 4}));
    CHECK(padded["x"].sum().item<int64_t>() == 7);
    CHECK(padded["length"].sizes() == at::IntArrayRef({3}));
    CHECK(padded.text("name") == std::vector<std::string>{"n2", "n4", "n1"});
  }
  CHECK(batch("kwargs: {kind: tuple}, keys: [x, length]")["length"].size(0) == 3);
  const auto message = [&](const std::string& kind) {
    return message_of([&] { batch("kwargs: {kind: " + kind + "}"); });
  };
  CHECK(message("one") ==
        "\"x\": collate_fn gave float64 [2] for 3 examples; its first dimension must be 3");
  CHECK(message("number") ==
        "\"x\": collate_fn gave int for 3 examples; its first dimension must be 3");
  CHECK(message("raises").find("KeyError: 1") != std::string::npos);
}

}  // namespace python_errors_test
}  // namespace stepop
