/** The search parameters of the page of ports: the filters of the API, under the same names. */
import { pageOf, textOf, wordOf, type Search } from '../shared/search.js';

const transports = ['tcp', 'udp'] as const;
const runningWords = ['true', 'false'] as const;

/** A port that the API takes. */
function portOf(search: Search): number | undefined {
  const port = Number(search['listen_port']);
  return Number.isInteger(port) && port >= 1 && port <= 65_535 ? port : undefined;
}

export const portsSearch = (search: Search) => ({
  node_id: textOf(search, 'node_id'),
  transport: wordOf(search, 'transport', transports),
  listen_port: portOf(search),
  running: wordOf(search, 'running', runningWords),
  page: pageOf(search),
});

export type PortsSearch = ReturnType<typeof portsSearch>;
