#!/bin/bash
# The proxy before dockerd, under the name that pods call.
exec slipway-node docker-proxy "$@"
