"""All steps of one release: ``python -m steps < arguments.json``, a line of JSON on stdout for
each.

Decides which steps run beside each other. Must not know what they do. Whatever the SDK prints goes
to stderr.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

faulthandler.enable()  # Says where everybody stands when somebody loses patience.
warnings.simplefilter("ignore")
output = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

from . import LAST, TRACKS, step  # noqa: E402 - importing takes seconds, and the SDK may print

here, lock = step.Here(json.load(sys.stdin)), threading.Lock()
with ThreadPoolExecutor(len(TRACKS)) as pool:
    list(pool.map(lambda modules: step.run(here, modules, output, lock), TRACKS))
step.run(here, LAST, output, lock)
