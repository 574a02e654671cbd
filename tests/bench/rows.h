#pragma once

namespace stepop::bench {

/// Each measures one thing against a baseline in the same run and prints its rows.
void bench_steps();
void bench_frameworks();
void bench_python_data();
void bench_exported();
void bench_start();
void bench_log();
void bench_loader();
void bench_evaluation();
void bench_outputs();
void bench_memory();
void bench_checkpoint();
void bench_resume();
void bench_code();
void bench_vunet();
void bench_extensible();
void bench_pix2pix();
void bench_device();

}  // namespace stepop::bench
