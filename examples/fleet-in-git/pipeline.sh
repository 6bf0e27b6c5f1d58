#!/usr/bin/env bash
# What a pipeline does with the fleet file: `pipeline.sh plan` on a branch, `pipeline.sh apply` on the main one.
# From the environment: SVC_SERVER, SVC_TOKEN (an API token: a viewer's for plans, an operator's for applies), SVCCTL (the command, if
# it is not `npx svcctl`), FLEET_ENV (names of the variables that the file may read, separated by spaces).
set -euo pipefail
cd "$(dirname "$0")"
read -ra svcctl <<<"${SVCCTL:-npx svcctl}"

case "${1:-}" in
  plan)
    # Exit code 2 means that there are changes, which is what a branch is for. Obstacles and mistakes exit with 1.
    "${svcctl[@]}" plan -f fleet.yaml --prune --no-secrets || [ $? -eq 2 ]
    ;;
  apply)
    secrets=()
    for name in ${FLEET_ENV:-}; do secrets+=(--env "$name"); done
    "${svcctl[@]}" apply -f fleet.yaml --prune --yes "${secrets[@]}"
    ;;
  *)
    echo "expected plan or apply" >&2
    exit 3
    ;;
esac
