// A language model: a small transformer that continues a text, character by character.
//   stepop -n first -b my_model.yaml -t
#include <stepop/cross_entropy.h>
#include <stepop/stepop.h>

namespace {
namespace nn = torch::nn;
constexpr int64_t kPerHead = 32;  // channels
constexpr int64_t kGiven = 16;    // characters at the start of a sample

// --- The network: token ids [B, T] -> logits of the next ids [B, T, V], V of the `tokenizer`.
class Block : public nn::Module {
 public:
  explicit Block(int64_t width) {
    qkv_ = register_module("qkv", nn::Linear(width, 3 * width));
    out_ = register_module("out", nn::Linear(width, width));
    mlp_ = register_module("mlp", nn::Sequential(nn::Linear(width, 4 * width), nn::GELU(),
                                                 nn::Linear(4 * width, width)));
  }

  torch::Tensor forward(torch::Tensor x) {  // [B, T, C]
    const int64_t width = x.size(2);
    const auto qkv = qkv_(at::layer_norm(x, width))
                         .view({x.size(0), x.size(1), 3, width / kPerHead, kPerHead})
                         .permute({2, 0, 3, 1, 4});  // [3, B, heads, T, 32]
    // Causal: no token sees later tokens.
    const auto seen = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0.0, true);
    x = x + out_(seen.transpose(1, 2).reshape(x.sizes()));
    return x + mlp_->forward(at::layer_norm(x, width));
  }

 private:
  nn::Linear qkv_ = nullptr, out_ = nullptr;
  nn::Sequential mlp_ = nullptr;
};

class MyModelNetwork : public stepop::Network {
 public:
  struct Params {
    int64_t context = 64, heads = 4, layers = 3;
    void declare(stepop::Parameters& p) {
      p.add("context", context, "most tokens that it looks back on", stepop::at_least(1));
      p.add("heads", heads, "of attention, of 32 channels each", stepop::at_least(1));
      p.add("layers", layers, "blocks", stepop::at_least(1));
    }
  };
  MyModelNetwork(const Params& params, const stepop::Config& config) : context_(params.context) {
    const int64_t width = kPerHead * params.heads;
    const int64_t tokens = stepop::read_tokenizer(config.root())->vocabulary_size();
    token_ = register_module("token", nn::Embedding(tokens, width));
    place_ = register_module("place", nn::Embedding(context_, width));
    blocks_ = register_module("blocks", nn::Sequential());
    for (int64_t i = 0; i < params.layers; ++i) {
      blocks_->push_back(std::make_shared<Block>(width));
    }
    logits_ = register_module("logits", nn::Linear(width, tokens));
  }

  torch::Tensor forward(const torch::Tensor& ids) override {
    const auto seen = ids.slice(1, std::max<int64_t>(0, ids.size(1) - context_));
    auto x = token_(seen) + place_(torch::arange(seen.size(1), ids.options()));
    for (auto& block : *blocks_) x = stepop::checkpointed(block.get<Block>(), x);
    return logits_(at::layer_norm(x, x.size(2)));
  }

 private:
  int64_t context_;
  nn::Embedding token_ = nullptr, place_ = nullptr;
  nn::Sequential blocks_ = nullptr;
  nn::Linear logits_ = nullptr;
};
STEPOP_REGISTER_MODEL(MyModelNetwork, {"A causal transformer over tokens."});

// --- The iterator. step_op returns closures, and stepop decides which of them run.
class MyModel : public stepop::Iterator {
 public:
  struct Params {
    int64_t sample_length = 200;
    void declare(stepop::Parameters& p) { p.add("sample_length", sample_length, "characters"); }
  };
  MyModel(const Params& params, const stepop::Context& context)
      : Iterator(context),
        model_(context.network<MyModelNetwork>()),
        update_(context.update()),
        tokenizer_(stepop::read_tokenizer(context.config)),
        characters_(params.sample_length) {}

  stepop::StepOps step_op(const stepop::Batch& batch) override {
    const auto logits = model_->forward(batch["tokens"]).transpose(1, 2);  // [B, V, T]
    const auto targets = batch["targets"];                                 // [B, T]
    const auto loss = stepop::cross_entropy(logits, targets);  // over targets other than -100
    return {
        .train_op = [=, this] { update_.step(loss); },
        .log_op =
            [=, this] {
              stepop::Logs logs{.scalars = {{"loss", loss}}};
              if (!model_->is_training()) logs.texts.set("sample", write_on(batch["tokens"][0]));
              return logs;
            },
        // Runs after each epoch over the whole validation split: nats per token of each example.
        .eval_op = [=]() -> stepop::EvalOutputs {
          return {.labels = {{"loss", stepop::cross_entropy_of_examples(logits, targets)}}};
        },
    };
  }

 private:
  /// The start of a text, and in a new paragraph the network's continuation.
  std::string write_on(torch::Tensor ids) {
    ids = ids.slice(0, 0, kGiven).unsqueeze(0);  // [1, T]
    for (int64_t i = 0; i < characters_; ++i) {
      const auto likely = model_->forward(ids).select(1, -1).softmax(-1);  // [1, V]
      ids = torch::cat({ids, likely.multinomial(1)}, 1);
    }
    ids = ids.cpu();
    const std::span all(ids.data_ptr<int64_t>(), static_cast<size_t>(ids.numel()));
    const auto text = [&](const auto& part) { return tokenizer_->decode(part); };
    return text(all.first(kGiven)) + "...\n\n..." + text(all.subspan(kGiven));
  }

  std::shared_ptr<MyModelNetwork> model_;
  stepop::Update& update_;
  std::unique_ptr<stepop::Tokenizer> tokenizer_;
  int64_t characters_;
};
STEPOP_REGISTER_ITERATOR(MyModel, {"Writes a text on."});

}  // namespace
