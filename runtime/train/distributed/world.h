#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/train/distributed/peer_error.h"
#include "runtime/train/distributed/place.h"

namespace c10d {
class Work;
}

namespace stepop {

class Link;

/// The processes that train together: this process's rank, and the communication between processes.
/// All processes call the same functions in the same order; each function waits for the other
/// processes. A process that trains alone is a world of size 1, in which these functions cost
/// nothing.
///
/// Tensors go through PyTorch's c10d with Gloo, those of a GPU by way of the host, unless
/// `use_backend` connects the GPUs. Texts, and waits without a limit, go through its TCPStore,
/// which rank 0 (or torchrun) keeps. A thread sends this process's heartbeat four times a second,
/// and watches the heartbeats of the others.
///
/// Throws PeerError when another process failed, hangs or is gone.
class World {
 public:
  /// A world of one process.
  World();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Connects to the other processes. Throws Error when they do not come within five minutes, when
  /// rank 0's port is taken, and when two processes have the same rank or different numbers of
  /// processes; UsageError for several processes in a build without c10d.
  static std::unique_ptr<World> join(const Place& place, const InterruptCheck& interrupt);
  /// Whether this build can connect processes.
  static bool can_join();

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  /// Rank 0: it writes all files and decides what is due.
  bool is_root() const { return place_.rank == 0; }
  bool is_alone() const { return place_.size == 1; }
  const Place& place() const { return place_; }
  /// `rank 1 on node7, process 123`
  std::string describe(int rank) const;

  /// The number of seconds that a process waits for another before that one counts as hanging. Not
  /// applied while rank 0 works alone, see `from_root`.
  void set_time_limit(double seconds);

  /// From now on tensors of `device` travel by the backend of this name without the host, which
  /// does not wait for them: `nccl`; `gloo` leaves all as it is. All processes call it. Returns why
  /// the backend cannot be used; empty when it can. Throws Error when the devices do not connect.
  std::string use_backend(const std::string& name, c10::Device device);
  /// Whether `use_backend` connected devices of this kind.
  bool stays_on(c10::Device device) const;

  // Each of these changes a contiguous tensor in place.

  void sum(const at::Tensor& tensor);
  void max(const at::Tensor& tensor);
  /// Copies the tensor of one process to all processes.
  void broadcast(const at::Tensor& tensor, int from = 0);

  /// The maximum of each number over the processes; infinity and NaN are not allowed.
  std::vector<double> max(const std::vector<double>& numbers);

  /// The text of rank 0.
  std::string broadcast_text(const std::string& text);
  /// The texts of all processes, by rank.
  std::vector<std::string> gather_texts(const std::string& text);
  /// The bytes of all processes at rank 0, by rank; empty in the other processes.
  std::vector<std::string> gather_bytes_at_root(const std::string& bytes);

  /// Rank 0 calls `work`; the others wait for its result, as long as rank 0 lives. An exception of
  /// `work` ends all processes; Interrupted is thrown in all processes.
  std::string from_root(const std::function<std::string()>& work);
  void wait_for_root(const std::function<void()>& work);

  /// Throws UsageError in all processes when `value` differs between processes; the message has
  /// `what` and both values.
  void check_same(const std::string& what, const std::string& value);

  /// Sets the current step, for messages about a process that hangs.
  void set_step(int64_t step);

  /// Reports to the others why this process ends; the first report counts. From now on this process
  /// must end by `_exit`, see `is_broken`.
  void report_failure(const std::string& text, int exit_code) noexcept;
  /// Whether a world broke in this process: threads that wait for other processes are left.
  static bool is_broken();
  /// Whether rank 0 is out of reach, so that it cannot report what happened to this process.
  bool is_cut_off() const;

  /// The regular end: waits for all processes.
  void finish();

  /// For code that uses c10d directly; null in a world of size 1.
  Link* link() const { return link_.get(); }

 private:
  World(const Place& place, std::unique_ptr<Link> link);

  using Start = std::function<c10::intrusive_ptr<c10d::Work>(std::vector<at::Tensor>&)>;
  void exchange(const at::Tensor& tensor, bool is_read, const Start& start);

  Place place_;
  std::unique_ptr<Link> link_;
};

}  // namespace stepop
