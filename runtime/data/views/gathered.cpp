#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/data/views/key_parts.h"
#include "runtime/data/views/view.h"

namespace stepop {
namespace {

/// Examples of another dataset, as a table of their indices groups them. A label [N] of the table
/// names one example for each of N, a label [N, T] names T of them, whose tensors are stacked.
class Gathered : public Dataset {
 public:
  struct Params {
    Source dataset;
    Source table;
    OrderedMap<std::string> views;  ///< The names, and the labels of the table.

    void declare(Parameters& p) {
      p.require("dataset", dataset, "whose examples are gathered");
      p.require("table", table,
                "a dataset whose labels are indices, such as {class: Meta, path: views}");
      const Config* config = p.describe_required(
          "views", "map",
          "names with labels of the table, {partner: a, frames: b}: a label [N] gives "
          "partner/image, a label [N, T] stacks T examples to frames/image [T, ...]");
      if (config == nullptr) return;
      const auto given = config->get<Value>("views");
      if (!given.is_map() || given.as_map().empty()) {
        throw config->error("views", fmt::format("expected names with labels of the table, such as "
                                                 "{{frames: sequence}}, found {}",
                                                 given.describe()));
      }
      for (const auto& [name, label] : given.as_map()) {
        views.set(name, config->get<std::string>(join_path("views", name)));
      }
    }
  };

  Gathered(Params params, const Config& config)
      : source_(std::move(params.dataset)), table_(std::move(params.table)), size_(table_.size()) {
    for (const auto& [name, label] : params.views) add_view(config, name, label);
  }

  int64_t size() const override { return size_; }

  Example get(int64_t index, Random& random) const override {
    std::vector<Random> own = {random};
    const Batch batch = gather(std::vector{index}, own);
    random = own[0];
    Example example;
    for (const auto& [key, tensor] : batch.tensors()) example.tensors.set(key, tensor[0]);
    for (const auto& [key, texts] : batch.texts()) example.texts.set(key, texts[0]);
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    return gather(indices, randoms);
  }

  at::Tensor labels(std::string_view key) const override {
    for (const View& view : views_) {
      if (!key.starts_with(view.prefix)) continue;
      const at::Tensor labels = source_.labels(key.substr(view.prefix.size()));
      if (!labels.defined()) return labels;
      return in_shape(labels.index_select(0, view.indices.flatten()), size(), view);
    }
    return {};
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    for (const View& view : views_) {
      for (const auto& key : source_->label_keys()) keys.push_back(view.prefix + key);
    }
    return keys;
  }

  std::string notice() const override { return source_->notice(); }

 private:
  /// A group of examples for each index, under one name.
  struct View {
    std::string prefix;  ///< The name with the slash.
    at::Tensor indices;  ///< int64 [N, ...], contiguous: where the examples are in the source.
    int64_t count;       ///< How many examples each group has.
  };

  void add_view(const Config& params, const std::string& name, const std::string& label) {
    const std::string key = join_path("views", name);
    const at::Tensor indices = table_.labels(label);
    if (!indices.defined() || !at::isIntegralType(indices.scalar_type(), false)) {
      throw params.error(key, fmt::format("{} has no label \"{}\" of whole numbers; its labels "
                                          "are: {}",
                                          table_.place(), label, list_text(table_->label_keys())));
    }
    const at::Tensor all = indices.to(at::kLong).contiguous();
    const auto* begin = all.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < all.numel(); ++i) {
      if (begin[i] >= 0 && begin[i] < source_.size()) continue;
      throw params.error(key, fmt::format("row {} of \"{}\" names example {}, and {} has {}",
                                          i / (all.numel() / all.size(0)), label, begin[i],
                                          source_.place(), with_thousands(source_.size())));
    }
    views_.push_back({name + "/", all, size() == 0 ? 0 : all.numel() / size()});
  }

  /// Tensors [rows * count, ...] as [rows, the shape of a group..., ...].
  static at::Tensor in_shape(const at::Tensor& flat, int64_t rows, const View& view) {
    std::vector<int64_t> shape = view.indices.sizes().vec();
    shape[0] = rows;
    shape.insert(shape.end(), flat.sizes().begin() + 1, flat.sizes().end());
    return flat.reshape(shape);
  }

  Batch gather(std::span<const int64_t> indices, std::span<Random> randoms) const {
    Batch batch({}, {}, {indices.begin(), indices.end()});
    for (const View& view : views_) add_part(batch, view.prefix, part(view, indices, randoms));
    return batch;
  }

  Batch part(const View& view, std::span<const int64_t> indices, std::span<Random> randoms) const {
    const auto* places = view.indices.const_data_ptr<int64_t>();
    std::vector<int64_t> inner;
    std::vector<int64_t> outer;
    std::vector<Random> own;
    for (size_t i = 0; i < indices.size(); ++i) {
      check_index(indices[i], size());
      for (int64_t t = 0; t < view.count; ++t) {
        inner.push_back(places[indices[i] * view.count + t]);
        outer.push_back(indices[i]);
        own.push_back(split_off(randoms[i]));
      }
    }
    const Batch all = source_.load(inner, own, outer);
    const auto rows = static_cast<int64_t>(indices.size());
    OrderedMap<at::Tensor> tensors;
    for (const auto& [key, tensor] : all.tensors()) tensors.set(key, in_shape(tensor, rows, view));
    OrderedMap<std::vector<std::string>> texts;
    const auto count = static_cast<size_t>(view.count);
    for (const auto& [key, values] : all.texts()) {
      for (size_t t = 0; t < count; ++t) {
        std::vector<std::string> of_member;
        for (size_t i = t; i < values.size(); i += count) of_member.push_back(values[i]);
        const bool is_one = view.indices.dim() == 1;
        texts.set(is_one ? key : fmt::format("{}/{}", key, t), std::move(of_member));
      }
    }
    return {std::move(tensors), std::move(texts), {}};
  }

  Source source_;
  Source table_;
  int64_t size_;
  std::vector<View> views_;
};

STEPOP_REGISTER_DATASET(Gathered,
                        {"Examples of another dataset, grouped as a table of their indices says."});

}  // namespace
}  // namespace stepop
