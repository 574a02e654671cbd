// A trained network in a program of your own: iterators/README.md.
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/config/yaml_reader.h"
#include "runtime/networks/network.h"
#include "words.cpp"

int main(int, char** argv) {  // apply logs/<time>_<name>/train/checkpoints/latest.safetensors
  const auto checkpoint = stepop::load_checkpoint(argv[1]);
  const stepop::Config config(stepop::parse_yaml(checkpoint.config, {argv[1], 0}));
  Letters model(config.at("model"));
  stepop::State weights;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (name.starts_with("model.")) weights[name.substr(6)] = tensor;
  }
  stepop::load_tensors("model", stepop::tensors_of(model), weights);
  model.eval();
  const at::NoGradGuard no_grad;

  const auto scores = model.forward(torch::arange(26).unsqueeze(0))[0];
  for (int64_t i = 0; i < 26; ++i) {
    if (scores[i].item<float>() > 0) fmt::print("{}", static_cast<char>('a' + i));
  }
  fmt::print("\n");
}
