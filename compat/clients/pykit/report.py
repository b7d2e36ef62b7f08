"""What a run prints, and the tokens it is given."""

import os
import traceback


def token(label):
    return os.environ["QUEEN_EDGE_TOKEN_" + label]


def say(*words):
    print(*words, flush=True)


def text_of(e):
    """What an uncaught exception shows."""
    return one_line("".join(traceback.format_exception_only(e)))


def one_line(text):
    return " ".join(str(text).split())
