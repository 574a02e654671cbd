#include "runtime/train/checks/callback_names.h"

#include <algorithm>
#include <numeric>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "runtime/core/base/error.h"
#include "runtime/core/config/references.h"
#include "runtime/core/system/temporary_folder.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/step/random_fork.h"

namespace stepop {
namespace {

CallbackResults call_over(const Context& context, const EvaluatedBatch& batch,
                          const EvaluationCallbacks::Wanted& wanted) {
  const TemporaryFolder folder("stepop-names");
  const std::string path = folder / "outputs.h5";
  const Value config = config_of_evaluation(*context.config.root().peek(), batch.evaluation.name);
  // Some numbers, such as r2, need two rows; which examples they are does not matter for names.
  const int64_t times = batch.rows == 1 ? 2 : 1;
  {
    EvalWriter writer(path, batch.rows * times,
                      {{"global_step", int64_t{0}},
                       {"split", batch.evaluation.op.split},
                       {"config", to_yaml(escape_references(config))},
                       {"config_json", to_json(config)}});
    for (int64_t time = 0; time < times; ++time) {
      std::vector<int64_t> indices(static_cast<size_t>(batch.rows));
      std::iota(indices.begin(), indices.end(), time * batch.rows);
      writer.write(batch.outputs, indices);
    }
    writer.finish();
  }
  const EvalFile file(path, {}, EvalOrigin::kOwn);
  return EvaluationCallbacks(context.config, batch.evaluation.place + "/eval_callbacks")
      .call(folder.path(), context.splits.dataset(batch.evaluation.op.split), file, wanted);
}

}  // namespace

std::vector<CallbackNumbers> numbers_of_callbacks(const Context& context,
                                                  const EvaluatedBatch& batch,
                                                  const std::vector<std::string>& asked,
                                                  bool with_all) {
  std::vector<CallbackNumbers> found;
  const std::string prefix = batch.evaluation.prefix() + "/";
  const auto is_asked = [&](const std::string& name) {
    return std::ranges::any_of(
        asked, [&](const std::string& metric) { return metric.starts_with(prefix + name + "/"); });
  };
  const RandomFork fork(context.seed, context.device);
  try {
    const CallbackResults results =
        call_over(context, batch, [&](const std::string& name, EvaluationCallbacks::Cost cost) {
          using enum EvaluationCallbacks::Cost;
          return cost != kScript && (is_asked(name) || (with_all && cost == kSmall));
        });
    for (const auto& [name, logs] : results.logs) {
      CallbackNumbers numbers{prefix + name, {}};
      for (const auto& [key, value] : logs.scalars) {
        numbers.names.push_back(numbers.place + "/" + key);
      }
      found.push_back(std::move(numbers));
    }
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception&) {  // the names stay unknown until the first evaluation
  }
  return found;
}

}  // namespace stepop
