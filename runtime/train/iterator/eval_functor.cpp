#include "runtime/train/iterator/eval_functor.h"
#include "runtime/train/keys/own_keys.h"

namespace stepop {
namespace {

class FunctorIterator : public Iterator {
 public:
  FunctorIterator(const Config& config, const Context& context)
      : Iterator(context), functor_(eval_functors().build(config, "eval_functor", context)) {
    const std::string op = own_key<std::string>(config, "eval_hook/eval_op");
    op_ = op.substr(op.find('/') + 1);
  }

  StepOps step_op(const Batch& batch) override {
    StepOps ops;
    ops.eval_op = [=, this] { return (*functor_)(batch); };
    ops.eval_ops.set(op_, ops.eval_op);
    return ops;
  }

  OrderedMap<std::string> eval_callbacks() const override { return functor_->eval_callbacks(); }

 private:
  std::unique_ptr<EvalFunctor> functor_;
  std::string op_;
};

}  // namespace

EvalFunctorRegistry& eval_functors() {
  static EvalFunctorRegistry registry("functor", "iterator");
  return registry;
}

std::unique_ptr<Iterator> iterator_of_functor(const Config& config, const Context& context) {
  return std::make_unique<FunctorIterator>(config, context);
}

}  // namespace stepop
