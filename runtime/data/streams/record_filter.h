#pragma once

#include <memory>

#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"

namespace stepop {

/// Chooses records of a stream in a config, `filter: {class: within, key: json/width, least: 256}`.
/// An example of your own filter:
///
///     /// Texts of few words.
///     class Short : public RecordFilter {
///      public:
///       struct Params {
///         int64_t most = 10;
///         void declare(Parameters& p) { p.add("most", most, "words of a text"); }
///       };
///       explicit Short(const Params& params) : most_(params.most) {}
///       bool operator()(const Example& example) const override {
///         return std::ranges::count(example.texts.at("text"), ' ') < most_;
///       }
///
///      private:
///       int64_t most_;
///     };
///     STEPOP_REGISTER_RECORD_FILTER(short, Short, {"Texts of few words."});
class RecordFilter {
 public:
  virtual ~RecordFilter() = default;

  /// Whether a record is an example. `example` has its texts, classes, JSON and arrays; pictures
  /// are not yet decoded. One thread at a time calls this function.
  virtual bool operator()(const Example& example) const = 0;

  /// Called with the first record of a stream; throws UsageError for a key of the config that
  /// looks like another one which the record has.
  virtual void check(const Example& first) const { (void)first; }
};

using RecordFilterRegistry = Registry<std::unique_ptr<RecordFilter>(const Config&)>;
RecordFilterRegistry& record_filters();

}  // namespace stepop

/// Registers a class that is derived from RecordFilter and has a constructor from its `Params`, and
/// its part of the config if it wants that.
#define STEPOP_REGISTER_RECORD_FILTER(name, Class, ...)                                       \
  STEPOP_REGISTER(                                                                            \
      ::stepop::record_filters(), #name,                                                      \
      [](const ::stepop::Config& params) { return ::stepop::make_component<Class>(params); }, \
      ::stepop::about_class<Class>(__VA_ARGS__))
