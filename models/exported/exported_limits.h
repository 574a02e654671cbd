#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "models/exported/exported_graph.h"
#include "models/exported/size_condition.h"

namespace stepop {

/// For which sizes of its inputs a program of torch.export holds: its `guards_code`, such as
/// `L['image'].size()[3] <= 40` where code has another branch for larger images, and its
/// `range_constraints`, as `torch.export.Dim("width", max=40)` gives them.
class ExportedLimits {
 public:
  ExportedLimits() = default;
  /// `ports` are the graph's inputs. Throws nlohmann's exceptions for a damaged file.
  ExportedLimits(const nlohmann::json& model, const std::vector<ExportedPort>& ports);

  /// Throws Error with the limit that the sizes of the network's inputs break. Each combination of
  /// sizes is computed once.
  void check(const std::vector<at::Tensor>& inputs);

  /// Limits that are not checked, as their form is not known, in the file's own words.
  const std::vector<std::string>& unread() const { return unread_; }

 private:
  struct Limit {
    std::string text;  ///< `image.size()[3] <= 40`
    SizeCondition condition;
  };

  void add(const std::string& code);

  std::vector<std::string> names_;  ///< Of the inputs.
  std::vector<Limit> limits_;
  std::vector<std::string> unread_;
  std::vector<int64_t> last_;             ///< The sizes of the last inputs that fit.
  std::set<std::vector<int64_t>> known_;  ///< All that fit.
};

}  // namespace stepop
