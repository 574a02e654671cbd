#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/programs/python.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/dataset.h"
#include "runtime/data/python/python_object.h"
#include "runtime/data/python/python_server.h"
#include "runtime/data/python/python_stream.h"
#include "runtime/data/python/python_worker.h"
#include "runtime/data/stream_dataset.h"

namespace stepop {
namespace {

std::string read_keys(const Config& params) {
  if (!params.has("keys")) return "null";
  const auto keys = params.get<Value>("keys");
  if (!keys.is_list() && !keys.is_map()) {
    throw params.error("keys",
                       "expected the names of the parts of an example, [image, class], or a map "
                       "to its own names, {image: pixels}; found " +
                           keys.describe());
  }
  return to_json(keys);
}

struct PythonParams {
  PythonSetup setup;
  std::optional<std::string> python;
  bool has_unknown = false;
  double timeout = 0;
  std::string resume = "state";

  void declare(Parameters& p) {
    const Config* config = p.describe_required(
        "object", "text", "the class, or a function that makes the dataset: my_data.py:Train");
    p.describe({"kwargs", "{}", "the arguments of the class or function", false, {.kind = "map"}});
    p.describe_optional("keys", "list of text | map",
                        "names for the parts of an example, [image, class], or {image: its own "
                        "name}; by default its own names");
    p.describe_optional("collate_fn", "text",
                        "makes a batch of examples: my_data.py:collate; by default the dataset's "
                        "own collate_fn, else they are stacked");
    p.describe({"folder", ".", "the current folder of Python", true, {.kind = "path"}});
    p.add("python", python, "the Python, by default that of the active environment");
    add_unknown_classes(p, has_unknown,
                        "a class that the dataset names and the training does not have is an "
                        "error; id: it has the number behind the last class");
    p.add("timeout", timeout, "seconds that an example may take; 0: any time", at_least(0));
    p.add("resume", resume,
          "of an iterable dataset: its state_dict brings a resume to its place; skip: all earlier "
          "examples of the pass are read again",
          one_of({"state", "skip"}));
    p.describe({"shuffle",
                "false",
                "of an iterable dataset: {buffer: 1000} draws from so many examples in memory",
                false,
                {.kind = "bool | map"}});
    p.describe({"examples",
                "null",
                "of an iterable dataset: how many there are in a pass",
                false,
                {.kind = "int", .range = at_least(1)}});
    if (config != nullptr) read_setup(*config);
  }

 private:
  void read_setup(const Config& config) {
    setup.place = config.path();
    setup.python = find_user_python(python.value_or(""));
    config.set_default("folder", Value(std::filesystem::current_path().string()));
    setup.folder = get_folder(config, "folder");
    setup.object = read_python_object(config, "object", "Train");
    setup.kwargs = read_python_kwargs(config);
    setup.keys = read_keys(config);
    if (config.has("collate_fn")) {
      setup.collate_fn = read_python_object(config, "collate_fn", "Train");
    }
    setup.resume = resume;
  }
};

/// A map-style dataset of Python. Each thread that asks for examples has a worker process for the
/// time of its request.
class PythonDataset : public Dataset {
 public:
  PythonDataset(std::shared_ptr<PythonServer> server, std::string object, std::string python_choice,
                ClassRenumberings classes, double timeout)
      : server_(std::move(server)),
        object_(std::move(object)),
        python_choice_(std::move(python_choice)),
        classes_(std::move(classes)),
        timeout_(timeout) {}

  int64_t size() const override { return server_->facts().size; }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    const uint64_t seed = random();
    const Batch batch = load({&index, 1}, {&seed, 1});
    Example example;
    for (const auto& [key, tensor] : batch.tensors()) {
      example.tensors.set(key, tensor.select(0, 0));
    }
    for (const auto& [key, texts] : batch.texts()) example.texts.set(key, texts.front());
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    std::vector<uint64_t> seeds;
    for (size_t i = 0; i < indices.size(); ++i) {
      check_index(indices[i], size());
      seeds.push_back(randoms[i]());
    }
    try {
      return load(indices, seeds);
    } catch (const PythonError& error) {
      if (error.index() < 0) throw;
      throw Error(fmt::format("example {}: {}", error.index(), error.what()));
    }
  }

  std::string notice() const override {
    return joined_notices(
        {fmt::format("{} ({}), in processes of their own", object_, server_->facts().versions),
         python_choice_, classes_.notice()});
  }

 private:
  Batch load(std::span<const int64_t> indices, std::span<const uint64_t> seeds) const {
    std::unique_ptr<PythonWorker> worker = take_worker();
    const auto give_back = [&] {
      if (!worker->is_usable()) return;
      const std::lock_guard lock(mutex_);
      idle_.push_back(std::move(worker));
    };
    Batch batch;
    try {
      batch = worker->load(indices, seeds);
    } catch (...) {
      give_back();
      throw;
    }
    give_back();
    classes_.apply(batch);
    return batch;
  }

  std::unique_ptr<PythonWorker> take_worker() const {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto worker = std::move(idle_.back());
        idle_.pop_back();
        return worker;
      }
    }
    return std::make_unique<PythonWorker>(*server_, timeout_, InterruptScope::current());
  }

  std::shared_ptr<PythonServer> server_;
  std::string object_;
  std::string python_choice_;  ///< See `python_choice`.
  ClassRenumberings classes_;
  double timeout_;
  mutable std::mutex mutex_;  ///< Guards `idle_`.
  mutable std::vector<std::unique_ptr<PythonWorker>> idle_;
};

/// A map-style dataset, or the stream of an iterable one.
std::unique_ptr<Dataset> make_dataset(const Config& config) {
  const auto params = read_parameters<PythonParams>(config);
  const double timeout = params.timeout;
  const auto server = std::make_shared<PythonServer>(params.setup, InterruptScope::current());
  const auto object = config.get<std::string>("object");
  ClassRenumberings classes(config, server->facts().classes, object);
  if (!server->facts().is_iterable) {
    return std::make_unique<PythonDataset>(
        server, object, python_choice(params.python.value_or("")), std::move(classes), timeout);
  }
  config.set_default("shuffle", Value(false));
  return std::make_unique<StreamDataset>(config, [server, classes, timeout](const Config&) {
    return std::make_unique<PythonStream>(server, classes, timeout);
  });
}

STEPOP_REGISTER(datasets(), "Python", make_dataset,
                {"Any dataset of PyTorch, in Python, in worker processes beside the training.",
                 parameters_of<PythonParams>()});

}  // namespace
}  // namespace stepop
