/**
 * `/join.sh`, written for the person who reads it before running it. Nothing runs before its last byte has arrived, so
 * a truncated download does nothing. Implements `docs/contract/joining.md#the-machines-side`.
 */
import { quoted } from '../join-command.js';

interface ScriptValues {
  /** Where the program is downloaded from: an origin. */
  readonly base: string;
  /** Where the agent connects, unless the script is given another endpoint. */
  readonly endpoint: string;
  /** The program's name under `/agent/`. */
  readonly file: string;
  /** Of the program, in hexadecimal. */
  readonly sha256: string;
}

/** @returns POSIX sh */
export const joinScript = ({ base, endpoint, file, sha256 }: ScriptValues): string => String.raw`#!/bin/sh
# Makes this machine a node: installs the agent of the gateway service, with a systemd unit that joins by the token in
# SVC_JOIN_TOKEN, or asked for. Options: --endpoint ENDPOINT (where agents connect), --uninstall (undoes every step).
join_gateway() {
  base=${quoted(base)}
  endpoint=${quoted(endpoint)}
  file=${quoted(file)}
  sha256=${quoted(sha256)}
  lib=/usr/local/lib/gateway-agent bin=/usr/local/bin
  unit=/etc/systemd/system/gateway-agent.service
  etc=/etc/gateway-agent state=/var/lib/gateway-agent
  token=$SVC_JOIN_TOKEN
  unset SVC_JOIN_TOKEN
  uninstall='' todo='' work='' asking='' started=''
  set -eu
  umask 077
  say() { printf 'join.sh: %s\n' "$*" >&2; }
  die() { say "$*"; exit 1; }

  while [ $# -gt 0 ]; do
    case $1 in
    --uninstall) uninstall=yes todo='remove it as it was installed, such as by apt purge gateway-agent' ;;
    --endpoint) endpoint=$2; shift ;;
    *) die 'expected --endpoint ENDPOINT or --uninstall. The token is no argument, which others could read' ;;
    esac
    shift
  done
  [ "$(id -u)" = 0 ] || die 'expected root. Nothing was done: open a root shell (sudo -i), and run the same line there'
  [ -d /run/systemd/system ] || die 'expected a machine that runs systemd. Nothing was done'
  if [ -e /usr/lib/gateway-agent ] || { [ -e "$unit" ] && [ ! -e "$lib" ]; }; then
    [ -n "$todo" ] || todo="gateway-agent join --endpoint '$endpoint'"
    die "an agent is here that is not from this script. Nothing was done: $todo"
  fi

  if [ -n "$uninstall" ]; then
    systemctl disable --now gateway-agent || say 'the unit does not run'
    rm -rf "$unit" "$bin/gateway-agent" "$etc" "$state" /var/lib/private/gateway-agent "$lib"
    systemctl daemon-reload
    systemctl reset-failed gateway-agent 2>/dev/null || :
    say 'uninstalled. The node is in the fleet until somebody deletes it there'
    return
  fi

  clean_up() {
    code=$?
    trap '' HUP INT PIPE QUIT TERM
    trap - EXIT
    [ -z "$asking" ] || stty echo </dev/tty
    rm -rf "$etc/env.joining" "$work"
    # Without the token.
    [ ! -e "$etc/env.joined" ] || mv -f "$etc/env.joined" "$etc/env"
    if [ -n "$started" ] && ! has_joined; then
      systemctl disable --now gateway-agent || :
      say 'this machine has not joined, and its agent does not run. The same line tries again'
    fi
    exit "$code"
  }
  # Up to a minute, for a condition.
  wait_until() {
    tries=30
    until "$@"; do
      tries=$((tries - 1))
      if [ "$tries" = 0 ] || systemctl is-failed --quiet gateway-agent; then return 1; fi
      sleep 2
    done
  }
  has_joined() { [ -e "$state/identity.json" ]; }
  metrics() { { echo 127.0.0.1:9105; sed -n 's/^SVC_AGENT_METRICS_ADDR=//p' "$etc/env"; } 2>/dev/null | tail -n 1; }
  is_connected() { curl -fs --noproxy '*' -m 2 "http://$(metrics)/healthz" | grep -q '"connected":true'; }
  show_log() { journalctl -u gateway-agent -n 5 -o cat --no-pager >&2 || :; }

  trap clean_up EXIT
  trap 'exit 1' HUP INT PIPE QUIT TERM
  if ! has_joined; then
    ! grep -qs '^SVC_AGENT_ID=.' "$etc/env" || die "this machine is the node that $etc/env names. Nothing was done"
    node=$(command -v node) || die 'expected Node 20.19 or newer. Nothing was done: install it (nodejs.org) first'
    node=$("$node" -p 'const [a, b] = process.versions.node.split("."); a > 20 || (a == 20 && b > 18) ? process.execPath : ""')
    [ -n "$node" ] || die "expected Node 20.19 or newer, got $(node --version). Nothing was done"
    case $node in /root/* | /home/*) die "expected Node where every user can run it, not $node. Nothing was done" ;; esac
    if [ -z "$token" ]; then
      (: </dev/tty) 2>/dev/null || die 'expected the join token in SVC_JOIN_TOKEN, or a terminal to ask on'
      asking=yes
      stty -echo </dev/tty
      printf 'Join token: ' >/dev/tty
      IFS= read -r token </dev/tty || :
      stty echo </dev/tty
      asking=''
      printf '\n' >/dev/tty
    fi
    case $token in *[!A-Za-z0-9_-]*) token='' ;; svcjoin1_*) ;; *) token='' ;; esac
    [ -n "$token" ] || die 'expected a join token: svcjoin1_...'

    (umask 022 && mkdir -p "$lib" "$bin")
    work=$(mktemp -d "$lib/new.XXXXXX")
    curl -fsSL --retry 9 -m 300 -o "$work/agent" "$base/agent/$file" || die "no download of $base/agent/$file"
    [ "$(sha256sum <"$work/agent")" = "$sha256  -" ] || die 'the download is not as expected. Run the line again'
    chmod 755 "$work/agent"
    mv -f "$work/agent" "$lib/gateway-agent.cjs"
    ln -sf "$lib/gateway-agent.cjs" "$bin/gateway-agent"
    "$node" "$lib/gateway-agent.cjs" --print-unit >"$work/unit"
    chmod 644 "$work/unit"
    mv -f "$work/unit" "$unit"
    # What stays when the agent has joined is written first, so that only a rename takes the token out.
    mkdir -p "$etc"
    grep -sv -e '^SVC_JOIN_TOKEN=' -e '^SVC_CONTROL_ENDPOINT=' "$etc/env" >"$etc/env.joined" || :
    printf 'SVC_CONTROL_ENDPOINT=%s\n' "$endpoint" >>"$etc/env.joined"
    { cat "$etc/env.joined" && printf 'SVC_JOIN_TOKEN=%s\n' "$token"; } >"$etc/env.joining"
    started=yes
    mv -f "$etc/env.joining" "$etc/env"
    systemctl daemon-reload
    systemctl restart gateway-agent
    wait_until has_joined || { show_log && die 'the agent did not join: the lines above say why'; }
    mv -f "$etc/env.joined" "$etc/env"
  fi
  systemctl enable --now gateway-agent
  say "joined as node $(sed -n 's/.*"node_id": "\([^"]*\)".*/\1/p' "$state/identity.json")"
  wait_until is_connected || { show_log && die 'the agent keeps trying to connect: journalctl -u gateway-agent'; }
  say 'connected'
}
{ join_gateway "$@"; }
`;
