#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// Why a key of DL-Art-School is left out in a translation: `name`, a key at the top;
/// `logger/is_mel_spectrogram`; `datasets/labeler`; `parts/fp16`, a key of a network, an injector
/// or a loss. `no counterpart` for an unknown key.
std::string why_dlas_key_is_left_out(std::string_view path);

}  // namespace stepop
