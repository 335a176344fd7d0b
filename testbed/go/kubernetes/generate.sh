#!/bin/sh
# Writes go.mod and go.sum of the wrapper module for a version of Kubernetes.
#   generate.sh 1.36.4
# Kubernetes' own go.mod replaces its libraries by local folders, which counts only in the main module.
# So this is the main module, and replaces each library by its published twin.
set -eu
cd "$(dirname "$0")"
version=$1 library=v0.${1#1.}
export GOTOOLCHAIN=local GOFLAGS=-mod=mod CGO_ENABLED=0
upstream=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
{
  echo "module kubernetes.slipway.invalid"
  sed -n '/^go /p;/^godebug /p' "$upstream"
  echo "tool ("
  for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy; do
    echo "  k8s.io/kubernetes/cmd/$program"
  done
  echo ")"
  echo "require k8s.io/kubernetes v$version"
  echo "replace ("
  sed -n "s#^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging/.*#  \1 => \1 $library#p" "$upstream"
  echo ")"
} > go.mod
go mod tidy
