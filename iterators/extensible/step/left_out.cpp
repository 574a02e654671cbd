#include "iterators/extensible/step/left_out.h"

namespace stepop::extensible {
namespace {

std::string_view reason_of(const std::vector<LeftOut>& all, std::string_view name) {
  for (const auto& each : all) {
    if (each.name == name) return each.reason;
  }
  return {};
}

constexpr std::string_view kUnreachable =
    "DL-Art-School has its code, but no config can name it there";

}  // namespace

const std::vector<LeftOut>& left_out_injectors() {
  static const std::vector<LeftOut> all = {
      {"discrete_token",
       "it needs a trained DVAE of DL-Art-School; a network of yours is called by `type: "
       "generator`"},
      {"gpt_voice_latent",
       "it needs a trained UnifiedVoice and a DVAE of DL-Art-School; a network of yours is called "
       "by `type: generator`"},
      {"reverse_univnet",
       "it needs a trained UnivNet vocoder; a network of yours is called by `type: generator`"},
      {"conditioning_latent_distribution_divergence",
       "it needs a trained UnifiedVoice or DiffusionTts of DL-Art-School; a network of yours is "
       "called by `type: generator`"},
      {"mel2vec_codes",
       "it needs a trained music codegen of DL-Art-School; a network of yours is called by `type: "
       "generator`"},
      {"clvp_text",
       "it needs a trained CLVP of DL-Art-School; a network of yours is called by `type: "
       "generator`"},
      {"music_cheater_latent",
       "it needs the trained encoder music_cheater_encoder_256 of DL-Art-School; a network of "
       "yours is called by `type: generator`"},
      {"music_cheater_ar",
       "it needs the trained network music_cheater_ar of DL-Art-School; a network of yours is "
       "called by `type: generator`"},
      {"multi_frame_combiner", "it needs FlowNet2, which is not in DL-Art-School's tree either"},
      {"step_interleave",
       "it builds itself without end in DL-Art-School, so no config can use it; `type: for_each` "
       "goes over the elements of a dimension"},
      {"injector", "it is the base class of the others in DL-Art-School"},
      {"teco_recurrent_generated_sequence_injector", kUnreachable},
      {"teco_flow_adjustment", kUnreachable},
      {"stereoscopic_resample", kUnreachable},
      {"stereoscopic_flow2image", kUnreachable},
      {"progressive_zoom_generator", kUnreachable},
  };
  return all;
}

const std::vector<LeftOut>& left_out_losses() {
  static const std::vector<LeftOut> all = {
      {"interpreted_feature",
       "it needs a network that was trained to see the features of VGG19 in other images; `type: "
       "feature` compares images of one kind"},
      {"teco_gan", "it needs FlowNet2, and DL-Art-School cannot import it either"},
      {"teco_pingpong", "it needs FlowNet2, and DL-Art-School cannot import it either"},
  };
  return all;
}

std::string_view why_injector_is_left_out(std::string_view name) {
  return reason_of(left_out_injectors(), name);
}

std::string_view why_loss_is_left_out(std::string_view name) {
  return reason_of(left_out_losses(), name);
}

}  // namespace stepop::extensible
