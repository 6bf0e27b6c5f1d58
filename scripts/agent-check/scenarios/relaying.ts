/** What passes through a RAW rule: bytes, ends of directions, resets; and how the agent counts and names it. */
import type { RuntimeListener } from '../../../src/gen/svc/control/v1/heartbeat.js';
import type { MetricsReport } from '../../../src/gen/svc/control/v1/metrics.js';
import { CannotGoOn, applied, expectOf, firstSession, liveSession, saidOf, type Play, type Scenario } from '../play.js';
import { holdsSoon, openUpstream, type Peer, type Upstream } from '../peers.js';
import { freePort, makeSnapshot } from '../site.js';

/** A byte takes less than this there and back, at least once in several tries on a busy machine. */
const promptMs = 500;
const tries = 8;
/** Of different sizes, so that what goes up is not taken for what goes down. */
const request = Buffer.alloc(1_000, 'x');
const answer = Buffer.alloc(1_700, 'y');

interface Joined {
  readonly client: Peer;
  readonly server: Peer;
}

/** What went through the agent so far. */
interface Traffic {
  up: number;
  down: number;
  sessions: number;
  errors: number;
}

export const relaying: Scenario = {
  name: 'relaying',
  about: 'bytes both ways, the end of each direction, a reset of each side; the counters and the route of the listener',
  async play(play) {
    const { node, site } = play;
    node.plays.grant.heartbeatIntervalSecs = 1;
    node.plays.grant.metricsIntervalSecs = 1;
    await firstSession(play);
    const [upstream, port] = [await openUpstream(), await freePort()];
    const traffic: Traffic = { up: 0, down: 0, sessions: 0, errors: 0 };
    const join = async (): Promise<Joined> => {
      const joined = await upstream.join(port);
      const observed = `a client of port ${port} does not reach the next hop`;
      if (!play.check('relays', joined !== undefined, observed) || joined === undefined) throw new CannotGoOn(observed);
      traffic.sessions += 1;
      return joined;
    };
    try {
      await applied(play, makeSnapshot(node, { upstream: upstream.address }, { ports: [port] }));
      const before = await nextMetrics(play);
      await isPrompt(play, await join(), traffic);
      await clientEndsFirst(play, await join(), traffic);
      await serverEndsFirst(play, await join(), traffic);
      await passesResets(play, join, traffic);
      await counts(play, port, traffic, before);
      await namesItsRoute(play, port, upstream);
    } finally {
      upstream.close();
    }
    // The listener has no next hop any more.
    await applied(play, makeSnapshot(node, site));
  },
};

/** Sends bytes to the other end. @returns whether exactly as many arrive */
async function passes(bytes: Buffer, from: Peer, to: Peer): Promise<boolean> {
  const expected = to.receivedBytes + bytes.length;
  from.socket.write(bytes);
  await holdsSoon(() => to.receivedBytes >= expected);
  return to.receivedBytes === expected;
}

async function isPrompt({ check }: Play, { client, server }: Joined, traffic: Traffic): Promise<void> {
  let fastestMs = Number.POSITIVE_INFINITY;
  for (let done = 0; done < tries && fastestMs > promptMs; done += 1) {
    const started = performance.now();
    const arrived = (await passes(request, client, server)) && (await passes(answer, server, client));
    traffic.up += request.length;
    traffic.down += answer.length;
    if (!check('relays', arrived, 'other bytes arrived than were sent, or fewer')) return;
    fastestMs = Math.min(fastestMs, performance.now() - started);
  }
  check('prompt', fastestMs <= promptMs, `bytes take ${Math.round(fastestMs)} ms there and back, at best`);
  client.socket.end();
  server.socket.end();
  await holdsSoon(() => client.state === 'ended' && server.state === 'ended');
}

async function clientEndsFirst({ check }: Play, { client, server }: Joined, traffic: Traffic): Promise<void> {
  client.socket.end(request);
  traffic.up += request.length;
  const isPassedOn = await holdsSoon(() => server.state !== 'open');
  check(
    'halfClose',
    isPassedOn && server.state === 'ended',
    `the client ended its direction; its next hop: ${server.state}`,
  );
  check('relays', server.receivedBytes === request.length, 'bytes before the end of a direction were lost');
  const stayedOpen = client.state === 'open' && (await passes(answer, server, client));
  traffic.down += answer.length;
  check('halfClose', stayedOpen, 'the next hop cannot send to a client that has ended its own direction');
  server.socket.end();
  await holdsSoon(() => client.state !== 'open');
  check('halfClose', client.state === 'ended', `both directions ended; the client: ${client.state}`);
}

async function serverEndsFirst({ check }: Play, { client, server }: Joined, traffic: Traffic): Promise<void> {
  server.socket.end(answer);
  traffic.down += answer.length;
  const isPassedOn = await holdsSoon(() => client.state !== 'open');
  check(
    'halfClose',
    isPassedOn && client.state === 'ended',
    `the next hop ended its direction; the client: ${client.state}`,
  );
  const stayedOpen = server.state === 'open' && (await passes(request, client, server));
  traffic.up += request.length;
  check('halfClose', stayedOpen, 'a client cannot send to a next hop that has ended its own direction');
  client.socket.end();
  await holdsSoon(() => server.state !== 'open');
}

async function passesResets({ check }: Play, join: () => Promise<Joined>, traffic: Traffic): Promise<void> {
  for (const side of ['client', 'server'] as const) {
    const joined = await join();
    const other = side === 'client' ? joined.server : joined.client;
    joined[side].socket.resetAndDestroy();
    traffic.errors += 1;
    await holdsSoon(() => other.state !== 'open');
    const observed = `${side === 'client' ? 'a client was reset; its next hop' : 'a next hop was reset; its client'}: ${other.state}`;
    check('resets', other.state === 'reset', observed);
  }
}

const nextMetrics = (play: Play): Promise<MetricsReport> => {
  const reports = (): readonly MetricsReport[] => saidOf(liveSession(play), 'metrics');
  const known = reports().length;
  return expectOf(play, 'metrics', 'no MetricsReport', () => reports()[known]);
};

const listenerOf = (play: Play, port: number): RuntimeListener | undefined =>
  saidOf(liveSession(play), 'heartbeat')
    .at(-1)
    ?.runtimeListeners.find(({ listenPort }) => listenPort === port);

/** How long the newest report may take to hold everything. */
const countedWithinMs = 6_000;

async function counts(play: Play, port: number, traffic: Traffic, before: MetricsReport): Promise<void> {
  const { node, check } = play;
  const listener = (): RuntimeListener | undefined => listenerOf(play, port);
  const isOf = (value: bigint | undefined, expected: number): boolean =>
    value === undefined || value === BigInt(expected);
  const figures = (): string => {
    const { bytesIn, bytesOut, activeSessions, totalSessions, errorSessions } = listener() ?? {};
    return `bytes_in ${bytesIn}, bytes_out ${bytesOut}, sessions ${activeSessions} active, ${totalSessions} in all, ${errorSessions} with an error`;
  };
  const bytes = (): boolean => isOf(listener()?.bytesIn, traffic.up) && isOf(listener()?.bytesOut, traffic.down);
  const sessions = (): boolean =>
    isOf(listener()?.activeSessions, 0) && isOf(listener()?.totalSessions, traffic.sessions);
  const errors = (): boolean => isOf(listener()?.errorSessions, traffic.errors);
  await node.until(() => (listener() && bytes() && sessions() && errors() ? true : undefined), countedWithinMs);
  check('bytesOfClients', bytes(), `${figures()}, after ${traffic.up} bytes from clients and ${traffic.down} to them`);
  check('sessionsCounted', sessions(), `${figures()}, after ${traffic.sessions} connections, all of them over`);
  check('errorsCounted', errors(), `${figures()}, after ${traffic.errors} resets`);

  const last = await nextMetrics(play);
  const grown = (name: 'bytesIn' | 'bytesOut'): bigint =>
    (last.bandwidth?.[name] ?? 0n) - (before.bandwidth?.[name] ?? 0n);
  const isSum = grown('bytesIn') === BigInt(traffic.up) && grown('bytesOut') === BigInt(traffic.down);
  const observed = `the node's bytes grew by ${grown('bytesIn')} and ${grown('bytesOut')}, with ${traffic.up} from clients and ${traffic.down} to them`;
  check('countersRise', isSum, observed);
}

async function namesItsRoute(play: Play, port: number, upstream: Upstream): Promise<void> {
  const route = listenerOf(play, port)?.routes[0];
  play.check('nextHop', route?.nextHop === upstream.address, `next_hop "${route?.nextHop}" of ${upstream.address}`);
  const isDefault = route?.matchKind === 'default' && route.matchValue === '';
  play.check(
    'matchOfRoute',
    isDefault,
    `a RAW rule with match_kind "${route?.matchKind}", match_value "${route?.matchValue}"`,
  );
}
