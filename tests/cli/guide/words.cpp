// What iterators/README.md says of files, examples of different sizes, and numbers of an update:
// a network that learns to say of each letter whether it is a vowel.
#include <stepop/stepop.h>

#include <fstream>

namespace {

class Words : public stepop::Dataset {
 public:
  struct Params {
    stepop::Path path;
    void declare(stepop::Parameters& p) { p.require("path", path, "a text file"); }
  };
  explicit Words(const Params& params) {
    std::ifstream file(params.path.text);
    for (std::string line; std::getline(file, line);) words_.push_back(line);
  }

  int64_t size() const override { return static_cast<int64_t>(words_.size()); }

  stepop::Example get(int64_t index, stepop::Random& /*random*/) const override {
    std::vector<int64_t> letters;
    for (const char c : words_[static_cast<size_t>(index)]) letters.push_back(c - 'a');
    return {.tensors = {{"letters", torch::tensor(letters)}}, .texts = {}};
  }

  stepop::Batch collate(const std::vector<stepop::Example>& examples,
                        std::vector<int64_t> indices) const override {
    std::vector<at::Tensor> letters;
    std::vector<int64_t> lengths;
    for (const auto& example : examples) {
      letters.push_back(example.tensors.at("letters"));  // [length]
      lengths.push_back(letters.back().size(0));
    }
    return {{{"letters", at::pad_sequence(letters, /*batch_first=*/true)},  // [B, longest]
             {"length", torch::tensor(lengths)}},
            {},
            std::move(indices)};
  }

 private:
  std::vector<std::string> words_;
};
STEPOP_REGISTER_DATASET(Words, {"The lines of a file."});

// With its parameters in the registration, as before `Params`.
class Letters : public stepop::Network {
 public:
  explicit Letters(const stepop::Config& params)
      : table_(register_module("table",
                               torch::nn::Embedding(params.get_at_least("letters", 1, 26), 1))) {}

  /// int64 [B, longest] -> [B, longest].
  at::Tensor forward(const at::Tensor& letters) override {
    return table_->forward(letters).squeeze(2);
  }

 private:
  torch::nn::Embedding table_;
};
STEPOP_REGISTER_MODEL(Letters, {"A number for each letter.", {{"letters", "26", ""}}});

class Vowels : public stepop::Iterator {
 public:
  explicit Vowels(const stepop::Context& context)
      : Iterator(context), model_(context.network<Letters>()), update_(context.update()) {}

  stepop::StepOps step_op(const stepop::Batch& batch) override {
    const auto letters = batch["letters"];
    const auto length = batch["length"];
    const auto scores = model_->forward(letters);
    const auto is_vowel = torch::isin(letters, torch::tensor({0, 4, 8, 14, 20})).to(torch::kFloat);
    const auto is_there = torch::arange(letters.size(1)).unsqueeze(0) < length.unsqueeze(1);
    const auto loss = at::binary_cross_entropy_with_logits(scores, is_vowel, is_there);
    return {
        .train_op = [=, this] { update_.step(loss); },
        .log_op =
            [=, this] {
              stepop::Logs logs{.scalars = {{"loss", loss}, {"lr", update_.lr()}}};
              logs.scalars.set("grad_norm", update_.grad_norm());  // with clip_norm
              return logs;
            },
        .eval_op =
            [=] {
              std::vector<at::Tensor> of_words;  // one tensor for each example
              for (int64_t i = 0; i < batch.size(); ++i) {
                of_words.push_back(scores[i].slice(0, 0, length[i].item<int64_t>()));
              }
              return stepop::EvalOutputs{.outputs = {{"scores", of_words}}};
            },
    };
  }

 private:
  std::shared_ptr<Letters> model_;
  stepop::Update& update_;
};
STEPOP_REGISTER_ITERATOR(Vowels, {"Learns which letters are vowels."});

}  // namespace
