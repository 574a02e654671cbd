#pragma once

#include <string>

namespace stepop {

/// A number of bytes, for people: `5 B`, `266.4 kB`, `3.4 MB`, `1.2 GB`, by thousands.
std::string size_text(double bytes);

}  // namespace stepop
