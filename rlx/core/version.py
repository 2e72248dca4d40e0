"""The version of rlx; setup.py reads it from this line."""
__version__ = "0.2.0"
