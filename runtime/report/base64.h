#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// RFC 4648's base64, with padding: how a page holds a picture.
std::string base64(std::string_view bytes);

}  // namespace stepop
