#!/bin/bash
# The network of a cluster, inside its sandbox: a bridge with the control plane, and a namespace per node.
#   network.sh NODES
set -eu
nodes=$1
ip link add br0 type bridge
ip addr add 10.88.0.1/16 dev br0
ip link set br0 up
# What leaves for nowhere fails at once instead of waiting for a timeout.
ip route add unreachable default
for n in $(seq "$nodes"); do
  ip netns add "node$n"
  ip link add "node$n" type veth peer name eth0 netns "node$n"
  ip link set "node$n" master br0 up
  ip -n "node$n" link set lo up
  ip -n "node$n" addr add "10.88.1.$n/16" dev eth0
  ip -n "node$n" link set eth0 up
  ip -n "node$n" route add default via 10.88.0.1
  ip route add "10.244.$n.0/24" via "10.88.1.$n"
  for m in $(seq "$nodes"); do
    [ "$m" = "$n" ] || ip -n "node$n" route add "10.244.$m.0/24" via "10.88.1.$m"
  done
done
