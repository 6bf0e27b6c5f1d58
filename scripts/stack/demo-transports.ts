/**
 * The part of the demo that shows transports: a hop inside TLS with a pinned key, one port shared by several chains and
 * a route, UDP, and a certificate that is replaced under traffic. Everything between two nodes that are online.
 */
import {
  askOverUdp,
  expectEqual,
  fetchThrough,
  httpTarget,
  httpsTarget,
  startTraffic,
  udpTarget,
  type DemoTarget,
} from './demo-traffic.js';
import { eventually, freePorts } from './process.js';
import type { RestClient } from './rest-client.js';
import type { Story } from './story.js';

interface TransportsTour {
  readonly story: Story;
  readonly admin: RestClient;
  /** Ids of the two nodes. */
  readonly edge: string;
  readonly relay: string;
}

interface CredentialAnswer {
  readonly id: string;
  readonly certificate: { readonly spki_sha256: string };
}

interface DeployAnswer {
  readonly deployment: { readonly nodes: readonly { readonly state: string; readonly errors: readonly unknown[] }[] };
}

interface PortsAnswer {
  readonly items: readonly {
    readonly listenPort: number;
    readonly totalSessions?: number;
    readonly routes: readonly { readonly matchKind: string; readonly matchValue: string }[];
  }[];
}

interface LinksAnswer {
  readonly items: readonly { readonly rtt_ms: number | null }[];
}

/** From the edge to the relay: the existing chain, the one inside TLS, the one passed on, and the route. */
const tcpLinks = 4;

function matchesOf(listener: PortsAnswer['items'][number] | undefined): readonly string[] {
  return (listener?.routes ?? []).map(({ matchKind, matchValue }) => `${matchKind} ${matchValue}`).sort();
}

/** Runs the steps; the resources they deploy stay. */
export async function tourTransports({ story, admin, edge, relay }: TransportsTour): Promise<void> {
  const targets: DemoTarget[] = [];
  const target = async (made: Promise<DemoTarget>): Promise<string> => {
    const one = await made;
    targets.push(one);
    return `127.0.0.1:${one.port}`;
  };
  const certificate = (name: string, common_name: string): Promise<CredentialAnswer> =>
    admin.call('POST', '/api/credentials', { name, key_type: 'tls_cert', self_signed: { common_name } });
  const hop = (node_id: string, listen_port: number | undefined, more: object): object => ({
    node_id,
    listen_addr: '127.0.0.1',
    listen_port,
    outer: 'tcp',
    security: 'raw',
    ...more,
  });
  /** Creates a chain, deploys it, and waits until its nodes run it. */
  const deploy = async (name: string, payload: string, hops: readonly object[], endpoint: string): Promise<void> => {
    const body = { name, payload, hops, target: { endpoint } };
    const { id } = await admin.call<{ id: string }>('POST', '/api/l4-chains', body);
    const { deployment } = await admin.call<DeployAnswer>('POST', `/api/l4-chains/${id}/deploy?wait=applied`);
    const wrong = deployment.nodes.filter(({ state }) => state !== 'applied');
    expectEqual(`nodes that do not run ${name}`, wrong, []);
  };
  const [entry = 0, inner = 0, shared = 0, passed = 0, route = 0, udp = 0, udpInner = 0] = await freePorts(7);

  try {
    const inside = await story.step('make a certificate; deploy a chain whose second hop is inside TLS', async () => {
      const made = await certificate('inner hop', 'relay.internal');
      const hops = [hop(edge, entry, {}), hop(relay, inner, { security: 'tls', credential_id: made.id })];
      await deploy('inside TLS', 'tcp', hops, await target(httpTarget('inside')));
      const { text } = await fetchThrough(entry);
      expectEqual('the answer', text, 'hello from inside');
      return { value: made, text: `client → edge:${entry} ═TLS═ relay:${inner} → "${text}"; pin ${spkiText(made)}` };
    });

    await story.step('let a TLS chain, a chain that is only looked at, and an HTTP route share one port', async () => {
      const shop = await certificate('shop', 'shop.example');
      const shopHop = hop(edge, shared, { security: 'tls', credential_id: shop.id });
      await deploy('shop', 'tcp', [shopHop], await target(httpTarget('shop')));
      const hops = [hop(edge, shared, { server_names: ['*.passed.example'] }), hop(relay, passed, {})];
      await deploy(
        'passed on',
        'tcp',
        hops,
        await target(httpsTarget('a server with its own TLS', 'x.passed.example')),
      );
      await admin.call('POST', '/api/routes', {
        name: 'web',
        host: 'web.example',
        path_prefix: '/shop',
        hops: [edge, relay].map((node_id, index) => ({
          node_id,
          listen_addr: '127.0.0.1',
          listen_port: index === 0 ? shared : route,
        })),
        backend: await target(httpTarget('the route')),
      });
      const terminated = await fetchThrough(shared, { host: 'shop.example', tls: true });
      expectEqual('shop.example', terminated, { text: 'hello from shop', spki: shop.certificate.spki_sha256 });
      const through = await fetchThrough(shared, { host: 'x.passed.example', tls: true });
      expectEqual('x.passed.example', through.text, 'hello from a server with its own TLS');
      const answer = await eventually('the route answers', async () =>
        fetchThrough(shared, { host: 'web.example', path: '/shop/1' }).catch(() => undefined),
      );
      expectEqual('web.example', answer.text, 'hello from the route');
      return `edge:${shared}: https://shop.example, https://x.passed.example, http://web.example/shop`;
    });

    await story.step('send datagrams through a UDP chain', async () => {
      const hops = [hop(edge, udp, { outer: 'udp' }), hop(relay, udpInner, { outer: 'udp' })];
      await deploy('datagrams', 'udp', hops, await target(udpTarget('udp')));
      const answer = await askOverUdp(udp, 'ping');
      expectEqual('the answer', answer, 'udp: ping');
      return `"${answer}"`;
    });

    await replaceCertificate({ story, admin }, entry, inside);
    await compareReports({ story, admin, edge }, shared);
  } finally {
    for (const one of targets) one.close();
  }
}

/** @param entry where the chain inside TLS begins @param inside its certificate */
async function replaceCertificate(
  { story, admin }: Pick<TransportsTour, 'story' | 'admin'>,
  entry: number,
  inside: CredentialAnswer,
): Promise<void> {
  await story.step('replace the certificate of the TLS hop while traffic flows', async () => {
    const traffic = startTraffic(entry);
    const succeed = (more: number): Promise<true> => {
      const wanted = traffic.count.ok + more;
      return eventually('traffic flows', async () => (traffic.count.ok >= wanted ? true : undefined));
    };
    try {
      await succeed(10);
      const path = `/api/credentials/${inside.id}`;
      const self_signed = { common_name: 'relay.internal' };
      const renewed = await admin.call<CredentialAnswer>('PUT', path, { self_signed });
      if (spkiText(renewed) === spkiText(inside)) throw new Error('the key is the same');
      await eventually('the nodes run it', async () => {
        const { items } = await admin.call<{ items: readonly { generation: number; applied_generation: number }[] }>(
          'GET',
          '/api/nodes',
        );
        return items.every((node) => node.generation === node.applied_generation) ? true : undefined;
      });
      await succeed(10);
      expectEqual('failed requests', traffic.count.failed, 0);
      return `pin ${spkiText(inside)} → ${spkiText(renewed)}: ${traffic.count.ok} requests, 0 failed`;
    } finally {
      await traffic.stop();
    }
  });
}

/** @param shared the port of several chains and a route */
async function compareReports(
  { story, admin, edge }: Pick<TransportsTour, 'story' | 'admin' | 'edge'>,
  shared: number,
): Promise<void> {
  await story.step('compare what agents report with what is intended', async () => {
    const { items } = await admin.call<PortsAnswer>('GET', `/api/nodes/ports?node_id=${edge}`);
    const intended = matchesOf(items.find(({ listenPort }) => listenPort === shared));
    const path = `/api/nodes/ports/runtime?node_id=${edge}&listen_port=${shared}`;
    await eventually('the agent reports every request', async () => {
      const { nodes } = await admin.call<{ nodes: readonly { listeners: PortsAnswer['items'] }[] }>('GET', path);
      const [listener] = nodes[0]?.listeners ?? [];
      expectEqual('the routes that run', matchesOf(listener), intended);
      return (listener?.totalSessions ?? 0) >= 3 ? true : undefined;
    });
    const rtts = await eventually('every TCP link is measured', async () => {
      const links = (await admin.call<LinksAnswer>('GET', '/api/nodes/links')).items;
      const measured = links.flatMap(({ rtt_ms }) => (rtt_ms === null ? [] : [rtt_ms]));
      return measured.length === tcpLinks ? measured : undefined;
    });
    const slowest = Math.max(...rtts).toFixed(1);
    return `edge:${shared} runs ${intended.length} routes, as intended; ${rtts.length} links measured, at most ${slowest} ms`;
  });
}

const spkiText = ({ certificate }: CredentialAnswer): string => `${certificate.spki_sha256.slice(0, 12)}…`;
