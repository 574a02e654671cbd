#include "runtime/core/base/nearest.h"

#include <doctest/doctest.h>

namespace stepop {
namespace nearest_test {

using Names = std::vector<std::string>;

TEST_CASE("the edit distance counts insertions, deletions, substitutions and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);  // the textbook's example
  CHECK(edit_distance("tset", "test") == 1);
  CHECK(edit_distance("LeNet", "lenet") == 0);
  // Optimal string alignment, where the unrestricted distance is 2.
  CHECK(edit_distance("ca", "abc") == 3);
}

TEST_CASE("the nearest names come first, and none that looks different") {
  CHECK(nearest_names("batch_sise", {"batch_size", "test_batch_size", "seed"}, 3) ==
        Names{"batch_size"});
  CHECK(nearest_names("sgd", {"SGD", "Adam", "sgdx"}, 3) == Names{"SGD", "sgdx"});
  CHECK(nearest_names("lr", {"wd", "eps"}, 3).empty());
  CHECK(nearest_names("model", {"model"}, 3).empty());
  CHECK(nearest_names("aaa", {"aab", "aac", "aad"}, 2) == Names{"aab", "aac"});
}

TEST_CASE("paths are compared key by key") {
  const Names paths = {"optimizer", "optimizer/lr", "optimizer/weight_decay", "log_freq"};
  CHECK(nearest_paths("optimizer/weight_decai", paths, 1) == Names{"optimizer/weight_decay"});
  CHECK(nearest_paths("optimiser", paths, 1) == Names{"optimizer"});
  CHECK(nearest_paths("optimiser/lr", paths, 1) == Names{"optimizer/lr"});
  // The right key in a wrong place.
  CHECK(nearest_paths("lr", paths, 1) == Names{"optimizer/lr"});
  CHECK(nearest_paths("training/log_freq", paths, 1) == Names{"log_freq"});
  // Two short keys below a long parent do not look alike.
  CHECK(nearest_paths("optimizer/eps", paths, 1).empty());
}

TEST_CASE("all names can be sorted by their distance") {
  CHECK(sorted_by_distance("Mpl", {"VUNet", "LeNet", "Mlp"}) == Names{"Mlp", "LeNet", "VUNet"});
}

}  // namespace nearest_test
}  // namespace stepop
