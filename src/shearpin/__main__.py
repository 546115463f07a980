"""`python -m shearpin` is the command `shearpin`."""

from __future__ import annotations

from shearpin.cli import main

if __name__ == "__main__":
    main(prog_name="shearpin")
