"""``python -m leafkernel`` is the command ``leafkernel``."""

from leafkernel.cli import main

if __name__ == "__main__":
    main()
