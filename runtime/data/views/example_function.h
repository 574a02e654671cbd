#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/config/config.h"
#include "runtime/core/config/registry.h"
#include "runtime/data/batch.h"

namespace stepop {

/// A change of examples that a config names: the view `Map` applies it. A function of your own:
///
///     /// Images of one channel as those of three.
///     class Colour : public ExampleFunction {
///      public:
///       explicit Colour(const Config& params) : key_(params.get("key", "image")) {}
///       Example operator()(Example example, Random&) const override {
///         at::Tensor& image = example.tensors[key_];
///         image = image.expand({3, image.size(1), image.size(2)});
///         return example;
///       }
///
///      private:
///       std::string key_;
///     };
///     STEPOP_REGISTER_EXAMPLE_FUNCTION(colour, Colour, {"Grey images as ones of three channels.",
///                                                       {{"key", "image", "of the image"}}});
class ExampleFunction {
 public:
  virtual ~ExampleFunction() = default;

  /// The changed example. Called from several threads at once; all randomness comes from `random`.
  /// Tensors of the example may be changed in place.
  virtual Example operator()(Example example, Random& random) const = 0;

  /// What a label, known for all examples at once, is called afterwards; empty when it is gone or
  /// when the function changes its values. By default it stays what it is.
  virtual std::string key_after(const std::string& key) const { return key; }
};

/// A function that gives keys other names, or takes them away: batches can be changed as a whole.
class KeyFunction : public ExampleFunction {
 public:
  /// `needed` are keys, or the beginnings of some (`target` of `target/class`), without which the
  /// function is a mistake; `name` is for messages.
  KeyFunction(std::string name, std::vector<std::string> needed)
      : name_(std::move(name)), needed_(std::move(needed)) {}

  /// Throws Error for a needed key that is not there, and for two that get the same name.
  Example operator()(Example example, Random& random) const final;
  Batch apply(const Batch& batch) const;

 private:
  std::string name_;
  std::vector<std::string> needed_;
};

using ExampleFunctionRegistry = Registry<std::unique_ptr<ExampleFunction>(const Config&)>;
ExampleFunctionRegistry& example_functions();

}  // namespace stepop

/// Registers a class derived from ExampleFunction with a constructor from `const Config&`.
#define STEPOP_REGISTER_EXAMPLE_FUNCTION(name, Class, ...) \
  STEPOP_REGISTER(                                         \
      ::stepop::example_functions(), #name,                \
      [](const ::stepop::Config& params) { return std::make_unique<Class>(params); }, __VA_ARGS__)
