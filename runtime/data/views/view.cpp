#include "runtime/data/views/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/text.h"
#include "runtime/data/notice.h"

namespace stepop {

Source::Source(const Config& params, std::string_view key)
    : dataset_(datasets().build(params, key)), place_(join_path(params.path(), key)) {}

Example Source::get(int64_t index, Random& random) const {
  try {
    return dataset_->get(index, random);
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    throw Error(fmt::format("example {} of {}: {}", index, place_, text_of_current_exception()));
  }
}

void Source::write_row(const RowWriter& writer, int64_t index, Random& random, int64_t row,
                       BatchRows& rows) const {
  try {
    writer.write_row(index, random, row, rows);
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    throw Error(fmt::format("example {} of {}: {}", index, place_, text_of_current_exception()));
  }
}

std::optional<Batch> Source::gather(std::span<const int64_t> indices, std::span<Random> randoms,
                                    std::span<const int64_t> outer) const {
  std::string failure;
  try {
    return dataset_->get_batch(indices, randoms);
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    failure = text_of_current_exception();
  }
  // The examples are loaded one by one to find out which example failed: the source's error names
  // at most the source's own index.
  for (size_t i = 0; i < indices.size(); ++i) {
    Random random(0);
    try {
      get(indices[i], random);
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(fmt::format("example {}: {}", outer[i], error_text(error)));
    }
  }
  throw Error(fmt::format("{}: {}", place_, failure));
}

Batch Source::load(std::span<const int64_t> indices, std::span<Random> randoms,
                   std::span<const int64_t> outer) const {
  if (auto batch = gather(indices, randoms, outer)) return std::move(*batch);
  std::vector<Example> examples;
  examples.reserve(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    try {
      examples.push_back(get(indices[i], randoms[i]));
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(fmt::format("example {}: {}", outer[i], error_text(error)));
    }
  }
  return dataset_->collate(examples, {outer.begin(), outer.end()});
}

std::vector<Source> ParameterOf<std::vector<Source>>::read(const Config& params,
                                                           std::string_view key, const Allowed&) {
  params.has(key);
  const Value* value = params.peek(key);
  if (value == nullptr) params.get<Value>(key);  // throws for the missing parameter
  if (!value->is_list() || value->as_list().empty()) {
    throw params.error(key, fmt::format("expected a list of datasets, such as [{{class: Idx, ...}}"
                                        ", {{class: Csv, ...}}], found {}",
                                        value->describe()));
  }
  const size_t count = value->as_list().size();
  std::vector<Source> sources;
  for (size_t i = 0; i < count; ++i) {
    sources.emplace_back(params, join_path(key, std::to_string(i)));
  }
  return sources;
}

std::string notices_of(std::span<const Source> sources) {
  std::vector<std::string> notices;
  for (const Source& source : sources) notices.push_back(source->notice());
  return joined_notices(notices);
}

void add_groups(Parameters& p, std::string_view name, const Source& source,
                std::vector<int64_t>& groups, std::string_view about) {
  const Config* config = p.describe_optional(name, "text", about);
  if (config != nullptr) groups = read_groups(*config, name, source);
}

std::vector<int64_t> read_groups(const Config& params, std::string_view key, const Source& source) {
  const auto name = params.get<std::string>(key);
  at::Tensor labels = source.labels(name);
  if (!labels.defined() || labels.dim() != 1 || labels.size(0) != source.size() ||
      labels.is_complex()) {
    throw params.error(
        key, fmt::format("{} has no label \"{}\" with one number for each example; its labels are: "
                         "{}",
                         source.place(), name, list_text(source->label_keys())));
  }
  std::vector<int64_t> groups(static_cast<size_t>(labels.numel()));
  if (groups.empty()) return groups;
  // Equal floats have equal bits, except for the two zeros.
  if (labels.is_floating_point())
    labels = labels.to(at::kDouble).add(0.0);
  else
    labels = labels.to(at::kLong);
  labels = labels.contiguous();
  std::memcpy(groups.data(), labels.const_data_ptr(), groups.size() * sizeof(int64_t));
  return groups;
}

}  // namespace stepop
