#!/usr/bin/env python3
# The PowerAction program of slurm.conf.
import os
import sys

os.execv("/usr/local/bin/slipway-node", ["slipway-node", "worker-handoff", *sys.argv[1:]])
