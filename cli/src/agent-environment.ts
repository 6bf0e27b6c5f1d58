/** The environment file of an agent. */
import { dataOf, type Api } from './service.js';

/** Where agents reach the service, as the service says. */
export const agentEndpoint = async (api: Api): Promise<string> =>
  (await dataOf(api.GET('/api/nodes/control-endpoint'))).endpoint;

/** @param psk without it, the file has a comment in its place */
export function environmentOf(nodeId: string, endpoint: string, psk: string | undefined): string {
  const secret =
    psk === undefined
      ? '# SVC_CONTROL_PSK= is shown once, when it is issued: svcctl node env NODE --issue'
      : `SVC_CONTROL_PSK=${psk}`;
  return `SVC_AGENT_ID=${nodeId}\nSVC_CONTROL_ENDPOINT=${endpoint}\n${secret}\n`;
}
