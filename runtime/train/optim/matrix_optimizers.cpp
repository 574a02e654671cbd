// Optimizers to which a matrix is more than its numbers.
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/optim/optimizer.h"

namespace stepop {
namespace {

/// Muon (Jordan et al. 2024), as torch.optim.Muon, for parameters of two or more dimensions; as in
/// the authors' code, kernels of convolutions are matrices [out, in * height * width]. AdamW
/// updates all other parameters, and those with `adapt: false`.
class Muon : public Optimizer {
 public:
  struct Params : OptimizerParams {
    double momentum = 0.95;
    bool nesterov = true;
    std::array<double, 3> ns_coefficients = {3.4445, -4.775, 2.0315};
    double eps = 1e-7;
    int64_t ns_steps = 5;
    std::string adjust_lr_fn = "original";
    double adamw_lr = 3e-4;  ///< A number or a schedule, which Optimizer reads.
    std::array<double, 2> adamw_betas = {0.9, 0.999};
    double adamw_eps = 1e-8;

    Params() { weight_decay = 0.1; }
    void declare(Parameters& p) {
      p.add("momentum", momentum, "how much of the average gradient is kept", at_least(0));
      p.add("nesterov", nesterov, "looks ahead along the momentum");
      p.add("ns_coefficients", ns_coefficients, "of the iteration of Newton and Schulz");
      p.add("eps", eps, "the norm of a change counts as this at least", at_least(0));
      p.add("ns_steps", ns_steps, "iterations, below 100", at_least(0).at_most(99));
      p.add("adjust_lr_fn", adjust_lr_fn,
            "original: lr is multiplied by the root of max(1, rows / columns); match_rms_adamw: by "
            "0.2 times the root of the larger side, for the lr of AdamW",
            one_of({"original", "match_rms_adamw"}));
      p.describe({"adamw_lr",
                  fmt::format("{}", adamw_lr),
                  "of AdamW, a number or a schedule, also in one of groups",
                  false,
                  {.kind = "schedule"}});
      p.add("adamw_betas", adamw_betas, "betas of AdamW", at_least(0).below(1));
      p.add("adamw_eps", adamw_eps, "eps of AdamW", at_least(0));
      p.describe({"adapt",
                  "for 2 or more dimensions",
                  "false, in one of groups: AdamW, as for embeddings and the last layer",
                  false,
                  {.kind = "bool"}});
    }
  };

  Muon(const Params& params, const Config& config, NamedParameters parameters)
      : Optimizer(config, std::move(parameters),
                  {.lr = params.lr,
                   .weight_decay = params.weight_decay,
                   .slots = {"momentum_buffer", "exp_avg", "exp_avg_sq"},
                   .reads_adapt = true,
                   .adamw_lr = params.adamw_lr}),
        p_(params) {}

 private:
  static bool is_matrix(const Bucket& bucket, size_t i) {
    return bucket.parameters[i].dim() > 1 && bucket.adapt.value_or(true);
  }

  at::Tensor make_slot(const Bucket& bucket, size_t slot, size_t i) const override {
    const bool is_of_muon = slot == 0;
    return is_of_muon == is_matrix(bucket, i) ? Optimizer::make_slot(bucket, slot, i)
                                              : at::Tensor();
  }

  void update(const Bucket& bucket, double lr, double weight_decay) override {
    std::vector<at::Tensor> parameters, gradients, averages, squares, steps;
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      if (is_matrix(bucket, i)) {
        update_matrix(bucket, i, lr, weight_decay);
        continue;
      }
      parameters.push_back(bucket.parameters[i]);
      gradients.push_back(bucket.gradients[i]);
      averages.push_back(bucket.slots[1][i]);
      squares.push_back(bucket.slots[2][i]);
      steps.push_back(bucket.steps[i]);
    }
    if (parameters.empty()) return;
    at::_fused_adamw_(parameters, gradients, averages, squares, {}, steps, bucket.adamw_lr,
                      p_.adamw_betas[0], p_.adamw_betas[1], weight_decay, p_.adamw_eps,
                      /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{}, bucket.found_inf);
  }

  void update_matrix(const Bucket& bucket, size_t i, double lr, double weight_decay) const {
    const at::Tensor& parameter = bucket.parameters[i];
    const at::Tensor& gradient = bucket.gradients[i];
    const at::Tensor momentum = bucket.slots[0][i].lerp(gradient, 1 - p_.momentum);
    const at::Tensor change =
        (p_.nesterov ? gradient.lerp(momentum, p_.momentum) : momentum).flatten(1);
    const auto rows = static_cast<double>(change.size(0));
    const auto columns = static_cast<double>(change.size(1));
    const double factor = p_.adjust_lr_fn == "match_rms_adamw"
                              ? 0.2 * std::sqrt(std::max(rows, columns))
                              : std::sqrt(std::max(1.0, rows / columns));
    at::Tensor next = parameter.mul(1 - lr * weight_decay);
    next.add_(orthogonal(change).reshape(parameter.sizes()), -lr * factor);
    assign(bucket, bucket.slots[0][i], momentum);
    assign(bucket, parameter, next);
  }

  /// About U V^T of the decomposition U S V^T of a matrix, by the iteration of Newton and Schulz in
  /// bfloat16.
  at::Tensor orthogonal(const at::Tensor& matrix) const {
    const bool is_tall = matrix.size(0) > matrix.size(1);
    const auto [a, b, c] = p_.ns_coefficients;
    at::Tensor result = matrix.to(at::kBFloat16);
    if (is_tall) result = result.t();
    result = result.div(result.norm().clamp_min(p_.eps));
    for (int64_t step = 0; step < p_.ns_steps; ++step) {
      const at::Tensor gram = result.mm(result.t());
      result = at::addmm(result, at::addmm(gram, gram, gram, b, c), result, a);
    }
    return is_tall ? result.t() : result;
  }

  Params p_;
};

STEPOP_REGISTER_OPTIMIZER(
    Muon,
    {"Muon (Jordan et al. 2024), as torch.optim.Muon: orthogonal changes for matrices and kernels "
     "of convolutions, AdamW for other parameters."});

/// The distance from 1 to the next number of a type.
double epsilon_of(at::ScalarType type) {
  if (type == at::kDouble) return std::numeric_limits<double>::epsilon();
  if (type == at::kBFloat16) return std::numeric_limits<c10::BFloat16>::epsilon();
  if (type == at::kHalf) return std::numeric_limits<c10::Half>::epsilon();
  return std::numeric_limits<float>::epsilon();
}

/// Adafactor (Shazeer and Stern 2018), as torch.optim.Adafactor: of the average squares of a matrix
/// only the means of rows and columns are kept. More than two dimensions are a batch of matrices.
class Adafactor : public Optimizer {
 public:
  struct Params : OptimizerParams {
    double beta2_decay = -0.8;
    std::optional<double> eps1;  ///< By default that of the parameter's type.
    double eps2 = 1e-3;
    double d = 1;

    Params() { lr = 1e-2; }
    void declare(Parameters& p) {
      p.add("beta2_decay", beta2_decay,
            "the average square takes in updates ^ beta2_decay of the last", Range().at_most(0));
      const Config* config = p.describe(
          {"eps",
           fmt::format("[null, {}]", eps2),
           "the smallest root of an average square, null for the precision of the type; the "
           "smallest root mean square that a parameter counts as",
           false,
           {.kind = "list of number"}});
      if (config != nullptr) read_eps(*config);
      p.add("d", d, "changes are scaled down to this root mean square", at_least(1));
    }

    void read_eps(const Config& config) {
      if (!config.has("eps")) return;
      const Value& eps = *config.peek("eps");
      if (!eps.is_list() || eps.as_list().size() != 2) {
        throw config.error(
            "eps",
            fmt::format("expected two numbers such as [1e-30, 1e-3], found {}", eps.describe()));
      }
      if (config.has("eps/0")) eps1 = read_non_negative(config, "eps/0", 0);
      eps2 = read_non_negative(config, "eps/1", eps2);
    }
  };

  Adafactor(const Params& params, const Config& config, NamedParameters parameters)
      : Optimizer(config, std::move(parameters),
                  {.lr = params.lr,
                   .weight_decay = params.weight_decay,
                   .slots = {"row_var", "col_var", "variance"}}),
        p_(params) {}

 private:
  at::Tensor make_slot(const Bucket& bucket, size_t slot, size_t i) const override {
    const at::Tensor& parameter = bucket.parameters[i];
    const bool is_of_vectors = slot == 2;
    if (is_of_vectors == (parameter.dim() > 1)) return {};
    if (is_of_vectors) return Optimizer::make_slot(bucket, slot, i);
    std::vector<int64_t> sizes = parameter.sizes().vec();
    sizes.at(sizes.size() - (slot == 0 ? 1 : 2)) = 1;
    return at::zeros(sizes, parameter.options().requires_grad(false));
  }

  void update(const Bucket& bucket, double lr, double weight_decay) override {
    for (size_t i = 0; i < bucket.parameters.size(); ++i) update_one(bucket, i, lr, weight_decay);
  }

  void update_one(const Bucket& bucket, size_t i, double lr, double weight_decay) const {
    const at::Tensor& parameter = bucket.parameters[i];
    const at::Tensor& gradient = bucket.gradients[i];
    const double eps1 = p_.eps1.value_or(epsilon_of(parameter.scalar_type()));
    const double root_of_size = std::sqrt(static_cast<double>(parameter.numel()));
    const at::Tensor step = bucket.steps[i].clamp_min(1);  // 0 before an update that is left out
    const at::Tensor weight = step.pow(p_.beta2_decay).to(parameter.scalar_type());
    const at::Tensor rate =
        parameter.norm().div(root_of_size).clamp_min(p_.eps2).mul(step.rsqrt().clamp_max(lr));

    at::Tensor squares;  // an estimate of the average
    if (parameter.dim() > 1) {
      const auto averaged = [&](const at::Tensor& average, int64_t dim) {
        const at::Tensor norm = at::linalg_vector_norm(gradient, 2, dim, /*keepdim=*/true);
        return average.lerp(norm.square().div_(gradient.size(dim)), weight);
      };
      const at::Tensor rows = averaged(bucket.slots[0][i], -1);
      const at::Tensor columns = averaged(bucket.slots[1][i], -2);
      squares = rows.mul(columns).div_(rows.mean(-2, /*keepdim=*/true).clamp_min_(eps1));
      assign(bucket, bucket.slots[0][i], rows);
      assign(bucket, bucket.slots[1][i], columns);
    } else {
      squares = bucket.slots[2][i].lerp(gradient.square(), weight);
      assign(bucket, bucket.slots[2][i], squares);
    }
    const at::Tensor change = squares.clamp_min_(eps1 * eps1).rsqrt_().mul_(gradient);
    const at::Tensor excess = change.norm().div(root_of_size * p_.d).clamp_min(1);
    const at::Tensor decayed = weight_decay == 0 ? parameter : parameter.mul(1 - lr * weight_decay);
    assign(bucket, parameter, decayed.sub(change.mul_(rate.div(excess))));
  }

  Params p_;
};

STEPOP_REGISTER_OPTIMIZER(
    Adafactor,
    {"Adafactor (Shazeer and Stern 2018), as torch.optim.Adafactor: for matrices it keeps a number "
     "for each row and column."});

}  // namespace
}  // namespace stepop
