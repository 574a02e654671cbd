// What iterators/README.md, the guide, and IN_DEPTH.md say of files, examples of different sizes
// and numbers of an update: its lines are those of tests/cli/guide/, which are run.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/code_run.h"
#include "tests/cli/digits_run.h"
#include "tests/python.h"

namespace stepop {
namespace guide_test {

const std::string kSources = STEPOP_SOURCE_DIR "/tests/cli/guide/";

std::string trimmed(const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? "" : line.substr(begin);
}

/// The blocks of code of a section of a page, a line each, without indentation.
std::vector<std::string> code_of(const std::string& page, const std::string& heading,
                                 const std::string& language) {
  const std::string guide = read_bytes(STEPOP_SOURCE_DIR "/iterators/" + page);
  const size_t begin = guide.find("\n" + heading + "\n");
  REQUIRE(begin != std::string::npos);
  std::stringstream section(guide.substr(begin, guide.find("\n## ", begin + 1) - begin));
  std::vector<std::string> lines;
  bool is_code = false;
  for (std::string line; std::getline(section, line);) {
    if (line.starts_with("```")) {
      is_code = line == "```" + language;
    } else if (is_code && !line.empty()) {
      lines.push_back(trimmed(line));
    }
  }
  return lines;
}

std::vector<std::string> lines_of_file(const std::string& name) {
  std::stringstream text(read_bytes(kSources + name));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(trimmed(line));
  return lines;
}

void check_run(const std::vector<std::string>& code, const std::vector<std::string>& run) {
  CHECK(code.size() > 2);
  for (const auto& line : code) {
    CAPTURE(line);
    CHECK(std::find(run.begin(), run.end(), line) != run.end());
  }
}

TEST_CASE("the guide's lines are those that are run here and by the test of the wheel") {
  std::vector<std::string> data = code_of("README.md", "## Data", "cpp");
  const auto files = std::find_if(data.begin(), data.end(), [](const std::string& line) {
    return line.starts_with("struct Params");
  });
  data.erase(data.begin(), files);  // the first block is of another example
  check_run(data, lines_of_file("words.cpp"));
  check_run(code_of("README.md", "### Numbers of an update", "cpp"), lines_of_file("words.cpp"));
  check_run(code_of("IN_DEPTH.md", "## A trained network in your own program", "cpp"),
            lines_of_file("apply.cpp"));
  check_run(code_of("IN_DEPTH.md", "## A trained network in your own program", "cmake"),
            lines_of_file("CMakeLists.txt"));
}

TEST_CASE("words of different lengths are padded, trained on, and come out with their lengths") {
  const ScratchFolder folder;
  for (const char* name : {"words.cpp", "words.yaml"}) {
    folder.write("mine/" + std::string(name), read_bytes(kSources + name));
  }
  folder.write("mine/words.txt", "abcde\nfghij\nklmno\npqrst\nuvwxyz\nbanana\n");
  // The path is relative to the config's folder, not to this one.
  const auto trained = run_with_cache(folder, "stepop -n words -b mine/words.yaml -t");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  CHECK(trained.out.find(" lr 0.1 grad_norm ") != std::string::npos);

  const std::string lengths = run_python(
      "import glob, h5py, sys\n"
      "f = h5py.File(max(glob.glob(sys.argv[1] + '/logs/*/eval/*/80/outputs.h5')))\n"
      "o = f['outputs/scores/offsets'][()]\n"
      "print(*(o[1:] - o[:-1]))\n",
      {folder.path()});
  CHECK(lengths == "5 5 5 5 6 6\n");
}

TEST_CASE("the page of the functions over sound has a network that learns the classes of files") {
  const std::string page = read_bytes(STEPOP_SOURCE_DIR "/iterators/audio/README.md");
  const ScratchFolder folder;
  for (const char* name : {"tones.cpp", "tones.yaml"}) {
    const std::string source = read_bytes(kSources + name);
    CHECK(page.find(source) != std::string::npos);
    folder.write(name, source);
  }
  run_python(
      "import math, os, struct, sys, wave\n"
      "for name, hertz in ('high', 2000), ('low', 300):\n"
      "    os.makedirs(f'{sys.argv[1]}/sounds/{name}')\n"
      "    for i in range(4):\n"
      "        with wave.open(f'{sys.argv[1]}/sounds/{name}/{i}.wav', 'wb') as w:\n"
      "            w.setnchannels(1), w.setsampwidth(2), w.setframerate(22050)\n"
      "            w.writeframes(b''.join(struct.pack('<h', int(9000 * math.sin(\n"
      "                (hertz + 100 * i) * 2 * math.pi * t / 22050))) for t in range(30000)))\n",
      {folder.path()});
  const auto trained = run_with_cache(folder, "stepop -n first -b tones.yaml -t");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  const size_t last = trained.out.rfind("accuracy ");
  REQUIRE(last != std::string::npos);
  CHECK_MESSAGE(trained.out.substr(last).starts_with("accuracy 1"), trained.out);
}

TEST_CASE("the page of metrics has a metric that runs over an evaluation") {
  const std::string page = read_bytes(STEPOP_SOURCE_DIR "/iterators/metrics/README.md");
  const size_t begin = page.find("#include <stepop/metrics.h>");
  const ScratchFolder folder;
  REQUIRE(run_with_cache(folder, "stepop new mine --template regression").exit_code == 0);
  folder.write("mine/mine.cpp", page.substr(begin, page.find("```", begin) - begin) +
                                    read_bytes(folder.path("mine/mine.cpp")));
  const auto trained = run_with_cache(
      folder,
      "stepop -n a -b mine/mine.yaml -t --num_epochs 1 --eval_hook/eval_callbacks/mean '{class: "
      "MeanError, power: 2, prediction: prediction, target: y}'");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  const auto last = nlohmann::json::parse(
      lines_of(read_bytes(folder.path(only_run(folder)) + "/train/metrics.jsonl")).back());
  const double rmse = last["validation/eval_op/regression/rmse"];
  CHECK(last["validation/eval_op/mean/MeanError"] == doctest::Approx(rmse * rmse));
}

TEST_CASE("the page for people from NectarGAN has a trainer that runs") {
  const std::string page = read_bytes(STEPOP_SOURCE_DIR "/iterators/NECTARGAN.md");
  const auto block_after = [&](const std::string& words, const std::string& language) {
    const std::string fence = "```" + language + "\n";
    const size_t begin = page.find(fence, page.find(words)) + fence.size();
    return page.substr(begin, page.find("```", begin) - begin);
  };
  const ScratchFolder folder;
  folder.write("painter.cpp", block_after("`painter.cpp` has what is new", "cpp"));
  folder.write("painter.yaml", block_after("`painter.yaml` says", "yaml"));
  const auto trained = run_with_cache(folder, "stepop -n first -b painter.yaml -t");
  CHECK_MESSAGE(trained.exit_code == 0, trained.err);
  CHECK(trained.out.find("train/train_op/weight: G_SOBEL ") != std::string::npos);
  CHECK(trained.out.find(" smooth ") != std::string::npos);
  CHECK(trained.out.find("epoch 2: G_L1 0.") != std::string::npos);
}

}  // namespace guide_test
}  // namespace stepop
