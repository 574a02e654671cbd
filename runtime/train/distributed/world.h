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

namespace stepop {

class Link;

/// The processes that train together: this one's rank among them, and what they say to each other.
/// All of them call the same functions in the same order; each waits there for the others. A
/// process that trains alone is a world of size 1, in which these functions cost nothing.
///
/// Tensors go through PyTorch's c10d, with Gloo between CPUs; texts, and waiting without a limit,
/// through its TCPStore, which rank 0 (or torchrun) keeps. A thread says four times a second that
/// this process lives, and looks whether the others do.
///
/// Throws PeerError when another process failed, hangs or is gone.
class World {
 public:
  /// A world of one process.
  World();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Meets the others. Throws Error when they do not come within five minutes, when rank 0's port
  /// is taken, when two have one rank, or another number of processes; UsageError when this build
  /// knows no c10d and there are several processes.
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

  /// Seconds that a process waits for another one before it counts as hanging; not while rank 0
  /// does work of its own, see `from_root`.
  void set_time_limit(double seconds);

  // Each changes a contiguous tensor in place.

  void sum(const at::Tensor& tensor);
  void max(const at::Tensor& tensor);
  /// That of one process becomes everybody's.
  void broadcast(const at::Tensor& tensor, int from = 0);

  /// The largest of each number; infinities and NaN are no numbers here.
  std::vector<double> max(const std::vector<double>& numbers);

  /// That of rank 0.
  std::string broadcast_text(const std::string& text);
  /// Those of all, by rank.
  std::vector<std::string> gather_texts(const std::string& text);
  /// Those of all at rank 0, by rank; nothing at the others.
  std::vector<std::string> gather_bytes_at_root(const std::string& bytes);

  /// Rank 0 calls `work`; the others wait for what it returns, for as long as rank 0 lives.
  /// What `work` throws ends all; Interrupted is thrown by all.
  std::string from_root(const std::function<std::string()>& work);
  void wait_for_root(const std::function<void()>& work);

  /// Throws UsageError, at all, when `value` is not the same everywhere: `what` and both values are
  /// in its message.
  void check_same(const std::string& what, const std::string& value);

  /// The step that is at hand, for messages about a process that hangs.
  void set_step(int64_t step);

  /// Tells the others why this process ends; the first one counts. From here on this process must
  /// end by `_exit`, see `is_broken`.
  void report_failure(const std::string& text, int exit_code) noexcept;
  /// Whether a world broke in this process: threads that wait for others are left behind.
  static bool is_broken();
  /// Whether rank 0 cannot be reached any more, so that it cannot say for this process what
  /// happened.
  bool is_cut_off() const;

  /// The regular end: waits until all are there.
  void finish();

  /// For what talks to c10d itself; null in a world of size 1.
  Link* link() const { return link_.get(); }

 private:
  World(const Place& place, std::unique_ptr<Link> link);

  Place place_;
  std::unique_ptr<Link> link_;
};

}  // namespace stepop
