#include "runtime/data/streams/record_filter.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/dataset_of.h"
#include "tests/message_of.h"
#include "tests/runtime/data/streams/shards.h"

namespace stepop {
namespace record_filter_test {

using namespace stepop::shards_for_tests;

/// Texts of so many letters.
class LettersFilter : public RecordFilter {
 public:
  explicit LettersFilter(const Config& params) : count_(params.get<int64_t>("count")) {}
  bool operator()(const Example& example) const override {
    return static_cast<int64_t>(example.texts.at("text").size()) == count_;
  }

 private:
  int64_t count_;
};
STEPOP_REGISTER_RECORD_FILTER(test_letters, LettersFilter,
                              {"Texts of so many letters.", {{"count", "", "how many"}}});

TEST_CASE("filters choose records by numbers, texts and functions, before pictures are decoded") {
  const Shards shards;
  const std::string path = "path: " + shards.path() + "\n";
  const auto seven = path + "filter: {class: within, key: class, least: 7, most: 12}";
  CHECK(pass_of(seven) == numbers(7, 13));
  CHECK(pass_of(path + "filter: [{class: within, key: class, least: 7}, {class: matches, key: key, "
                       "pattern: '^0..[13579]$'}, {class: matches, key: key, pattern: '^00[12]', "
                       "leave_out: true}]") == Strings{"7", "9", "31", "33", "35", "37", "39"});
  CHECK(TarShards(config_of(seven)).count({}) == 6);
  const auto data = dataset_of("{class: TarShards, path: " + shards.path() +
                               ", filter: {class: within, key: class, most: 4}}");
  CHECK(data->size() == 5);

  // The rest of a pass is the same after a resume at any record.
  for (int stop = 0; stop <= 6; ++stop) {
    TarShards before(config_of(seven));
    before.begin({});
    for (int i = 0; i < stop; ++i) before.next({});
    TarShards after(config_of(seven));
    after.begin({});
    after.load(before.save(), {});
    CHECK(rest(after) == numbers(7 + stop, 13));
  }

  const ScratchFolder folder;
  folder.write("a.tar", tar_member("1.txt", "cat") + tar_member("1.png", "no picture") +
                            tar_member("2.txt", "mouse") + tar_member("3.cls", "3") +
                            tar_member("4.txt", "dog") + tar_end());
  const std::string of_three =
      "path: " + folder.path() + "\nfilter: {class: test_letters, count: 3}";
  TarShards stream(config_of(of_three));
  stream.begin({});
  CHECK(stream.next({})->name == folder.path("a.tar") + ": 1");
  CHECK(message_of([&] { stream.next({}); }) ==
        folder.path("a.tar") +
            ": 3: filter: no key \"text\"; there are: key; on_damage: skip in "
            "the config of the stream leaves damaged records out");
  TarShards skipping(config_of(of_three + "\non_damage: skip"));
  skipping.begin({});
  CHECK(rest(skipping) == Strings{"none", "none"});

  CHECK(message_of([&] {
          pass_of(path + "filter: {class: within, key: class, least: 2, most: 1}");
        }) == "test.yaml:2: filter/most: expected 2 or more, as least is, found 1");
  CHECK(message_of([&] {
          pass_of(path + "filter: {class: within, key: clas, least: 2}\non_damage: skip");
        })
            .starts_with("test.yaml:2: filter/key: the first record has no \"clas\": did you mean "
                         "\"class\"? It has: "));
  CHECK(message_of([&] {
          pass_of(path + "filter: {class: wihtin, key: class}");
        }).find("did you mean \"within\"?") != std::string::npos);
}

}  // namespace record_filter_test
}  // namespace stepop
