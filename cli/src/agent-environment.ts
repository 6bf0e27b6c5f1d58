/** The environment file of an agent. Pure. */

/** Noise replaces TLS, so the scheme is http although the session is encrypted. */
export const agentEndpoint = (server: string): string => `http://${new URL(server).hostname}:8443`;

/** @param psk without it, the file has a comment in its place */
export function environmentOf(nodeId: string, endpoint: string, psk: string | undefined): string {
  const secret =
    psk === undefined
      ? '# SVC_CONTROL_PSK= is shown once, when it is issued: svcctl node env NODE --issue'
      : `SVC_CONTROL_PSK=${psk}`;
  return `SVC_AGENT_ID=${nodeId}\nSVC_CONTROL_ENDPOINT=${endpoint}\n${secret}\n`;
}
