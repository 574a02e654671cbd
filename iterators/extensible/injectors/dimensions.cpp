// Injectors that split and join dimensions.
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "iterators/extensible/step/host_values.h"
#include "iterators/extensible/step/injector.h"
#include "iterators/extensible/step/inner.h"
#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {
namespace {

/// Runs another injector on each element of dimension 1.
class ForEach : public Injector {
 public:
  struct Params : InOut {
    std::string subtype;
    bool aslist = false;

    void declare(Parameters& p) {
      p.require("subtype", subtype, "the other injector, whose options are given beside it");
      InOut::declare(p).add("aslist", aslist, "several tensors, and not one");
    }
  };

  ForEach(const Params& params, const Config& config, Ports& ports)
      : in_(ports.reads(params.in)), out_(ports.writes(params.out)), is_list_(params.aslist) {
    const std::string key = config.path();
    const Config inner = inner_params(
        config, {{"in", Value(key + "/element")}, {"out", Value(key + "/of_element")}});
    Ports own(ports);
    injector_ = make_injector(inner, own);
    check_inner(inner, config, {"aslist"});
    element_ = own.reads(inner, "in");
    made_ = own.writes(inner, "out");
    // The other keys that the inner injector reads must exist.
    for (const auto& use : own.all_read()) {
      if (use.slot == element_) continue;
      ports.reads_again(use);
    }
  }

  void run(StepState& state, const Iteration& iteration) override {
    const at::Tensor x = state.tensor(in_);
    if (x.dim() < 2) {
      throw Error(fmt::format("expected two dimensions or more, found {}", describe_tensor(x)));
    }
    std::vector<at::Tensor> made;
    for (int64_t i = 0; i < x.size(1); ++i) {
      state.set(element_, x.select(1, i));
      injector_->run(state, iteration);
      made.push_back(state.tensor(made_));
    }
    state.free(element_);
    state.free(made_);
    if (is_list_) {
      state.set(out_, std::move(made));
    } else {
      state.set(out_, at::stack(made, 1));
    }
  }

 private:
  Slot in_, out_, element_, made_;
  bool is_list_;
  std::unique_ptr<Injector> injector_;
};

at::Tensor numbers(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

/// Merges a dimension into the batch, in front; `cutoff_dim` limits the number of rows.
class DecomposeDimension : public Injector {
 public:
  struct Params : InOut {
    int64_t dim = 1;
    int64_t cutoff_dim = -1;

    void declare(Parameters& p) {
      InOut::declare(p, "", "and out_reverse_shape, out_reverse_permute for recompose_dimension");
      p.require("dim", dim, "", at_least(1));
      p.add("cutoff_dim", cutoff_dim, "so many rows at most");
    }
  };

  DecomposeDimension(const Params& params, Ports& ports)
      : in_(ports.reads(params.in)),
        out_(ports.writes(params.out)),
        shape_(ports.writes(params.out.with_suffix("_reverse_shape"))),
        order_(ports.writes(params.out.with_suffix("_reverse_permute"))),
        dim_(params.dim),
        cutoff_(params.cutoff_dim) {}

  void run(StepState& state, const Iteration&) override {
    const at::Tensor& x = state.tensor(in_);
    if (dim_ >= x.dim()) {
      throw Error(fmt::format("there is no dimension {} in {}", dim_, describe_tensor(x)));
    }
    std::vector<int64_t> order = {dim_};
    for (int64_t i = 0; i < x.dim(); ++i) {
      if (i != dim_) order.push_back(i);
    }
    std::vector<int64_t> shape;
    std::vector<int64_t> back(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      shape.push_back(x.size(order[i]));
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
    std::vector<int64_t> flat = {-1};
    flat.insert(flat.end(), shape.begin() + 2, shape.end());
    at::Tensor made = x.permute(order).reshape(flat);
    if (cutoff_ > -1) made = made.narrow(0, 0, std::min(cutoff_, made.size(0)));
    state.set(out_, std::move(made));
    state.set(shape_, numbers(shape));
    state.set(order_, numbers(back));
  }

 private:
  Slot in_, out_, shape_, order_;
  int64_t dim_;
  int64_t cutoff_;
};

/// Undoes decompose_dimension.
class RecomposeDimension : public Injector {
 public:
  struct Params : InOut {
    Port reverse_shape;
    Port reverse_permute;

    void declare(Parameters& p) {
      InOut::declare(p);
      p.require("reverse_shape", reverse_shape, "");
      p.require("reverse_permute", reverse_permute, "");
    }
  };

  RecomposeDimension(const Params& params, Ports& ports)
      : in_(ports.reads(params.in)),
        shape_(ports.reads(params.reverse_shape)),
        order_(ports.reads(params.reverse_permute)),
        out_(ports.writes(params.out)) {}

  void run(StepState& state, const Iteration&) override {
    const at::Tensor x = state.tensor(in_).reshape(host_values(state.tensor(shape_)));
    state.set(out_, x.permute(host_values(state.tensor(order_))).contiguous());
  }

 private:
  Slot in_, shape_, order_, out_;
};

/// A square crop of each image, of a random size of `dim_out` pixels or more, resized to `dim_out`
/// pixels by nearest neighbours.
class RandomCrop : public UnaryInjector {
 public:
  struct Params : InOut {
    int64_t dim_in = 1;
    int64_t dim_out = 1;

    void declare(Parameters& p) {
      InOut::declare(p);
      p.require("dim_in", dim_in, "pixels of the images", at_least(1));
      p.require("dim_out", dim_out, "pixels of what comes out", at_least(1));
    }
  };

  RandomCrop(const Params& params, const Config& config, Ports& ports)
      : UnaryInjector(params, ports), from_(params.dim_in), to_(params.dim_out) {
    if (to_ > from_) {
      throw config.error("dim_out", fmt::format("expected dim_in, {}, at most", from_));
    }
  }

  at::Tensor compute(const at::Tensor& images) override {
    if (images.dim() != 4 || images.size(2) < to_ || images.size(3) < to_) {
      throw Error(fmt::format("expected images of {} pixels or more, found {}", to_,
                              describe_tensor(images)));
    }
    const int64_t height = images.size(2);
    const int64_t width = images.size(3);
    const int64_t most = std::min(height, width);
    const at::Tensor random = at::rand({images.size(0), 3}, at::kDouble);
    const auto* number = random.const_data_ptr<double>();
    std::vector<at::Tensor> parts;
    for (int64_t i = 0; i < images.size(0); ++i, number += 3) {
      // Uniform in the area, as in RandomResizedCrop.
      const double least = static_cast<double>(to_) / static_cast<double>(from_);
      const double area = least + (1 - least) * number[0];
      const auto wanted =
          static_cast<int64_t>(std::lround(std::sqrt(area) * static_cast<double>(most)));
      const int64_t side = std::clamp(wanted, std::min(to_, most), most);
      const auto place = [&](double fraction, int64_t length) {
        return static_cast<int64_t>(fraction * static_cast<double>(length - side + 1));
      };
      parts.push_back(at::upsample_nearest2d(images.narrow(0, i, 1)
                                                 .narrow(2, place(number[1], height), side)
                                                 .narrow(3, place(number[2], width), side),
                                             {to_, to_})
                          .squeeze(0));
    }
    return at::stack(parts);
  }

 private:
  int64_t from_;
  int64_t to_;
};

STEPOP_REGISTER_INJECTOR(for_each, ForEach, {"Another injector for each element of dimension 1."});
STEPOP_REGISTER_INJECTOR(decompose_dimension, DecomposeDimension,
                         {"A dimension becomes a part of the batch."});
STEPOP_REGISTER_INJECTOR(recompose_dimension, RecomposeDimension, {"Undoes decompose_dimension."});
STEPOP_REGISTER_INJECTOR(random_crop, RandomCrop,
                         {"A square part of each image, made dim_out pixels large."});

}  // namespace
}  // namespace stepop::extensible
