// `stepop reproduce RUN`: the commands that repeat a run, and the obstacles.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/base/json_text.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/reproduce/reproduction.h"

namespace stepop {
namespace {

struct ReproduceFlags {
  bool json = false;

  void add_to(Flags& flags) {
    flags.add("json", json, "the problems and the lines as JSON, for programs");
  }
};

int reproduce_command(const Arguments& arguments, const ReproduceFlags& own) {
  const RunDirectory run = open_run(arguments, arguments.operands.front());
  const Reproduction plan = plan_reproduction(run);
  if (!own.json) {
    fmt::print("{}", plan.script());
    return 0;
  }
  using Json = nlohmann::ordered_json;
  Json parts = Json::array();
  for (const auto& [time, lines] : plan.parts) parts.push_back({{"time", time}, {"lines", lines}});
  const Json json = {{"run", plan.run}, {"problems", plan.problems}, {"parts", parts}};
  fmt::print("{}\n", write_json(json, 1));
  return 0;
}

STEPOP_REGISTER_COMMAND(
    reproduce_command, ReproduceFlags,
    {.name = "reproduce",
     .group = CommandGroup::kOneRun,
     .operands = "logs/<time>_<name> [--json]",
     .fewest = 1,
     .most = 1,
     .about = "the commands that make a run again, as a script, with what of it is not as it was",
     .takes = "project",
     .example = "stepop reproduce logs/<time>_digits | bash"});

}  // namespace

}  // namespace stepop
