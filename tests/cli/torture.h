#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/formats/state.h"
#include "tests/scratch_folder.h"

namespace stepop {

/// What a process was doing when it was killed, as its files tell.
enum class Phase { kLoading, kStep, kCheckpoint, kEvaluation, kCallback };
inline constexpr int kPhases = 5;
const char* phase_name(Phase phase);

/// How a process ended.
struct ProcessEnd {
  int signal = 0;     ///< That killed it, or 0.
  int exit_code = 0;  ///< When none did.
  std::string out;
  std::string err;
};

/// What is trained while it is tortured.
struct Torture {
  std::vector<std::string> configs;  ///< Below configs/.
  std::string yaml;                  ///< On top of them.
  int64_t steps;
  int workers;  ///< Loader threads that do start, at least, of all processes.
  /// That share each batch. A disturbance is of any of them, or of their parent.
  int processes = 1;
};

/// The digits, with everything that could make a restart differ: dropout, augmentation, two
/// workers, accumulation, averages of the weights, a growing log interval, means of many steps,
/// checkpoints every few steps of which few are kept, evaluations in mid-epoch with several
/// callbacks.
Torture torture_of_digits();
/// The same by two processes, each of which has the optimizer's state of its part of the weights.
Torture torture_of_processes();
/// A small VUNet: samples of its latents in training, logs and evaluations, a loss that ramps.
Torture torture_of_vunet();
/// A GAN described by its config: a discriminator that begins in mid-run and trains in every second
/// step, batches in two parts, noise, averages.
Torture torture_of_toy_srgan();
/// A small pix2pix: two networks, dropout, a pool of fakes, a weight that falls, averages of the
/// generator, which evaluations use.
Torture torture_of_pix2pix();
/// A small diffusion transformer trained by rectified flow: random times and classes, samples with
/// averaged weights, a power law of averages.
Torture torture_of_flow();
/// An autoencoder and its discriminator in turn, in phases that are no divisor of an epoch.
Torture torture_of_autoencoder();

/// The processes that this one started and that have not ended.
std::vector<int> children_of(int pid);

/// A training with the real binary.
class TortureRun {
 public:
  explicit TortureRun(Torture torture);

  /// Starts the training, or resumes it: `stepop -p RUN -t`, and nothing else. `disturb` is
  /// called again and again with the pid while it runs. With `file_limit` no file gets more bytes,
  /// as on a disk that is full.
  ProcessEnd start(const std::function<void(int pid)>& disturb = {}, int64_t file_limit = 0);

  /// Where the run is now. Looks at files only.
  Phase phase() const;

  /// Empty before the first start made it.
  std::string root() const;
  /// The last weights, with all that is tracked but times.
  State state() const;
  /// The lines of metrics.jsonl without their times.
  std::vector<std::string> metrics() const;
  /// The arrays that the evaluations wrote, and their scalars, by `<step>/<key>`. Several of one
  /// step must be the same.
  State outputs() const;
  /// What `latest` and `best` point at, and the bytes of all pictures, by their paths in the run.
  std::map<std::string, std::string> links_and_pictures() const;
  /// The most loader threads that the last start had.
  int workers() const { return workers_; }

  const Torture& torture() const { return torture_; }

 private:
  Torture torture_;
  ScratchFolder folder_;
  int64_t log_size_ = 0;  ///< Of log.txt when the last start began.
  int workers_ = 0;
  int starts_ = 0;
};

/// Fails the test when `run` did not end with the very bits of a run that nobody disturbed:
/// weights, optimizer, random state, averages, outputs of all evaluations, metrics, pictures; with
/// the same checkpoints, latest and best among them. A run that `was_asked_to_stop` may have kept
/// one that it saved then, in the place of an older one.
void check_same(const TortureRun& run, bool was_asked_to_stop);

/// The number of disturbances that `make torture N=...` asks for, else `fallback`; the seed of
/// `make torture SEED=...`, else one of the clock.
int torture_count(int fallback);
uint64_t torture_seed();

}  // namespace stepop
