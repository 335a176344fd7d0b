#!/bin/bash
# SuspendProgram of slurm.conf; its argument is a host list.
exec /opt/soperator/bin/power-manager suspend --nodes "$1"
