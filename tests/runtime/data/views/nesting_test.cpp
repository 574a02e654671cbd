// Random nestings of views, each beside a list of examples that does the same by hand.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "runtime/core/base/random.h"
#include "tests/dataset_of.h"
#include "tests/fuzz.h"
#include "tests/runtime/data/views/numbers.h"
#include "tests/scratch_folder.h"

namespace stepop {

namespace nesting_test {

/// A dataset as a list; what is drawn at random is not in it.
struct Naive {
  std::string yaml;
  std::vector<Example> examples;
  /// One of each example, by key.
  std::map<std::string, std::vector<at::Tensor>> labels;

  int64_t size() const { return static_cast<int64_t>(examples.size()); }

  /// The same with these examples of this one.
  Naive chosen(const std::vector<int64_t>& indices) const {
    Naive part;
    for (const int64_t index : indices) part.examples.push_back(examples[size_t(index)]);
    for (const auto& [key, values] : labels) {
      auto& own = part.labels[key];
      for (const int64_t index : indices) own.push_back(values[size_t(index)]);
    }
    return part;
  }

  void append(const Naive& other) {
    examples.insert(examples.end(), other.examples.begin(), other.examples.end());
    for (auto& [key, values] : labels) {
      const auto& more = other.labels.at(key);
      values.insert(values.end(), more.begin(), more.end());
    }
  }
};

Naive numbers(Random& random, int64_t size) {
  Naive naive;
  const int64_t first = random.below(100);
  const int64_t run = 1 + random.below(5);
  naive.yaml = fmt::format(
      "{{class: TestNumbers, size: {}, first: {}, run: {}, draws: true, gathers: {}, "
      "writes: {}}}",
      size, first, run, random.below(2) == 0, random.below(2) == 0);
  for (int64_t i = 0; i < size; ++i) {
    const at::Tensor id = at::scalar_tensor(first + i, at::kLong);
    const at::Tensor group = at::scalar_tensor(i / run, at::kLong);
    const at::Tensor value = at::stack({id.to(at::kFloat), id.to(at::kFloat) + 0.5});
    naive.examples.push_back({.tensors = {{"id", id}, {"group", group}, {"value", value}},
                              .texts = {{"name", fmt::format("n{}", first + i)}}});
    naive.labels["id"].push_back(id);
    naive.labels["group"].push_back(group);
  }
  if (size == 0) naive.labels["id"], naive.labels["group"];
  return naive;
}

Naive subset(Random& random, const Naive& source) {
  std::vector<int64_t> indices;
  std::string how;
  const int64_t size = source.size();
  if (random.below(3) == 0) {
    for (int64_t i = random.below(2 * size) + 1; i > 0; --i) {
      indices.push_back(random.below(size));
    }
    how = fmt::format("indices: [{}]", fmt::join(indices, ", "));
  } else if (random.below(2) == 0) {
    const int64_t begin = random.below(size);
    const int64_t end = begin + 1 + random.below(size - begin);
    const int64_t step = 1 + random.below(3);
    for (int64_t i = begin; i < end; i += step) indices.push_back(i);
    how = fmt::format("range: [{}, {}, {}]", begin, end, step);
  } else {
    const int64_t tenths = 1 + random.below(10);
    const int64_t rounded = std::llround(double(tenths) / 10 * double(size));
    for (int64_t i = 0; i < rounded; ++i) indices.push_back(i);
    how = fmt::format("fraction: 0.{}", tenths);
    if (tenths == 10) how = "fraction: 1.0";
  }
  Naive part = source.chosen(indices);
  part.yaml = fmt::format("{{class: Subset, {}, dataset: {}}}", how, source.yaml);
  return part;
}

/// A part that has the same keys, for several of them in a list.
Naive concat(Random& random, const Naive& source) {
  std::vector<Naive> parts;
  size_t longest = 0;
  for (int64_t i = 1 + random.below(3); i > 0; --i) {
    parts.push_back(subset(random, source));
    if (parts.back().examples.empty()) parts.back() = source;
    longest = std::max(longest, parts.back().examples.size());
  }
  const bool is_balanced = random.below(2) == 0;
  const bool has_key = random.below(2) == 0 && !source.labels.contains("origin");
  Naive whole = source.chosen({});
  if (has_key) whole.labels["origin"];
  std::string list;
  for (size_t number = 0; number < parts.size(); ++number) {
    Naive& part = parts[number];
    std::vector<int64_t> indices;
    for (size_t i = 0; i < (is_balanced ? longest : part.examples.size()); ++i) {
      indices.push_back(int64_t(i % part.examples.size()));
    }
    Naive longer = part.chosen(indices);
    const at::Tensor origin = at::scalar_tensor(int64_t(number), at::kLong);
    for (Example& example : longer.examples) {
      if (has_key) example.tensors.set("origin", origin);
    }
    if (has_key) longer.labels["origin"].assign(longer.examples.size(), origin);
    whole.append(longer);
    list += (list.empty() ? "" : ", ") + part.yaml;
  }
  whole.yaml = fmt::format("{{class: Concat, balanced: {}, datasets: [{}]{}}}", is_balanced, list,
                           has_key ? ", source_key: origin" : "");
  return whole;
}

/// Example by example: from whichever source is most behind its share.
Naive mixture(Random& random, const Naive& source) {
  std::vector<Naive> parts;
  std::vector<int64_t> weights;
  int64_t sum = 0;
  std::string list;
  for (int64_t i = 1 + random.below(3); i > 0; --i) {
    parts.push_back(subset(random, source));
    if (parts.back().examples.empty()) parts.back() = source;
    weights.push_back(1 + random.below(5));
    sum += weights.back();
    list += (list.empty() ? "" : ", ") + parts.back().yaml;
  }
  std::vector<int64_t> used(parts.size());
  Naive whole = source.chosen({});
  const auto all_came = [&] {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (used[i] < parts[i].size()) return false;
    }
    return true;
  };
  for (int64_t count = 1; !all_came(); ++count) {
    size_t next = 0;
    for (size_t i = 1; i < parts.size(); ++i) {
      if (count * weights[i] - used[i] * sum > count * weights[next] - used[next] * sum) next = i;
    }
    whole.append(parts[next].chosen({used[next]++ % parts[next].size()}));
  }
  whole.yaml = fmt::format("{{class: Mixture, weights: [{}], datasets: [{}]}}",
                           fmt::join(weights, ", "), list);
  return whole;
}

Naive zip(const Naive& left, const Naive& right) {
  const int64_t size = std::min(left.size(), right.size());
  Naive whole;
  std::string map;
  whole.examples.resize(size_t(size));
  for (const auto& [prefix, part] : {std::pair<std::string, const Naive&>{"left", left},
                                     std::pair<std::string, const Naive&>{"right", right}}) {
    for (size_t i = 0; i < size_t(size); ++i) {
      for (const auto& [key, tensor] : part.examples[i].tensors) {
        whole.examples[i].tensors.set(prefix + "/" + key, tensor);
      }
      for (const auto& [key, text] : part.examples[i].texts) {
        whole.examples[i].texts.set(prefix + "/" + key, text);
      }
    }
    for (const auto& [key, values] : part.labels) {
      whole.labels[prefix + "/" + key] = {values.begin(), values.begin() + size};
    }
    map += fmt::format("{}{}: {{class: Subset, range: [0, {}], dataset: {}}}",
                       map.empty() ? "" : ", ", prefix, size, part.yaml);
  }
  whole.yaml = fmt::format("{{class: Zip, datasets: {{{}}}}}", map);
  return whole;
}

/// With a label "group" of one number sequences stay within it.
std::optional<Naive> sequence(Random& random, const Naive& source) {
  const int64_t length = 1 + random.below(3);
  const int64_t step = 1 + random.below(2);
  const int64_t every = 1 + random.below(3);
  const auto group = source.labels.find("group");
  const bool has_border = group != source.labels.end() && group->second[0].dim() == 0;
  const auto borders = [&](int64_t i) {
    return i == 0 ||
           (has_border && !at::equal(group->second[size_t(i)], group->second[size_t(i - 1)]));
  };
  Naive whole;
  for (const auto& [key, values] : source.labels) whole.labels[key];
  for (int64_t begin = 0; begin < source.size(); ++begin) {
    if (!borders(begin)) continue;
    int64_t end = begin + 1;
    while (end < source.size() && !borders(end)) ++end;
    for (int64_t first = begin; first + (length - 1) * step < end; first += every) {
      Example example;
      std::map<std::string, std::vector<at::Tensor>> frames, labels;
      for (int64_t t = 0; t < length; ++t) {
        const auto at = size_t(first + t * step);
        for (const auto& [key, tensor] : source.examples[at].tensors) {
          frames[key].push_back(tensor);
        }
        for (const auto& [key, text] : source.examples[at].texts) {
          example.texts.set(fmt::format("{}/{}", key, t), text);
        }
        for (const auto& [key, values] : source.labels) labels[key].push_back(values[at]);
      }
      for (const auto& [key, tensors] : frames) example.tensors.set(key, at::stack(tensors));
      for (const auto& [key, tensors] : labels) whole.labels[key].push_back(at::stack(tensors));
      whole.examples.push_back(std::move(example));
    }
  }
  if (whole.examples.empty()) return std::nullopt;
  whole.yaml = fmt::format("{{class: Sequence, length: {}, step: {}, every: {}{}, dataset: {}}}",
                           length, step, every, has_border ? ", within: group" : "", source.yaml);
  return whole;
}

/// Where all tensors have a first dimension of one length.
std::optional<Naive> unsequence(const Naive& source) {
  const Example& first = source.examples[0];
  int64_t length = 0;
  for (const auto& [key, tensor] : first.tensors) {
    if (tensor.dim() == 0 || (length != 0 && tensor.size(0) != length)) return std::nullopt;
    length = tensor.size(0);
  }
  // A text belongs to a frame only where a Sequence has made it.
  if (!source.yaml.starts_with("{class: Sequence")) return std::nullopt;
  Naive whole;
  for (const auto& [key, values] : source.labels) whole.labels[key];
  for (size_t i = 0; i < source.examples.size(); ++i) {
    for (int64_t t = 0; t < length; ++t) {
      Example frame;
      for (const auto& [key, tensor] : source.examples[i].tensors) {
        frame.tensors.set(key, tensor.select(0, t));
      }
      const std::string ending = fmt::format("/{}", t);
      for (const auto& [key, text] : source.examples[i].texts) {
        if (key.ends_with(ending)) {
          frame.texts.set(key.substr(0, key.size() - ending.size()), text);
        }
      }
      whole.examples.push_back(std::move(frame));
      for (const auto& [key, values] : source.labels) {
        whole.labels[key].push_back(values[i].select(0, t));
      }
    }
  }
  whole.yaml = fmt::format("{{class: UnSequence, dataset: {}}}", source.yaml);
  return whole;
}

std::vector<std::string> reversed_parts(const std::string& path) {
  std::vector<std::string> parts = split_path(path);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

/// One key gets another name, and one is dropped.
Naive map(Random& random, const Naive& source) {
  const auto& tensors = source.examples[0].tensors;
  const std::string old = (tensors.begin() + random.below(int64_t(tensors.size())))->first;
  const std::string gone = (tensors.begin() + random.below(int64_t(tensors.size())))->first;
  const std::string name = "new/" + old;
  const auto after = [&](const std::string& key) {
    const std::string renamed =
        key == old || key.starts_with(old + "/") ? name + key.substr(old.size()) : key;
    return old != gone && (renamed == gone || renamed.starts_with(gone + "/")) ? "" : renamed;
  };
  Naive changed;
  for (const Example& example : source.examples) {
    Example other;
    for (const auto& [key, tensor] : example.tensors) {
      if (!after(key).empty()) other.tensors.set(after(key), tensor);
    }
    for (const auto& [key, text] : example.texts) {
      if (!after(key).empty()) other.texts.set(after(key), text);
    }
    changed.examples.push_back(std::move(other));
  }
  for (const auto& [key, values] : source.labels) {
    if (!after(key).empty()) changed.labels[after(key)] = values;
  }
  std::string keys = name;  // a/b: c as {a: {b: c}}
  for (const auto& part : reversed_parts(old)) keys = fmt::format("{{{}: {}}}", part, keys);
  const std::string rename = fmt::format("{{class: rename, keys: {}}}", keys);
  changed.yaml = fmt::format(
      "{{class: Map, function: {}, dataset: {}}}",
      old == gone ? rename : fmt::format("[{}, {{class: select, drop: [{}]}}]", rename, gone),
      source.yaml);
  return changed;
}

Naive labels(Random& random, const Naive& source) {
  const Naive table = numbers(random, source.size());
  Naive more = source;
  const std::string prefix = fmt::format("t{}", random.below(1000));
  for (size_t i = 0; i < more.examples.size(); ++i) {
    for (const auto& [key, tensor] : table.examples[i].tensors) {
      more.examples[i].tensors.set(prefix + "/" + key, tensor);
    }
    for (const auto& [key, text] : table.examples[i].texts) {
      more.examples[i].texts.set(prefix + "/" + key, text);
    }
  }
  for (const auto& [key, values] : table.labels) more.labels[prefix + "/" + key] = values;
  more.yaml = fmt::format("{{class: Labels, prefix: {}, table: {}, dataset: {}}}", prefix,
                          table.yaml, source.yaml);
  return more;
}

Naive cached(Random& random, const Naive& source, const ScratchFolder& folder) {
  Naive same = source;
  same.yaml =
      fmt::format("{{class: Cached, frozen: true, fill: {}{}, dataset: {}}}",
                  random.below(2) == 0 ? "asked" : "start",
                  random.below(2) == 0 ? ", folder: " + folder.path("cache") : "", source.yaml);
  return same;
}

Naive nesting(Random& random, int depth, const ScratchFolder& folder) {
  constexpr int64_t kMost = 60;
  if (depth == 0) return numbers(random, 1 + random.below(20));
  const Naive source = nesting(random, depth - 1, folder);
  if (source.size() > kMost) return source;
  switch (random.below(9)) {
    case 0:
      return concat(random, source);
    case 1:
      return mixture(random, source);
    case 2:
      return zip(source, nesting(random, depth - 1, folder));
    case 3:
      return sequence(random, source).value_or(source);
    case 4: {
      const auto frames = sequence(random, source);
      return frames ? unsequence(*frames).value_or(source) : source;
    }
    case 5:
      return map(random, source);
    case 6:
      return labels(random, source);
    case 7:
      return cached(random, source, folder);
    default: {
      const Naive part = subset(random, source);
      return part.examples.empty() ? source : part;
    }
  }
}

std::set<std::string> without_draws(const OrderedMap<at::Tensor>& tensors) {
  std::set<std::string> keys;
  for (const auto& [key, tensor] : tensors) {
    if (key.find("draw") == std::string::npos && key != "index") keys.insert(key);
  }
  return keys;
}

bool is_same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && at::equal(a, b);
}

TEST_CASE("random nestings of views give what the same lists by hand give") {
  const ScratchFolder folder;
  const uint64_t count = fuzz_count(400);
  for (uint64_t number = fuzz_first(); number < count; ++number) {
    Random random(mix_seed({fuzz_seed(), number}));
    const Naive naive = nesting(random, 1 + int(random.below(4)), folder);
    CAPTURE(number);
    CAPTURE(naive.yaml);
    const auto dataset = dataset_of(naive.yaml);
    REQUIRE(dataset->size() == naive.size());

    std::set<std::string> expected_labels, found_labels;
    for (const auto& [key, values] : naive.labels) expected_labels.insert(key);
    for (const auto& key : dataset->label_keys()) found_labels.insert(key);
    CHECK(found_labels == expected_labels);
    for (const auto& [key, values] : naive.labels) {
      CAPTURE(key);
      const at::Tensor found = dataset->labels(key);
      REQUIRE(found.defined());
      CHECK(is_same(found, at::stack(values)));
    }
    CHECK_FALSE(dataset->labels("no such label").defined());

    std::vector<int64_t> indices;
    std::vector<Random> randoms;
    for (int64_t i = 1 + random.below(5); i > 0; --i) {
      indices.push_back(random.below(naive.size()));
      randoms.emplace_back(random());
    }
    const std::vector<Random> before = randoms;
    const Batch batch = load_batch(*dataset, indices, randoms);
    CHECK(batch.indices() == indices);
    REQUIRE(batch.contains("index"));
    for (size_t row = 0; row < indices.size(); ++row) {
      const Example& expected = naive.examples[size_t(indices[row])];
      CHECK(without_draws(batch.tensors()) == without_draws(expected.tensors));
      CHECK(batch["index"][int64_t(row)].item<int64_t>() == indices[row]);
      for (const auto& [key, tensor] : expected.tensors) {
        CAPTURE(key);
        CHECK(is_same(batch[key][int64_t(row)], tensor));
      }
      for (const auto& [key, text] : expected.texts) CHECK(batch.text(key)[row] == text);
      CHECK(batch.texts().size() == expected.texts.size());
      // Alone an example is what it is in a batch, with all that was drawn.
      Random own = before[row];
      const Example alone = dataset->get(indices[row], own);
      CHECK(alone.tensors.size() + 1 == batch.tensors().size());
      for (const auto& [key, tensor] : alone.tensors) {
        CAPTURE(key);
        CHECK(is_same(batch[key][int64_t(row)], tensor));
      }
    }
    // One by one, as a view around it asks.
    std::vector<Example> examples;
    for (size_t row = 0; row < indices.size(); ++row) {
      Random own = before[row];
      examples.push_back(dataset->get(indices[row], own));
    }
    const Batch collated = dataset->collate(examples, indices);
    for (const auto& [key, tensor] : collated.tensors()) CHECK(is_same(tensor, batch[key]));
    CHECK(collated.tensors().size() + 1 == batch.tensors().size());
  }
}

TEST_CASE("a config of views has no key that nobody reads") {
  const ScratchFolder folder;
  for (uint64_t number = 0; number < 20; ++number) {
    Random random(number);
    CHECK(unknown_keys_of(nesting(random, 3, folder).yaml) == "");
  }
}

}  // namespace nesting_test
}  // namespace stepop
