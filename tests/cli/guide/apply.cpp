// A trained network in a program of your own: iterators/IN_DEPTH.md.
#include <stepop/load_network.h>
#include "words.cpp"

// apply logs/<time>_<name>
int main(int, char** argv) {
  // In evaluation mode, without gradients.
  const auto model = stepop::load_network<Letters>(argv[1]);

  const auto scores = model->forward(torch::arange(26).unsqueeze(0))[0];
  for (int64_t i = 0; i < 26; ++i) {
    if (scores[i].item<float>() > 0) fmt::print("{}", static_cast<char>('a' + i));
  }
  fmt::print("\n");
}
