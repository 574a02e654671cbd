// Trainings on datasets that are made of others by the config, with the real binary.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/same_state.h"

namespace stepop {
namespace data_views_test {

/// A folder with the digits' data, and a config that trains on nine tenths of all of them.
class Views {
 public:
  Views() {
    std::filesystem::create_directories(folder_.path("conf"));
    std::filesystem::copy(STEPOP_SOURCE_DIR "/configs/data", folder_.path("conf/data"),
                          std::filesystem::copy_options::recursive);
    const std::string parts = R"({class: Subset, part: train,
      split: {parts: {train: 0.9, validation: 0.1}, groups: class}, dataset: {class: Concat, datasets: [
        {class: Idx, images: data/digits-train-images.idx.gz, labels: data/digits-train-labels.idx.gz},
        {class: Idx, images: data/digits-test-images.idx.gz, labels: data/digits-test-labels.idx.gz}]}})";
    write("plain.yaml", parts, "datasets/train/dataset");
    write("cached.yaml", "{class: Cached, folder: cache, dataset: " + parts + "}",
          "datasets/train/dataset/dataset");
  }

  const ScratchFolder& folder() const { return folder_; }

 private:
  void write(const std::string& name, const std::string& train, const std::string& part) const {
    folder_.write("conf/" + name,
                  fmt::format("datasets:\n"
                              "  train: !replace {{class: Augment, shift: 1, dataset: {}}}\n"
                              "  validation: !replace\n"
                              "    class: Subset\n"
                              "    part: validation\n"
                              "    split: \"{{{}/split}}\"\n"
                              "    dataset: \"{{{}/dataset}}\"\n",
                              train, part, part));
  }

  ScratchFolder folder_;
};

State state_of(const ScratchFolder& folder, const std::string& logs) {
  return load_checkpoint(folder.path(only_run(folder, logs)) + "/train/checkpoints/" +
                         checkpoint_name(46))
      .tensors;
}

TEST_CASE(
    "a training on views, with and without a cache, gives the same bits, and loads anywhere") {
  const Views views;
  const ScratchFolder& folder = views.folder();
  run_well(folder, "stepop -n a -b CONFIG conf/plain.yaml -t --num_steps 46 --n_data_processes 0");
  const std::string plain = only_run(folder);
  const State expected = state_after(folder, 46);
  std::filesystem::rename(folder.path("logs"), folder.path("plain"));
  for (const char* workers : {"2", "0"}) {
    run_well(folder, std::string("stepop -n a -b CONFIG conf/cached.yaml -t --num_steps 46 "
                                 "--n_data_processes ") +
                         workers);
    CHECK(differences(state_after(folder, 46), expected) == "");
    std::filesystem::remove_all(folder.path("logs"));
  }
  // Paths in a list are absolute in the saved config.
  run_well(folder, "cd / && stepop -p '" + folder.path("plain") + plain.substr(4) + "'");
}

TEST_CASE("two trainings that fill one cache, one of them killed, end as without a cache") {
  const Views views;
  const ScratchFolder& folder = views.folder();
  run_well(folder, "stepop -n a -b CONFIG conf/plain.yaml -t --num_steps 46");
  const State expected = state_after(folder, 46);
  const std::string start = "stepop -n a -b CONFIG ../conf/cached.yaml -t --num_steps 46 ";
  run_well(folder, std::string(kUntil) +
                       "mkdir one two; (cd one; exec '" STEPOP_BINARY_DIR "/stepop' " +
                       start.substr(6) + ") & (cd two; " + start +
                       "--ckpt_freq 5 > out) & "
                       "until_ok 'test -s conf/cache/*.examples'; sleep 0.0$((RANDOM % 10)); "
                       "kill -9 %1 2> /dev/null; wait %1 2> /dev/null; wait %2");
  CHECK(differences(state_of(folder, "two/logs"), expected) == "");
  std::filesystem::remove_all(folder.path("logs"));
  run_well(folder, start.substr(0, start.find("../")) + "conf/cached.yaml -t --num_steps 46");
  CHECK(differences(state_after(folder, 46), expected) == "");
}

}  // namespace data_views_test
}  // namespace stepop
