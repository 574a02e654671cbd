#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/views/index_view.h"

namespace stepop {
namespace {

/// Datasets one after another.
class Concat : public IndexView {
 public:
  struct Params {
    std::vector<Source> datasets;
    bool balanced = false;
    std::string source_key;

    void declare(Parameters& p) {
      p.require("datasets", datasets, "a list of datasets with the same keys");
      p.add("source_key", source_key,
            "adds under this key which dataset an example is from: 0, 1, ...");
      p.add("balanced", balanced, "the shorter ones are repeated until all are equally long");
    }
  };

  Concat(Params params, const Config& config)
      : IndexView(std::move(params.datasets), params.source_key) {
    int64_t longest = 0;
    for (const Source& source : sources()) longest = std::max(longest, source.size());
    for (size_t i = 0; i < sources().size(); ++i) {
      const int64_t size = sources()[i].size();
      if (params.balanced && size == 0) {
        throw config.error("datasets/" + std::to_string(i),
                           "it is empty, and nothing can be repeated to balance it");
      }
      const int64_t count = params.balanced ? longest : size;
      if (count > std::numeric_limits<int64_t>::max() - ends_total()) {
        throw config.error("datasets", "they have more examples together than can be counted");
      }
      ends_.push_back(ends_total() + count);
    }
  }

  int64_t size() const override { return ends_total(); }

 protected:
  Place place_of(int64_t index) const override {
    const auto source =
        static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    const int64_t within = index - (source == 0 ? 0 : ends_[source - 1]);
    const int64_t size = sources()[source].size();
    return {source, within < size ? within : within % size};
  }

 private:
  int64_t ends_total() const { return ends_.empty() ? 0 : ends_.back(); }

  std::vector<int64_t> ends_;  ///< Where each source's examples end in this dataset.
};

STEPOP_REGISTER_DATASET(Concat, {"Datasets one after another."});

}  // namespace
}  // namespace stepop
