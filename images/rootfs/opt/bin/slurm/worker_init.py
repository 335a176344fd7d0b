#!/usr/bin/env python3
# Pods call `python3 worker_init.py wait-controller [wait-topology]`.
import os
import sys

# As a container's first process the script would not hear the signal to stop.
os.execv("/usr/bin/tini", ["tini", "--", "/opt/bin/slurm/worker_init_entrypoint.sh", *sys.argv[1:]])
