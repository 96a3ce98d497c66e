"""`python -m heedful`."""

from heedful.cli.startup import main

if __name__ == "__main__":  # worker processes import this file too
    main()
