#include "runtime/tools/start/run_source.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/scratch_folder.h"

namespace stepop {
namespace run_source_test {

/// The callbacks of an evaluation by `-p RUN` of a run whose config has `functor`.
std::vector<std::string> callbacks(const std::string& functor, bool train) {
  const ScratchFolder folder;
  folder.write("run/configs/train_2026-11-21T10-00-00.yaml",
               "eval_hook: {eval_callbacks: {accuracy: accuracy}}\n" + functor);
  Arguments arguments;
  arguments.project = folder.path("run");
  arguments.train = train;
  RunSource source = find_source(arguments);
  const Config config = read_run_config(arguments, source).config;
  if (!config.has("eval_hook/eval_callbacks")) return {};
  return config.at("eval_hook/eval_callbacks").keys();
}

TEST_CASE("a config is resolved once for the same overrides") {
  const ScratchFolder folder;
  folder.write("base.yaml", "a: 1\nb: {a}\n");
  RunSource source{.base = {folder.path("base.yaml")}, .project = std::nullopt};
  CHECK(source.resolve({}).root.find("b")->describe() == "1");
  folder.write("base.yaml", "a: 7\n");  // another program writes it, after it was read
  CHECK(source.resolve({{"a", Value(int64_t{2})}}).root.find("b")->describe() == "2");
  const std::vector<Override> home = {{"home", Value("{env:STEPOP_RUN_SOURCE}")}};
  ::setenv("STEPOP_RUN_SOURCE", "first", 1);
  CHECK(source.resolve(home).root.find("home")->describe() == "\"first\"");
  ::setenv("STEPOP_RUN_SOURCE", "second", 1);
  CHECK(source.resolve(home).root.find("home")->describe() == "\"first\"");
  ::unsetenv("STEPOP_RUN_SOURCE");
  CHECK(source.resolve({}).root.find("b")->describe() == "1");
}

TEST_CASE("a functor takes the place of the iterator's callbacks, but not in a training") {
  using Names = std::vector<std::string>;
  CHECK((callbacks("", false) == Names{"accuracy"}));
  CHECK((callbacks("eval_functor: Predict\n", false) == Names{}));
  CHECK((callbacks("eval_functor: Predict\n", true) == Names{"accuracy"}));
  CHECK((callbacks("eval_functor: null\n", false) == Names{"accuracy"}));
}

}  // namespace run_source_test
}  // namespace stepop
