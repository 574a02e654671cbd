// A trained network in a program of your own: iterators/README.md.
#include "runtime/networks/load_network.h"
#include "words.cpp"

int main(int, char** argv) {  // apply logs/<time>_<name>
  const auto model =
      stepop::load_network<Letters>(argv[1]);  // in evaluation mode, without gradients

  const auto scores = model->forward(torch::arange(26).unsqueeze(0))[0];
  for (int64_t i = 0; i < 26; ++i) {
    if (scores[i].item<float>() > 0) fmt::print("{}", static_cast<char>('a' + i));
  }
  fmt::print("\n");
}
