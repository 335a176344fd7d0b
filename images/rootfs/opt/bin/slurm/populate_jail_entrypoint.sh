#!/bin/bash
# Fills the jail: from a volume at /jail, else from this image's own root.
exec /usr/local/bin/slipway-node populate-jail "$@"
