// Every iterator of the tree, and every template, in two processes by the real program.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/code_run.h"
#include "tests/cli/digits_run.h"
#include "tests/cli/torture.h"
#include "tests/same_state.h"

namespace stepop {
namespace processes_everywhere_test {

namespace fs = std::filesystem;

bool has_failure_log(const ScratchFolder& folder) {
  return fs::exists(folder.path(only_run(folder)) + "/train/rank-1.log");
}

TEST_CASE("every iterator trains in two processes, and resumes to the same bits") {
  const std::map<std::string, std::function<Torture()>> trainings = {
      {"VUNet", torture_of_vunet},
      {"pix2pix", torture_of_pix2pix},
      {"a GAN by its config", torture_of_toy_srgan},
      {"rectified flow", torture_of_flow},
      {"autoencoder", torture_of_autoencoder},
  };
  for (const auto& [name, training] : trainings) {
    CAPTURE(name);
    const Torture torture = training();
    std::string words = "stepop -n a -b";
    for (const auto& config : torture.configs) {
      words += " '" STEPOP_SOURCE_DIR "/configs/" + config + "'";
    }
    words += " on_top.yaml -t --processes 2";
    const auto train = [&](const ScratchFolder& folder, const std::string& more) {
      folder.write("on_top.yaml", torture.yaml);
      const CommandResult result =
          run_in(folder, fmt::format("export OMP_NUM_THREADS=1; {} {}", words, more));
      CAPTURE(result.err);
      REQUIRE(result.exit_code == 0);
      CHECK(!has_failure_log(folder));
      return result;
    };
    const ScratchFolder whole;
    const CommandResult result = train(whole, "");
    CHECK(contains(result.out, "rank 1 on "));
    CHECK(!contains(result.out, "nan"));
    const ScratchFolder parts;
    train(parts, fmt::format("--stop_at {}", torture.steps / 2 + 1));
    const CommandResult resumed = run_in(
        parts,
        fmt::format("export OMP_NUM_THREADS=1; stepop -p {} -t --stop_at null", only_run(parts)));
    CAPTURE(resumed.err);
    REQUIRE(resumed.exit_code == 0);
    CHECK(contains(resumed.out, "rank 1 on "));
    CHECK(differences(state_after(parts, torture.steps), state_after(whole, torture.steps)) == "");
  }
}

/// The numbers of the last line of the metrics that the processes must agree on.
double last_of(const ScratchFolder& folder, const std::string& scalar) {
  const auto lines = lines_of(read_bytes(folder.path(only_run(folder)) + "/train/metrics.jsonl"));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto row = nlohmann::json::parse(*line);
    if (row.contains(scalar)) return row.at(scalar).get<double>();
  }
  return std::nan("");
}

TEST_CASE("every template trains in two processes as in one") {
  struct Template {
    std::string kind;
    std::string scalar;
    std::string words;
    double tolerance;  ///< Larger where steps draw random numbers.
  };
  const std::string small =
      "--datasets/train/size 128 --datasets/validation/size 32 --batch_size 16";
  const std::vector<Template> templates = {
      {"classifier", "validation/log_op/loss", small, 1e-3},
      {"regression", "validation/log_op/mse", small, 1e-3},
      {"autoencoder", "validation/log_op/mse", small, 1e-3},
      {"loss_model", "validation/log_op/loss", small + " --ema/decay/update_after_step 0", 1e-3},
      {"gan", "train/train_op/discriminator/loss", small, 0.5},
      {"table", "validation/log_op/mse", "", 1e-3},
      {"language_model", "validation/log_op/loss",
       "--model/heads 2 --model/layers 1 --batch_size 16 --sample_length 40", 0.3},
  };
  const ScratchFolder cache;
  for (const auto& [kind, scalar, words, tolerance] : templates) {
    CAPTURE(kind);
    double alone = 0;
    for (const int processes : {1, 2}) {
      CAPTURE(processes);
      const ScratchFolder folder;
      make_new(folder, "my_thing", kind);
      const CommandResult result = run_in(
          folder, fmt::format("export STEPOP_CACHE='{}' OMP_NUM_THREADS=1; stepop -n x -b "
                              "my_thing.yaml -t --num_steps 12 --log_freq 4 --n_data_processes 0 "
                              "--processes {} {}",
                              cache.path(), processes, words));
      CAPTURE(result.err);
      REQUIRE(result.exit_code == 0);
      CHECK(result.err == (processes == 1 ? "compiling my_thing.cpp\n" : ""));
      CHECK(!has_failure_log(folder));
      const double loss = last_of(folder, scalar);
      CAPTURE(loss);
      CAPTURE(alone);
      if (processes == 1) alone = loss;
      CHECK(std::abs(loss - alone) <= tolerance * (1 + std::abs(alone)));
    }
  }
}

}  // namespace processes_everywhere_test
}  // namespace stepop
