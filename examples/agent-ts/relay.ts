/**
 * The data plane of the example: RAW TCP rules, whose next hop is an endpoint. Everything else is rejected with the field that asks
 * for it: docs/agent-protocol.md, "Rules".
 */
import { connect, createServer, type Server, type Socket } from 'node:net';

/** What the example reads of a rule; proto/svc/control/v1/rules.proto has all of it. */
interface Rule {
  readonly origin: { resourceType: string; resourceId: string; resourceName: string; hopIndex: number };
  readonly listenAddr: string;
  readonly listenPort: number;
  readonly mode?: string;
  readonly outbound?: {
    readonly next?: string;
    readonly endpoint: string;
    readonly transportProfile: { security: string };
  };
  readonly serverNames?: readonly string[];
}
export interface Snapshot {
  readonly generation: string;
  readonly checksum: Buffer;
  readonly gateway?: { readonly [kind: string]: readonly Rule[] | object };
  readonly l3?: { readonly rules: readonly Rule[] };
  readonly node?: { readonly multiplex: boolean };
}
interface ApplyError {
  readonly resourceType: string;
  readonly resourceId: string;
  readonly path: string;
  readonly message: string;
}
interface Listener {
  next: string;
  service: string;
  readonly address: string;
  readonly port: number;
  readonly server: Server;
  bytesIn: number;
  bytesOut: number;
  sessions: number;
}

/** By address and port. */
const running = new Map<string, Listener>();

const errorOf = ({ origin }: Rule, field: string, message: string): ApplyError => ({
  resourceType: origin.resourceType,
  resourceId: origin.resourceId,
  path: { l3_network: 'tunnels', route: 'backend' }[origin.resourceType] ?? `hops[${origin.hopIndex}].${field}`,
  message,
});

function objections({ gateway = {}, l3, node }: Snapshot): readonly ApplyError[] {
  const list = (kind: string): readonly Rule[] => (gateway[kind] as readonly Rule[] | undefined) ?? [];
  const others = [...list('httpProxyRules'), ...list('quicRules'), ...list('udpRules'), ...(l3?.rules ?? [])];
  const wrong = list('tcpProxyRules').filter(
    ({ mode, serverNames = [], outbound }) =>
      mode !== 'TCP_PROXY_MODE_RAW' ||
      serverNames.length > 0 ||
      outbound?.next !== 'endpoint' ||
      outbound.transportProfile.security !== 'SECURITY_LAYER_RAW',
  );
  const errors = [...others, ...wrong].map((rule) =>
    errorOf(rule, 'security', 'this agent runs RAW TCP to an endpoint only'),
  );
  const multiplex = {
    resourceType: 'connectivity',
    resourceId: 'connectivity',
    path: 'multiplex',
    message: 'this agent does not multiplex',
  };
  return node?.multiplex === true ? [...errors, multiplex] : errors;
}

function relay(client: Socket, listener: Listener): void {
  const cut = listener.next.lastIndexOf(':');
  const host = listener.next.slice(0, cut).replace(/^\[|\]$/g, '');
  const upstream = connect({ host, port: Number(listener.next.slice(cut + 1)), allowHalfOpen: true });
  for (const counted of [listener, totals]) {
    counted.sessions += 1;
    client.on('data', (data) => void (counted.bytesIn += data.length));
    upstream.on('data', (data) => void (counted.bytesOut += data.length));
  }
  client.pipe(upstream).pipe(client);
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.on('error', () => other.resetAndDestroy());
  }
}

/** Applies all of a snapshot, or nothing. @returns why not */
export async function apply(snapshot: Snapshot): Promise<readonly ApplyError[]> {
  const errors = [...objections(snapshot)];
  if (errors.length > 0) return errors;
  const rules = (snapshot.gateway?.['tcpProxyRules'] ?? []) as readonly Rule[];
  const wanted = new Map(rules.map((rule) => [`${rule.listenAddr} ${rule.listenPort}`, rule]));
  const opened = new Map<string, Listener>();
  for (const [key, rule] of wanted) {
    if (running.has(key)) continue;
    const server = createServer({ allowHalfOpen: true }, (client) => relay(client, listener));
    const counts = { bytesIn: 0, bytesOut: 0, sessions: 0 };
    const listener: Listener = {
      next: '',
      service: '',
      address: rule.listenAddr,
      port: rule.listenPort,
      server,
      ...counts,
    };
    const failure = await new Promise<Error | undefined>((resolve) => {
      server.once('error', resolve);
      server.listen(rule.listenPort, rule.listenAddr, () => resolve(undefined));
    });
    if (failure === undefined) opened.set(key, listener);
    else errors.push(errorOf(rule, 'listen_port', failure.message));
  }
  if (errors.length > 0) {
    for (const { server } of opened.values()) server.close();
    return errors;
  }
  for (const [key, listener] of opened) running.set(key, listener);
  for (const [key, listener] of running) {
    const rule = wanted.get(key);
    if (rule !== undefined) {
      listener.next = rule.outbound?.endpoint ?? '';
      listener.service = rule.origin.resourceName;
    } else if (running.delete(key)) listener.server.close();
  }
  return [];
}

/** The whole table, for heartbeats. */
export const table = (): readonly object[] =>
  [...running.values()].map(({ address, port, next, service, bytesIn, bytesOut, sessions }) => ({
    transport: 'tcp',
    listenAddr: address,
    listenPort: port,
    state: 'running',
    routes: [{ service, payload: 'tcp', outer: 'tcp', security: 'raw', matchKind: 'default', nextHop: next }],
    bytesIn,
    bytesOut,
    totalSessions: sessions,
  }));

/** Since the start of the process, over all listeners. */
export const totals = { bytesIn: 0, bytesOut: 0, sessions: 0 };
