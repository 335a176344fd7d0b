#!/bin/bash
# ResumeProgram of slurm.conf; its argument is a host list.
exec /opt/soperator/bin/power-manager resume --nodes "$1"
