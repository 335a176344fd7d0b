#!/bin/bash
# complement_jail.sh [-j JAIL] [-u UPPER] [-w]
exec slipway-node complement-jail "$@"
