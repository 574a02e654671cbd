#include "runtime/trial/module_table.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <set>

#include "runtime/base/number_text.h"
#include "runtime/base/text_table.h"

namespace stepop {
namespace {

/// What is in a module and below it.
struct Contents {
  int64_t trainable = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;
  std::set<const void*> seen;

  void add(const torch::nn::Module& module) {
    for (const auto& parameter : module.parameters()) add(parameter, true);
    for (const auto& buffer : module.buffers()) add(buffer, false);
  }

 private:
  void add(const at::Tensor& tensor, bool is_parameter) {
    if (!tensor.defined() || !seen.insert(tensor.unsafeGetTensorImpl()).second) return;
    bytes += static_cast<int64_t>(tensor.nbytes());
    if (!is_parameter) return;
    parameters += tensor.numel();
    if (tensor.requires_grad()) trainable += tensor.numel();
  }
};

/// `torch::nn::Conv2dImpl` is known as Conv2d.
std::string class_name(const torch::nn::Module& module) {
  std::string name = module.name();
  name.resize(std::min(name.find('<'), name.size()));
  const size_t colons = name.rfind("::");
  if (colons != std::string::npos) name.erase(0, colons + 2);
  if (name.size() > 4 && name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

void add_row(TextTable& table, const std::string& name, const std::string& class_name,
             const Contents& contents) {
  table.add({name, class_name, with_thousands(contents.trainable),
             with_thousands(contents.parameters), size_text(static_cast<double>(contents.bytes))});
}

void add_rows(TextTable& table, const std::string& name, const std::string& class_of_it,
              const torch::nn::Module& module, size_t depth) {
  Contents contents;
  contents.add(module);
  const bool is_empty = contents.seen.empty();
  if (depth > 0 && is_empty) return;
  add_row(table, std::string(2 * depth, ' ') + name, class_of_it, contents);
  for (const auto& child : module.named_children()) {
    add_rows(table, child.key(), class_name(*child.value()), *child.value(), depth + 1);
  }
}

}  // namespace

std::string module_table(const Networks& networks) {
  if (networks.empty()) return "";
  TextTable table(
      {{"network"}, {"class"}, {"trainable", true}, {"parameters", true}, {"memory", true}});
  const std::vector<std::string> names = networks.names();
  const std::vector<std::string> classes = networks.class_names();
  Contents all;
  for (size_t i = 0; i < names.size(); ++i) {
    const torch::nn::Module& network = *networks.get(names[i]);
    add_rows(table, names[i], classes[i], network, 0);
    all.add(network);
  }
  if (names.size() > 1) add_row(table, "all", "", all);
  return table.text();
}

}  // namespace stepop
