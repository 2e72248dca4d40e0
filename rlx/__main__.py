"""The command `rlx`, also as `python -m rlx`; without arguments it explains itself."""


def main() -> None:
  """Runs the command that sys.argv names."""
  from rlx import cli
  cli.main()


if __name__ == "__main__": main()
