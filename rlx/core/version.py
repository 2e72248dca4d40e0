"""The version of rlx and the address of its repository; setup.py and the site read both here."""
__version__ = "0.2.0"
ADDRESS = "https://github.com/OWNER/rlx"
