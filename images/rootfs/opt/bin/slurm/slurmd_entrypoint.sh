#!/bin/bash
# slurmd of a worker, under the name that supervisord's configuration calls.
exec slipway-node slurmd "$@"
