// Every iterator of the tree in two processes by the real program.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>

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

}  // namespace processes_everywhere_test
}  // namespace stepop
