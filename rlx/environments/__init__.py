"""Environments: what answers a policy's turns. A class per environment; no jax here."""
