#include <fmt/format.h>

#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/exported/exported_programs.h"
#include "runtime/core/base/error.h"
#include "runtime/core/config/config.h"
#include "runtime/data/dataset.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/network_alternatives.h"
#include "runtime/train/networks/network_layers.h"
#include "runtime/train/networks/network_ports.h"

namespace stepop {
namespace {

/// Runs `call`, which reads a file; what it throws becomes an error of the config's `path`.
template <class Call>
auto with_path(const Config& params, const std::string& path, const Call& call) {
  const auto damaged = [&](const std::string& why) {
    return params.error("path", fmt::format("{}: is damaged, or of another version of "
                                            "torch.export: {}",
                                            path, why));
  };
  try {
    return call();
  } catch (const Error& error) {
    const std::string text = error.what();
    throw params.error("path", text.starts_with(path) ? text : path + ": " + text);
  } catch (const nlohmann::json::exception& error) {
    throw damaged(error_text(error));
  } catch (const std::exception& error) {  // LibTorch's, about names of parameters
    throw damaged(error_text(error));
  }
}

struct ExportedParams {
  Path path;
  bool compiled = false;

  void declare(Parameters& p) {
    p.require("path", path, "the file that python -m stepop.eval.export wrote, net.pt2");
    p.add("compiled", compiled,
          "run the passes that its --compile wrote, which are native code, for this processor");
  }
};

/// A module that Python exported with torch.export, from one tensor to one tensor.
class Exported final : public Network, public NetworkAlternatives, public NetworkLayers {
 public:
  explicit Exported(const ExportedContent& content) : programs_(content, *this) {}

  ExportedPrograms& programs() { return programs_; }

  at::Tensor forward(const at::Tensor& input) override {
    if (is_watched()) call_begins({input});
    return programs_.run(*this, {input}, is_training()).front();
  }
  std::string warning() const override { return programs_.warning(); }
  OrderedMap<Value> alternatives() const override { return programs_.alternatives(); }
  void end_at(const std::string& path) override { programs_.end_at(path); }

 private:
  ExportedPrograms programs_;
};

/// The same with several inputs or outputs.
class ExportedMulti final : public MultiNetwork, public NetworkPorts, public NetworkAlternatives {
 public:
  explicit ExportedMulti(const ExportedContent& content) : programs_(content, *this) {}

  ExportedPrograms& programs() { return programs_; }

  std::vector<at::Tensor> forward_all(const std::vector<at::Tensor>& inputs) override {
    call_begins(inputs);
    return programs_.run(*this, inputs, is_training());
  }
  std::vector<std::string> input_names() const override { return programs_.input_names(); }
  std::string ports() const override { return programs_.ports(); }
  std::string warning() const override { return programs_.warning(); }
  OrderedMap<Value> alternatives() const override { return programs_.alternatives(); }

 private:
  ExportedPrograms programs_;
};

template <class Class>
std::shared_ptr<torch::nn::Module> make_network(const ExportedContent& content, bool compiled) {
  auto network = std::make_shared<Class>(content);
  if (compiled) network->programs().use_compiled(content);
  return network;
}

std::shared_ptr<torch::nn::Module> make_exported(const Config& config) {
  const bool compiled = read_parameters<ExportedParams>(config).compiled;
  const std::string path = get_file(config, "path");
  const auto content =
      with_path(config, path, [&] { return read_exported_content(path, compiled); });
  if (compiled && !content.file.compiled) {
    throw config.error("compiled",
                       fmt::format("{} has no compiled passes: {}", path, compile_command(path)));
  }
  return with_path(config, path, [&] {
    return content.is_from_one_to_one() ? make_network<Exported>(content, compiled)
                                        : make_network<ExportedMulti>(content, compiled);
  });
}

STEPOP_REGISTER(
    models(), "Exported", make_exported,
    {"A module from Python, of torch.export: ATen's operations, trained and evaluated here.",
     parameters_of<ExportedParams>()});

}  // namespace
}  // namespace stepop
