"""Makes rates.safetensors: what NectarGAN's own schedules give in each epoch.
    PYTHONPATH=<NectarGAN v0.2.3> python tests/data/pix2pix/make_rates.py
The rates are those of an optimizer that its TorchScheduler steps after each epoch; the weights are
those of its loss manager, which counts epochs from 1. The metadata has the schedule of each here.
"""

import pathlib

import torch
from nectargan.scheduling.data import Schedule
from nectargan.scheduling.scheduler_torch import TorchScheduler
from nectargan.scheduling.schedules import schedule_map
from safetensors.torch import save_file

EPOCHS = 210


def rates(**options):
    optimizer = torch.optim.Adam([torch.zeros(1)], lr=options["initial_value"])
    scheduler = TorchScheduler(optimizer, Schedule(**options))
    numbers = []
    for _ in range(EPOCHS):
        numbers.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return numbers


def weights(**options):
    schedule = Schedule(**options)
    return [schedule_map[schedule.schedule](schedule, epoch + 1) for epoch in range(EPOCHS)]


CASES = {
    "default": ("{class: linear, from: 2.0e-4, to: 0, start: 99e, steps: 101e, per: epoch}",
                rates(schedule="linear", start_epoch=100, end_epoch=201, initial_value=2e-4,
                      target_value=0.0)),
    "exponential": ("{class: chain, per: epoch, parts: [{schedule: 2.0e-4, steps: 49e}, {schedule: "
                    "{class: exponential, from: 2.0e-4, to: 1.0e-6, steps: 100e}}]}",
                    rates(schedule="exponential", start_epoch=50, end_epoch=150,
                          initial_value=2e-4, target_value=1e-6)),
    "part": ("{class: chain, parts: [{schedule: 2.0e-4, steps: 49e}, {schedule: {class: exponential"
             ", from: 2.0e-4, to: 1.0e-6, steps: 100e, per: epoch}}]}",
             rates(schedule="exponential", start_epoch=50, end_epoch=150, initial_value=2e-4,
                   target_value=1e-6)),
    "weight": ("{class: linear, from: 0, to: 3, start: 8e, steps: 10e, per: epoch}",
               weights(schedule="linear", start_epoch=10, end_epoch=20, initial_value=0.0,
                       target_value=3.0)),
}

if __name__ == "__main__":
    save_file({name: torch.tensor(numbers, dtype=torch.float64)
               for name, (_, numbers) in CASES.items()},
              pathlib.Path(__file__).parent / "rates.safetensors",
              metadata={name: config for name, (config, _) in CASES.items()})
