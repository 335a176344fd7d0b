#!/usr/bin/env python3
# Pods call `python3 worker_init.py wait-controller [wait-topology]`.
import os
import sys

os.execv("/opt/bin/slurm/worker_init_entrypoint.sh", ["worker_init", *sys.argv[1:]])
