import os

# Before jax starts: several CPU devices for the sharding tests, and no clash
# of thread pools on small machines.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax  # pylint: disable=g-import-not-at-top

jax.config.update("jax_numpy_rank_promotion", "raise")
