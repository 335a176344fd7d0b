#!/bin/bash
# ResumeFailProgram of slurm.conf: what did not come up is given back.
exec /opt/soperator/bin/power-manager suspend --nodes "$1"
