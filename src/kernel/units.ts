/**
 * The systemd units of the service and of the agent, each written once: the packages install them, `--print-unit` prints
 * them. Neither starts without its settings. Implements `docs/contract/joining.md#what-a-release-is`.
 */

/** The paths of the programs in the Debian packages. */
export const installed = {
  service: '/usr/lib/gateway-control/dist/gateway-control.js',
  agent: '/usr/lib/gateway-agent/gateway-agent.cjs',
} as const;

/**
 * The rights of both: to open ports below 1024, and nothing else. Node compiles as it runs, so memory may be made
 * executable, and it needs `@pkey`, which `@system-service` lacks in some releases of systemd. AF_NETLINK shows the
 * machine's addresses.
 */
const hardening = `AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
RemoveIPC=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service @pkey
UMask=0077`;

interface Unit {
  readonly description: string;
  /** Lines. */
  readonly conditions: string;
  readonly service: string;
  /** The program and its arguments. */
  readonly command: readonly string[];
}

/** Log lines have a priority of their own; one that has none says why a process ends: `SyslogLevel`. */
const unit = ({ description, conditions, service, command }: Unit): string => `[Unit]
Description=${description}
After=network-online.target
Wants=network-online.target
${conditions}

[Service]
${service}
ExecStart=${command.map(quoted).join(' ')}
Restart=always
RestartSec=2
SyslogLevel=err
LimitNOFILE=65536
${hardening}

[Install]
WantedBy=multi-user.target
`;

/** A word of a command line, quoted so that systemd takes it literally. */
const quoted = (word: string): string =>
  /^[\w./:@+-]+$/.test(word) ? word : `"${word.replaceAll(/["\\]/g, '\\$&').replaceAll(/[%$]/g, '$&$&')}"`;

/** @param node the path of Node @param program the path of the service's program */
export const serviceUnit = (node: string, program: string): string =>
  unit({
    description: 'Gateway control service',
    conditions: 'ConditionPathExists=/etc/gateway-control/env',
    service: `User=gateway-control
StateDirectory=gateway-control
StateDirectoryMode=0700
WorkingDirectory=%S/gateway-control
Environment=SVC_DATA_DIR=%S/gateway-control
EnvironmentFile=/etc/gateway-control/env
ExecReload=/bin/kill -HUP $MAINPID
TimeoutStopSec=30`,
    command: [node, program],
  });

/** @param node the path of Node @param program the path of the agent's program */
export const agentUnit = (node: string, program: string): string =>
  unit({
    description: 'Gateway agent',
    conditions: `ConditionPathExists=|/etc/gateway-agent/env
ConditionPathExists=|/var/lib/gateway-agent/identity.json`,
    service: `DynamicUser=yes
StateDirectory=gateway-agent
StateDirectoryMode=0700
Environment=SVC_AGENT_METRICS_ADDR=127.0.0.1:9105
EnvironmentFile=-/etc/gateway-agent/env
ExecReload=/bin/kill -HUP $MAINPID
RestartPreventExitStatus=2 3`,
    command: [node, program, 'run'],
  });
