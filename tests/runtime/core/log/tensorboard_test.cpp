#include "runtime/core/log/tensorboard.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cerrno>
#include <limits>

#include "runtime/core/formats/wav_file.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/image_grid.h"
#include "runtime/core/value/yaml_reader.h"
#include "tests/failing_files.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace log_tensorboard_test {

/// A file in `folder`/tensorboard.
struct Board : TensorBoard {
  Board(const std::string& folder, int64_t first_step, const std::string& config) {
    begin({.folder = folder, .first_step = first_step, .config = config});
  }
  void add(int64_t step, const OrderedMap<double>& scalars,
           const OrderedMap<std::string>& pngs = {}) {
    write({.step = step}, {.scalars = scalars, .images = pngs});
  }
};

std::string events(const std::vector<std::string>& paths) {
  return run_python(read_bytes(STEPOP_SOURCE_DIR "/tests/runtime/core/log/read_events.py"), paths);
}

TEST_CASE("CRC-32C is that of RFC 3720's examples") {
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  const std::string descending(ascending.rbegin(), ascending.rend());
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(crc32c(ascending) == 0x46dd794e);
  CHECK(crc32c(descending) == 0x113fdb5c);
}

TEST_CASE("a record has its length and its data, each with a masked checksum") {
  // tensorboard.summary.writer.record_writer.RecordWriter (2.21) wrote these for b"" and b"abc".
  using namespace std::string_literals;
  CHECK(tf_record("") == "\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2"s);
  CHECK(tf_record("abc") == "\3\0\0\0\0\0\0\0\xb0\x99I\x0e"s + "abc" + "nW\xf1!");
}

TEST_CASE("scalars, images and the config are read by an independent reader") {
  const ScratchFolder folder;
  Board board(folder.path("a/b"), 0, "lr: 1e-3\nname: ä\n");
  board.add(7, {{"train/log_op/loss", 0.25}, {"x", -1e300}},
            {{"train/log_op/grey", image_grid_png(at::zeros({4, 1, 3, 5}))},
             {"colour", image_grid_png(at::zeros({1, 3, 2, 200}))},
             {"small", encode_jpeg(at::zeros({20, 30, 3}, at::kByte), 90)}});
  board.add(7, {});
  board.add(int64_t{1} << 40, {{"nan", std::numeric_limits<double>::quiet_NaN()}});
  board.sync();
  CHECK(events({board.path()}) ==
        R"({"step": 0, "version": "brain.Event:2"}
{"step": 0, "status": 1}
{"step": 0, "config": "text:     lr: 1e-3\n    name: ä\n"}
{"step": 7, "train/log_op/loss": "0.25", "x": "-inf", "train/log_op/grey": "png 6x10x1", "colour": "png 2x200x3", "small": "jpeg 20x30x3"}
{"step": 1099511627776, "nan": "nan"}
)");
  CHECK(message_of([&] {
          board.add(1, {}, {{"x", "no picture"}});
        }) == "TensorBoard: the image x is neither PNG nor JPEG");
}

TEST_CASE("a histogram has its limits and its counts") {
  const ScratchFolder folder;
  Board board(folder.path(), 0, "");
  board.write({.step = 3}, {.histograms = {{"w", histogram_of(at::tensor({0, 1, 1, 4}), 2)}}});
  // min, max, number, sum, sum of squares; where each bin ends; counts
  CHECK(events({board.path()})
            .ends_with(R"({"step": 3, "w": "histogram [0.0, 4.0, 4.0, 6.0, 18.0] [2.0, 4.0] )"
                       "[3.0, 1.0]\"}\n"));
}

TEST_CASE("a sound has its rate, its channels and its samples") {
  const ScratchFolder folder;
  Board board(folder.path(), 0, "");
  board.write({.step = 3},
              {.sounds = {{"train/log_op/voice/0", encode_wav(at::zeros({2, 9}), 8000)}}});
  CHECK(events({board.path()})
            .ends_with(R"({"step": 3, "train/log_op/voice/0": "wav 2x9 8000"})"
                       "\n"));
}

TEST_CASE("a text is a value of the plugin for texts") {
  const ScratchFolder folder;
  Board board(folder.path(), 0, "");
  board.write({.step = 3}, {.texts = {{"train/log_op/sample", "once\nupon"}}});
  CHECK(events({board.path()})
            .ends_with(R"({"step": 3, "train/log_op/sample": "text:     once\n    upon"})"
                       "\n"));
}

TEST_CASE("the file of a later start comes behind the others, whatever the clock says") {
  const ScratchFolder folder;
  folder.write("tensorboard/events.out.tfevents.4000000000.other", "");
  const Board first(folder.path(), 0, "");
  const Board second(folder.path(), 8, "");
  CHECK(first.path() == folder.path("tensorboard/events.out.tfevents.4000000001.stepop"));
  CHECK(second.path() == folder.path("tensorboard/events.out.tfevents.4000000002.stepop"));
  CHECK(events({second.path()}).find(R"({"step": 8, "status": 1})") != std::string::npos);
}

TEST_CASE("a full disk is reported, and the file has whole records") {
  const ScratchFolder folder;
  Board board(folder.path(), 0, "");
  board.add(1, {{"x", 1}});
  const std::string before = events({board.path()});
  {
    FailingFiles files;
    files.shorten_writes(10);
    files.fail_from(FileCall::kWrite, 3, ENOSPC);
    CHECK(message_of([&] {
            board.add(2, {{"x", 2}});
          }) == "cannot write " + board.path() + ": No space left on device");
  }
  CHECK(events({board.path()}) == before);
  board.add(3, {{"x", 3}});
  CHECK(events({board.path()}) == before + R"({"step": 3, "x": "3.0"})" + "\n");
}

/// What TensorBoard's own reader has of a folder, scalars as JSON; it needs the Python package
/// tensorboard, which the tests do not install.
const std::string kTensorBoard = R"(
import json, logging, sys
try:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.util import tensor_util
except ImportError as error:
    print("skipped:", error)
    sys.exit()
logging.disable(logging.CRITICAL)
guidance = {event_accumulator.IMAGES: 0, event_accumulator.TENSORS: 0, event_accumulator.SCALARS: 0}
board = event_accumulator.EventAccumulator(sys.argv[1], size_guidance=guidance)
board.Reload()
tags = board.Tags()
for tag in sorted(tags["scalars"]):
    print(tag, [(e.step, e.value) for e in board.Scalars(tag)])
for tag in sorted(tags["images"]):
    print(tag, [(e.step, e.height, e.width) for e in board.Images(tag)])
for tag in sorted(tags["tensors"]):
    metadata = board.SummaryMetadata(tag).plugin_data.plugin_name
    texts = [(e.step, tensor_util.make_ndarray(e.tensor_proto).item().decode()) for e in board.Tensors(tag)]
    print(tag, metadata, texts)
)";

TEST_CASE(
    "TensorBoard's own reader shows what a resumed training logged, without what it replaced") {
  const ScratchFolder folder;
  const std::string png = image_grid_png(at::zeros({2, 3, 4, 5}));
  {
    Board board(folder.path(), 0, "lr: 1\n");
    for (const int64_t step : {1, 2, 3, 4}) {
      board.add(step, {{"loss", static_cast<double>(step)}}, {{"input", png}});
    }
  }
  {
    Board board(folder.path(), 3, "lr: 2\n");  // from the checkpoint of step 2
    board.add(3, {{"loss", 0.5}}, {{"input", png}});
  }
  // The last process was killed in the midst of a record.
  {
    Board board(folder.path(), 4, "lr: 3\n");
    board.add(4, {{"loss", 0.25}});
    const std::string bytes = read_bytes(board.path());
    write_bytes(board.path(), bytes + tf_record("lost").substr(0, 14));
  }
  Board(folder.path(), 5, "lr: 4\n").add(5, {{"loss", 0.125}});
  const std::string shown = run_python(kTensorBoard, {folder.path("tensorboard")});
  if (shown.starts_with("skipped")) {
    MESSAGE("TensorBoard's own reader is not installed (pip install tensorboard): " << shown);
    return;
  }
  CHECK(shown ==
        "loss [(1, 1.0), (2, 2.0), (3, 0.5), (4, 0.25), (5, 0.125)]\n"
        "input [(1, 4, 10), (2, 4, 10), (3, 4, 10)]\n"
        "config text [(0, '    lr: 1\\n'), (3, '    lr: 2\\n'), (4, '    lr: 3\\n'), "
        "(5, '    lr: 4\\n')]\n");
}

TEST_CASE("handlers say which logs TensorBoard gets, and a kind that is not there is reported") {
  const auto params = [](const std::string& yaml) {
    return read_parameters<TensorBoard::Params>(Config(parse_yaml(yaml, {"test.yaml", 0})));
  };
  const ScratchFolder folder;
  TensorBoard board(params("{handlers: [images, texts]}"));
  board.begin({.folder = folder.path(), .first_step = 0, .config = "a: 1\n"});
  board.write({.step = 3}, {.scalars = {{"loss", 0.5}},
                            .images = {{"fake", image_grid_png(at::zeros({1, 1, 2, 3}))}},
                            .texts = {{"said", "yes"}}});
  board.write({.step = 4}, {.scalars = {{"loss", 0.25}}});
  board.sync();
  CHECK(events({board.path()}) ==
        R"({"step": 0, "version": "brain.Event:2"}
{"step": 0, "status": 1}
{"step": 0, "config": "text:     a: 1\n"}
{"step": 3, "fake": "png 2x3x1", "said": "text:     yes"}
)");
  CHECK(message_of([&] { TensorBoard wrong(params("{handlers: [scalar]}")); }) ==
        "test.yaml:1: handlers: there are no logs of the kind \"scalar\"; there are: scalars, "
        "images, audio, texts, histograms");
}

}  // namespace log_tensorboard_test
}  // namespace stepop
