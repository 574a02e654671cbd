#pragma once

#include <cstdint>
#include <string_view>

namespace stepop {

/// The CRC-32C of `bytes` (Castagnoli's polynomial; RFC 3720, appendix B.4), that of iSCSI, ext4
/// and TensorFlow's records. 0 for no bytes.
uint32_t crc32c(std::string_view bytes);

}  // namespace stepop
