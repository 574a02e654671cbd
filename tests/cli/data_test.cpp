// `stepop data -b config.yaml [SPLIT]`.

#include <doctest/doctest.h>

#include <cmath>
#include <utility>

#include "runtime/core/pictures/image_file.h"
#include "tests/cli/browser.h"
#include "tests/cli/command.h"
#include "tests/places.h"
#include "tests/python.h"

namespace stepop {
namespace data_test {

const std::string kConfig = STEPOP_SOURCE_DIR "/configs/digits.yaml";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("stepop data shows the datasets of a config as a table, a picture and a page") {
  const ScratchFolder folder;
  const CommandResult all = run_in(folder, "stepop data -b " + kConfig);
  CAPTURE(all.err);
  CHECK(all.exit_code == 0);
  CHECK(all.out.starts_with("datasets/train: Idx, 1,442 examples, all read in "));
  CHECK(has(all.out, "datasets/validation: Idx, 355 examples"));
  CHECK(has(all.out, "image  float32  [1, 8, 8]   -1    1  -0.3896      0.752\n"));
  CHECK(has(all.out, "10 values; rarest 8 (140), commonest 3 (147)"));
  CHECK_FALSE(std::filesystem::exists(folder / "logs"));

  const CommandResult one =
      run_in(folder, "stepop data -b " + kConfig + " validation -o a.png --html a.html");
  CHECK(one.exit_code == 0);
  CHECK_FALSE(has(one.out, "datasets/train"));
  CHECK(has(one.out, "picture   a.png\npage      a.html ("));
  CHECK(read_image(folder / "a.png").dim() == 3);
  const std::string browser = find_browser();
  if (!browser.empty()) {
    const OpenedPage page = open_page(
        browser, folder / "a.html",
        "const search = document.querySelector('input[type=search]'); search.value = 'class 3';"
        "search.dispatchEvent(new Event('input'));"
        "document.title = 'seen ' + document.querySelector('output').value;");
    CHECK(page.console.find("Error") == std::string::npos);
    CHECK(has(page.document, "<title>seen "));
    CHECK(has(page.document, "of 355 examples"));
    CHECK_FALSE(has(page.document, "seen 240 of"));
  }
}

TEST_CASE("bad examples are listed, and the exit code says so") {
  const ScratchFolder folder;
  run_in(folder,
         "mkdir -p images/a; cp '" STEPOP_SOURCE_DIR
         "'/tests/data/images/*.png images/a/; head -c 60 \"$(ls images/a/*.png | head -1)\" "
         "> images/a/cut.png");
  folder.write("a.yaml", "datasets: {train: {class: ImageFolder, path: images}}\n");
  const CommandResult result = run_in(folder, "stepop data -b a.yaml");
  CHECK(result.exit_code == 1);
  CHECK(has(result.out, "cut.png: "));
  CHECK(has(result.out, " bad example"));
}

TEST_CASE("images with alpha are trained, logged, evaluated and shown") {
  const ScratchFolder folder;
  run_python(R"(
import os, struct, sys, zlib
def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
for k in range(4):
    os.makedirs(f'{sys.argv[1]}/{k % 2}', exist_ok=True)
    rows = (b'\0' + bytes([255, 0, 0, 0] * 16)) * 16  # transparent
    with open(f'{sys.argv[1]}/{k % 2}/{k}.png', 'wb') as f:
        f.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 16, 16, 8, 6, 0, 0, 0)))
        f.write(chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
)",
             {folder / "images"});
  folder.write("a.yaml", R"(
iterator: Classifier
model: {class: MLP, inputs: 1024, hidden: [], classes: 2}
datasets:
  train: {class: ImageFolder, path: images, channels: 4}
  validation: {class: ImageFolder, path: images, channels: 4}
batch_size: 4
num_steps: 1
optimizer: SGD
eval_hook: {eval_callbacks: {seen: examples}}
)");
  const CommandResult result =
      run_in(folder,
             "stepop -n a -b a.yaml -t && stepop data -b a.yaml train -o a.png && "
             "mv $(find logs -name 'input_0000001.png' | grep /train/train/) log.png && "
             "mv $(find logs -name best.png) best.png");
  CHECK_MESSAGE(result.exit_code == 0, result.err);
  // All begin with a square of the darker grey of the board, where the red is transparent.
  for (const auto& [file, first] : {std::pair("log.png", 0), {"a.png", 14}, {"best.png", 14}}) {
    CAPTURE(file);
    const at::Tensor image = read_image(folder / file);
    CHECK(image.size(0) == 3);
    for (int64_t c = 0; c < 3; ++c) {
      CHECK(std::lround((image[c][first][first].item<double>() + 1) * 127.5) == 153);
    }
  }
}

TEST_CASE("a stream that does not know its size is read to its end") {
  const ScratchFolder folder;
  folder.write("a.yaml",
               "datasets: {train: {class: TarShards, urls: a.tar, pipe: \"cat {url}\"}}\n");
  run_in(folder, "for i in 1 2 3; do echo $i > $i.cls; done; tar cf a.tar 1.cls 2.cls 3.cls");
  const CommandResult result = run_in(folder, "stepop data -b a.yaml");
  CAPTURE(result.out);
  CHECK(result.exit_code == 0);
  CHECK(has(result.out, "datasets/train: TarShards, 3 examples, "));
  CHECK_FALSE(has(result.out, "bad example"));
}

TEST_CASE("what cannot be shown is a clear error") {
  const ScratchFolder folder;
  const auto error = [&](const std::string& words) {
    const CommandResult result = run_in(folder, "stepop data " + words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(has(error("-b " + kConfig + " trian"),
            "stepop data: the config has no datasets/trian; there are: train, validation; did you "
            "mean train?"));
  CHECK(has(error("-b " + kConfig + " --datasets/train/imges x"),
            "did you mean \"datasets/train/images\"?"));
  CHECK(has(error("-b " + kConfig + " -o a.jpg"), "-o a.jpg: expected a name that ends with .png"));
  CHECK(has(error("-b " + kConfig + " --html no/a.html"), "--html no/a.html: there is no folder "));
  CHECK(has(error("-b " + kConfig + " --examples some"),
            "--examples some: expected a number of 1 or more, or all"));
  CHECK(has(error("-b " + kConfig + " -t"), "stepop data does not take -t\n"));
  CHECK(has(error(""), "no config given: -b base.yaml"));
  folder.write("a.yaml", "seed: 1\n");
  CHECK(has(error("-b a.yaml"), "stepop data: the config has no dataset"));
}

}  // namespace data_test
}  // namespace stepop
