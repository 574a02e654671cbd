#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"

namespace stepop {

/// A function in a config that changes examples; the view `Map` applies it. An example of your own
/// function:
///
///     /// Images of one channel as those of three.
///     class Colour : public ExampleFunction {
///      public:
///       struct Params {
///         std::string key = "image";
///         void declare(Parameters& p) { p.add("key", key, "of the image"); }
///       };
///       explicit Colour(const Params& params) : key_(params.key) {}
///       Example operator()(Example example, Random&) const override {
///         at::Tensor& image = example.tensors[key_];
///         image = image.expand({3, image.size(1), image.size(2)});
///         return example;
///       }
///
///      private:
///       std::string key_;
///     };
///     STEPOP_REGISTER_EXAMPLE_FUNCTION(colour, Colour, {"Grey images with three channels."});
class ExampleFunction {
 public:
  virtual ~ExampleFunction() = default;

  /// Returns the changed example. Several threads call this function at once; all randomness comes
  /// from `random`. Tensors of the example may be changed in place.
  virtual Example operator()(Example example, Random& random) const = 0;

  /// The name after the change of a label that is known for all examples at once; empty when the
  /// function removes the label or changes its values. By default the name stays the same.
  virtual std::string key_after(const std::string& key) const { return key; }
};

/// A function that renames or removes keys, so batches can be changed as a whole.
class KeyFunction : public ExampleFunction {
 public:
  /// `needed` are keys, or beginnings of keys (`target` of `target/class`), that examples must
  /// have; `name` is for messages.
  KeyFunction(std::string name, std::vector<std::string> needed)
      : name_(std::move(name)), needed_(std::move(needed)) {}

  /// Throws Error for a missing key, and for two keys that get the same name.
  Example operator()(Example example, Random& random) const final;
  Batch apply(const Batch& batch) const;

 private:
  std::string name_;
  std::vector<std::string> needed_;
};

using ExampleFunctionRegistry = Registry<std::unique_ptr<ExampleFunction>(const Config&)>;
ExampleFunctionRegistry& example_functions();

}  // namespace stepop

/// Registers a class that is derived from ExampleFunction and has a constructor from its `Params`,
/// `const Config&`, or both.
#define STEPOP_REGISTER_EXAMPLE_FUNCTION(name, Class, ...)                                    \
  STEPOP_REGISTER(                                                                            \
      ::stepop::example_functions(), #name,                                                   \
      [](const ::stepop::Config& params) { return ::stepop::make_component<Class>(params); }, \
      ::stepop::about_class<Class>(__VA_ARGS__))
