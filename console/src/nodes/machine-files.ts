/** What the machine of a node needs, as `docs/how-to/add-an-agent.md` explains it; a test compares both. */

export const environmentOf = (nodeId: string, endpoint: string): string =>
  `SVC_AGENT_ID=${nodeId}\nSVC_CONTROL_ENDPOINT=${endpoint}\n`;

export const systemdUnit = `[Unit]
Description=Gateway agent
After=network-online.target
Wants=network-online.target

[Service]
DynamicUser=yes
EnvironmentFile=/etc/gateway-agent/env
LoadCredential=psk:/etc/gateway-agent/psk
Environment=SVC_CONTROL_PSK_FILE=%d/psk
Environment=SVC_AGENT_METRICS_ADDR=127.0.0.1:9105
ExecStart=/usr/bin/node /usr/local/lib/gateway-agent.cjs
Restart=always
RestartSec=2
LimitNOFILE=65536
AmbientCapabilities=CAP_NET_BIND_SERVICE
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
RestrictRealtime=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service @pkey
UMask=0077

[Install]
WantedBy=multi-user.target
`;

export const containerLine = `docker run -d --name gateway-agent --restart always --network host --read-only --cap-drop ALL --cap-add NET_BIND_SERVICE \\
  --security-opt no-new-privileges --sysctl net.ipv4.ip_unprivileged_port_start=0 --env-file /etc/gateway-agent/env \\
  -e SVC_CONTROL_PSK_FILE=/run/secrets/psk -v /etc/gateway-agent/psk:/run/secrets/psk:ro gateway-agent
`;
