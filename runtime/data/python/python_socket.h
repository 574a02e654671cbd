#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {

/// The other side of a socket has ended.
class SocketClosed : public Error {
 public:
  SocketClosed() : Error("the other side of a socket has ended") {}
};

/// Two connected sockets: ours, and that of a Python process.
std::pair<OpenFile, OpenFile> make_sockets();

/// Sends all bytes, with copies of the open files `files`. Calls `waiting` about 20 times a second
/// while the other side does not take them, and passes on what it throws. Throws SocketClosed.
void send_bytes(const OpenFile& socket, const void* bytes, size_t size,
                const std::function<void()>& waiting, std::initializer_list<int> files = {});

/// Sends a message with its length before it.
void send_message(const OpenFile& socket, const std::string& message,
                  const std::function<void()>& waiting);

/// Receives exactly `size` bytes; `file` becomes an open file that came with them, if it is not
/// null. Calls `waiting` about 20 times a second while nothing comes, and passes on what it throws.
/// Throws SocketClosed.
void receive_bytes(const OpenFile& socket, void* bytes, size_t size,
                   const std::function<void()>& waiting, OpenFile* file = nullptr);

/// Receives a message with its length before it; throws Error for one above 2 GB.
std::string receive_message(const OpenFile& socket, const std::function<void()>& waiting,
                            OpenFile* file = nullptr);

}  // namespace stepop
