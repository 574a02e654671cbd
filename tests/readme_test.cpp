// What the READMEs say is run as it stands there.
#include <ATen/ops/equal.h>  // before doctest: LibTorch has a CHECK of its own
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/formats/safetensors.h"
#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace readme_test {

/// The part of a README (`page`, from the root of the tree) below a heading.
std::string section_of(const std::string& page, const std::string& heading) {
  const std::string text = read_bytes(STEPOP_SOURCE_DIR "/" + page);
  const size_t begin = text.find("\n## " + heading + "\n");
  REQUIRE(begin != std::string::npos);
  return text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

/// The parts of `text` that stand between `open` and `close`.
std::vector<std::string> between(const std::string& text, const std::string& open,
                                 const std::string& close) {
  std::vector<std::string> parts;
  for (size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
    at += open.size();
    const size_t end = text.find(close, at);
    parts.push_back(text.substr(at, end - at));
    at = end + close.size();
  }
  return parts;
}

/// The blocks of a section that are written in `language`.
std::vector<std::string> blocks_of(const std::string& page, const std::string& heading,
                                   const std::string& language) {
  return between(section_of(page, heading), "```" + language + "\n", "```");
}

TEST_CASE("the README's lines take weights to a PyTorch module, and back into a training") {
  const std::vector<std::string> blocks =
      blocks_of("models/README.md", "Weights to Python and back", "python");
  REQUIRE(blocks.size() == 2);
  CHECK(lines_of(blocks[0]).size() == 3);
  CHECK(lines_of(blocks[1]).size() == 1);
  const std::string call = "load_file(\"";
  const size_t begin = blocks[0].find(call) + call.size();
  const std::string checkpoint = blocks[0].substr(begin, blocks[0].find('"', begin) - begin);

  const std::string yaml = std::string(
      "iterator: Classifier\noptimizer: Adam\n"
      "model: {class: LeNet, image_size: [8, 8], padding: [2, 2]}\n"
      "datasets: {train: {class: Synthetic, shape: [1, 8, 8]}}\n"
      "batch_size: 4\nnum_steps: 2\nn_data_processes: 0\n");
  const ScratchFolder folder;
  TestRun run(yaml);
  run.train();
  folder.write(checkpoint, read_bytes(run.checkpoint_path(2)));

  // The module starts with other weights; what it got, and what it then becomes, are kept.
  run_python("import os, sys\nos.chdir(sys.argv[1])\n" +
                 read_bytes(STEPOP_SOURCE_DIR "/tests/runtime/train/loop/torch_lenet.py") +
                 blocks[0] +
                 "from safetensors.torch import save_model\n"
                 "save_model(model, 'taken.safetensors')\n"
                 "with torch.no_grad():\n"
                 "    for parameter in model.parameters(): parameter.mul_(-3).add_(1)\n"
                 "save_model(model, 'changed.safetensors')\n" +
                 blocks[1],
             {folder.path()});
  const State trained = run.session.context().networks.tensors("model");
  CHECK(differences(load_safetensors(folder / "taken.safetensors").tensors, trained) == "");

  Session back(test_config(yaml + "init_from: " + folder.path("weights.pt") + "\n"), true, false,
               false);
  CHECK(back.init_weights() == "model: 10 of 10 tensors from " + folder.path("weights.pt"));
  const State changed = load_safetensors(folder / "changed.safetensors").tensors;
  CHECK(differences(back.context().networks.tensors("model"), changed) == "");
  CHECK(differences(changed, trained) != "");
}

TEST_CASE("the README's job for Slurm continues its run until the training is done") {
  const std::vector<std::string> blocks =
      blocks_of("runtime/train/run/README.md", "A run is never lost", "bash");
  REQUIRE(blocks.size() == 1);
  const ScratchFolder folder;
  folder.write("job.sh", blocks[0]);
  folder.write("configs/digits.yaml",
               "iterator: Classifier\noptimizer: SGD\nlog_freq: 10000\n"
               "model: {class: LeNet, image_size: [8, 8], padding: [2, 2]}\n"
               "datasets: {train: {class: Synthetic, shape: [1, 8, 8]}}\n"
               "batch_size: 1\nnum_steps: 12000\nmax_batches_per_epoch: 400\n");
  folder.write("bin/scontrol", "#!/bin/sh\necho \"$*\" >>queue\n");
  const std::string prepare = "chmod +x bin/scontrol; mkdir -p build; ln -sf '" STEPOP_BINARY_DIR
                              "/stepop' build/stepop\n"
                              "export PATH=$PWD/bin:$PATH SLURM_JOB_ID=7 OMP_NUM_THREADS=1\n";

  const CommandResult first =
      run_in(folder, prepare +
                         "bash job.sh & job=$!\n"
                         "until [ -e logs/*/train/checkpoints/model-400.safetensors ]; do\n"
                         "  kill -0 $job || break; sleep 0.02\n"
                         "done\n"
                         "kill -USR1 $job; wait $job; exit 0");
  CAPTURE(first.out);
  CHECK(first.err == "");
  CHECK(first.out.find("ended: SIGUSR1 arrived") != std::string::npos);
  CHECK(read_bytes(folder.path("queue")) == "requeue 7\n");

  const CommandResult second = run_in(folder, prepare + "bash job.sh; exit 0");
  CAPTURE(second.out);
  // Under a sanitizer it takes so long that a busy machine is noticed.
  CHECK((second.err == "" || second.err.starts_with("warning: the machine is busy: ")));
  CHECK(second.out.find("resuming at step ") != std::string::npos);
  CHECK(second.out.find("ended: all 12,000 steps are done") != std::string::npos);
  CHECK(read_bytes(folder.path("queue")) == "requeue 7\n");
  CHECK(only_run(folder).ends_with("_job7"));
}

TEST_CASE("the README's mistake is answered with the README's words") {
  const std::string text = read_bytes(STEPOP_SOURCE_DIR "/README.md");
  const size_t begin = text.find("\nstepop: configs/digits.yaml:") + 1;
  const std::string said = text.substr(begin, text.find('\n', begin) + 1 - begin);
  std::string config = read_bytes(STEPOP_SOURCE_DIR "/configs/digits.yaml");
  const size_t key = config.find("batch_size");
  REQUIRE(key != std::string::npos);
  config.replace(key, 10, "batch_sise");
  const ScratchFolder folder;
  folder.write("configs/digits.yaml", config);
  CHECK(run_in(folder, "ln -s '" STEPOP_SOURCE_DIR "/configs/data' configs/data\n"
                       "stepop -b configs/digits.yaml -t")
            .err == said);
}

TEST_CASE("every promise names tests that are there") {
  namespace fs = std::filesystem;
  const std::string tests = STEPOP_SOURCE_DIR "/tests/";
  const std::string makefile = read_bytes(STEPOP_SOURCE_DIR "/Makefile");
  const std::string section =
      section_of("tests/README.md", "Promises, and the tests that hold them");
  int named = 0;
  for (const std::string& row : lines_of(section.substr(section.find("|---|")))) {
    const std::string shown_by = row.substr(std::min(row.find(" | "), row.size()));
    for (std::string name : between(shown_by, "`", "`")) {
      CAPTURE(name);
      ++named;
      if (name.starts_with("make ")) {
        const std::string target = name.substr(5, name.find(' ', 5) - 5);
        CHECK(makefile.find("\n" + target + ": ") != std::string::npos);
      } else if (name.starts_with("build/stepop_bench ")) {
        CHECK(fs::exists(tests + "bench/" + name.substr(name.find(' ') + 1) + "_bench.cpp"));
      } else {
        if (name.starts_with("ctest -R ")) name = name.substr(9);
        CHECK((fs::exists(tests + name + "_test.cpp") || fs::is_directory(tests + name) ||
               fs::is_directory(STEPOP_SOURCE_DIR "/" + name + "/tests")));  // of Python
      }
    }
  }
  CHECK(named > 20);
}

/// What is no block of code: `[this](int x)` is no link.
std::string prose_of(const std::string& page) {
  std::string prose;
  bool is_code = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```")) is_code = !is_code;
    if (!is_code) prose += line + "\n";
  }
  return prose;
}

/// The anchors that GitHub makes of the headings of a page: small letters, spaces as hyphens, other
/// punctuation gone; a text that is there already gets -1, -2, ...
std::set<std::string> anchors_of(const std::string& page) {
  std::set<std::string> anchors;
  std::map<std::string, int> times;
  for (const std::string& line : lines_of(prose_of(page))) {
    if (!line.starts_with('#')) continue;
    std::string anchor;
    for (const char c : line.substr(std::min(line.find(' '), line.size() - 1) + 1)) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == ' ' || c == '-') anchor += '-';
      // A letter beyond ASCII stays.
      if (std::isalnum(byte) != 0 || c == '_' || byte >= 0x80) {
        anchor += static_cast<char>(std::tolower(byte));
      }
    }
    const int before = times[anchor]++;
    anchors.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
  }
  return anchors;
}

TEST_CASE("anchors are those of GitHub") {
  // As github.com shows them.
  CHECK(anchors_of("# `stepop data`: what is in it?\n## A -- b_c\n## Notes\n### Notes\n"
                   "```\n# a comment\n```\n## Gr\u00f6\u00dfe (v1.2)\n") ==
        std::set<std::string>{"stepop-data-what-is-in-it", "a----b_c", "notes", "notes-1",
                              "gr\u00f6\u00dfe-v12"});
}

TEST_CASE("every link of a README leads to a file, and to a heading of it") {
  namespace fs = std::filesystem;
  const fs::path root = STEPOP_SOURCE_DIR;
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  for (const char* folder :
       {"runtime", "eval_out", "models", "iterators", "configs", "tests", "cmake"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".md") pages.push_back(entry.path());
    }
  }
  int followed = 0;
  for (const auto& page : pages) {
    const std::string text = read_bytes(page.string());
    for (const char* conflict : {"\n<<<<<<< ", "\n=======\n", "\n>>>>>>> "}) {
      CHECK_MESSAGE(text.find(conflict) == std::string::npos, page.string());
    }
    for (const std::string& link : between(prose_of(text), "](", ")")) {
      if (link.starts_with("http")) continue;
      INFO(page.string(), ": ", link);
      ++followed;
      const size_t hash = link.find('#');
      const fs::path target =
          hash == 0 ? page : (page.parent_path() / link.substr(0, hash)).lexically_normal();
      CHECK(fs::exists(target));
      if (hash == std::string::npos) continue;
      CHECK(anchors_of(read_bytes(target.string())).contains(link.substr(hash + 1)));
    }
  }
  CHECK(followed > 100);
}

}  // namespace readme_test
}  // namespace stepop
