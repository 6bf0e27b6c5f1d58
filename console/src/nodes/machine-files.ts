/** What the machine of a node needs, as `docs/how-to/add-an-agent.md` explains it; a test compares both. */

/** @param psk null when it was shown before */
export const environmentOf = (nodeId: string, endpoint: string, psk: string | null): string =>
  `SVC_AGENT_ID=${nodeId}\nSVC_CONTROL_ENDPOINT=${endpoint}\n${psk === null ? '' : `SVC_CONTROL_PSK=${psk}\n`}`;

export const systemdLines = `npm install --global ./gateway-agent-*.tgz
gateway-agent --print-unit > /etc/systemd/system/gateway-agent.service
systemctl daemon-reload && systemctl enable --now gateway-agent
`;

export const containerLine = `docker run -d --name gateway-agent --restart always --network host --read-only --cap-drop ALL --cap-add NET_BIND_SERVICE \\
  --security-opt no-new-privileges --sysctl net.ipv4.ip_unprivileged_port_start=0 --env-file /etc/gateway-agent/env gateway-agent
`;
