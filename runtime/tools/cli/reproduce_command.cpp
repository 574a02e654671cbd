// `stepop reproduce RUN`: the commands that make a run again, and what stands in the way.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/tools/cli/commands.h"
#include "runtime/tools/cli/reproduction.h"

namespace stepop {

int reproduce_command(const Arguments& arguments) {
  refuse_config(arguments, "the folder of a run");
  const RunDirectory run = open_run(arguments, arguments.operands.front());
  const Reproduction plan = plan_reproduction(run);
  if (!arguments.json) {
    fmt::print("{}", plan.script());
    return 0;
  }
  using Json = nlohmann::ordered_json;
  Json parts = Json::array();
  for (const auto& [time, lines] : plan.parts) parts.push_back({{"time", time}, {"lines", lines}});
  const Json json = {{"run", plan.run}, {"problems", plan.problems}, {"parts", parts}};
  fmt::print("{}\n", json.dump(1, ' ', false, Json::error_handler_t::replace));
  return 0;
}

}  // namespace stepop
