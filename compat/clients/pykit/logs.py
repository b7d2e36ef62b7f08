"""What a program that set up no logging is shown on its terminal."""

import contextlib
import logging


@contextlib.contextmanager
def shown(level=logging.WARNING):
    """Collect the log lines of a level and above."""
    lines = []

    class Keep(logging.Handler):
        def emit(self, entry):
            lines.append(entry.getMessage())

    keep = Keep(level)
    logging.getLogger().addHandler(keep)
    try:
        yield lines
    finally:
        logging.getLogger().removeHandler(keep)
