/** The words of a node's configuration: a sentence for each part of it, and names of what may differ. */
import { formatCount, formatMilliseconds } from '../shared/ui/format.js';
import { say, type Part, type Words } from './config-parts.js';
import type { RealityInbound } from './config-snapshot.js';

const list = (items: readonly string[]): string => items.join(', ');

export const configText = {
  title: (name: string) => `Configuration of ${name}`,
  generation: 'Generation',
  generationHint: 'Empty: the newest',
  compareWith: 'Compare with',
  compareHint: 'An earlier generation',
  readable: 'In sentences',
  raw: 'Raw',
  checksum: 'Checksum',
  compiledToday: 'Earlier generations are compiled from the log by this release; secrets are masked.',
  noDifference: (one: string, other: string) => `Generations ${one} and ${other} are identical.`,
  onlySecrets: (one: string, other: string) =>
    `Generations ${one} and ${other} read the same. If something was changed between them, it was a key or another secret, which is not shown.`,
  difference: (one: string, other: string) => `From generation ${one} to ${other}`,
  tooDifferent: 'They differ too much to compare line by line.',
  unchangedLines: (count: string) => `${count} unchanged lines`,
  groups: {
    listeners: 'Listeners',
    tunnels: 'L3 networks',
    upstreams: 'Upstreams',
    certificates: 'Certificates',
    policies: 'Listener policies',
    settings: 'Settings',
  },
  nothing: 'It listens nowhere, dials nobody and is in no network: nothing that is deployed goes over this node.',
  kinds: { added: 'Added', gone: 'Gone', changed: 'Changed' },
  fromTo: (from: Words, to: Words) => say`${from} → ${to}`,
  nothingThere: 'nothing',

  /** What may differ in a part. */
  facts: {
    listens: 'Listens on',
    used: 'Used for',
    takes: 'Takes',
    passes: 'Passes to',
    pins: 'Pins of the next hop',
    keys: 'Keys of the next hop',
    streams: 'Streams of a connection',
    endpoint: 'Endpoint',
    names: 'Server names',
    checked: 'Health check',
    connections: 'New connections',
    order: 'Order',
    interface: 'Interface',
    routes: 'Routes',
    sources: 'Takes packets from',
    multiplex: 'Multiplexing',
    certificate: 'Certificate',
    rest: 'Details',
  },
  asBefore: 'as before',
  other: 'another; the raw tab shows it',

  origins: { l4_chain: 'chain', route: 'route', l3_network: 'network' } as Readonly<Record<string, string>>,
  origin: (noun: string, ref: Part) => say`${noun} ${ref}`,
  hop: (listens: Words, origin: Words, takes: Words, passes: Words) =>
    say`Listens on ${listens} for ${origin}, takes ${takes}, and passes to ${passes}.`,
  http: (listens: Words, origin: Words, address: string, passes: Words) =>
    say`Listens on ${listens} for ${origin}, takes HTTP for ${address}, and passes to ${passes}.`,
  plain: (outer: string) => `plain ${outer}`,
  byName: (names: readonly string[]) => `TLS connections for ${list(names)} unopened`,
  tls: (names: readonly string[], certificate: Part) =>
    say`TLS${names.length === 0 ? '' : ` for ${list(names)}`} with certificate ${certificate}`,
  reality: (over: string, { server_names, short_ids, target_host, target_port }: RealityInbound) =>
    `REALITY over ${over} as ${list(server_names)}${short_ids.some(Boolean) ? ` (short id ${list(short_ids.filter(Boolean))})` : ''}, others see ${target_host}:${target_port}`,
  noise: (outer: string) => `Noise over ${outer}`,
  next: (node: Part, endpoint: string) => say`${node} (${endpoint})`,
  over: (next: Words, security: string) => say`${next} over ${security}`,
  outers: { TCP: 'TCP', UDP: 'UDP', QUIC: 'QUIC', FAKE_TCP: 'fake TCP' } as Readonly<Record<string, string>>,
  securities: { TLS: 'TLS', REALITY: 'REALITY', NOISE: 'Noise' } as Readonly<Record<string, string>>,
  named: (security: string, name: string) => (name === '' ? security : `${security} as ${name}`),
  atMost: (streams: number) => `at most ${formatCount(streams)}`,

  upstream: (ref: Part, endpoints: readonly string[], checked: string, enabled: boolean) =>
    enabled
      ? say`Dials upstream ${ref} at ${list(endpoints)}, ${checked}.`
      : say`Takes no new connections to upstream ${ref} (${list(endpoints)}), which is disabled; ${checked}.`,
  everyMs: (interval: number) => `checked every ${formatMilliseconds(interval)}`,
  unchecked: 'not checked',
  accepted: 'accepted',
  refused: 'refused',

  ends: (day: string) => `ends ${day}`,
  certificate: (ref: Part, names: readonly string[]) => say`Holds certificate ${ref} for ${list(names)}.`,
  policy: (listens: string, [first = '', ...others]: readonly string[]) =>
    `On ${listens}, tries ${first} first, then ${list(others)}.`,
  listener: (origin: Words, listens: string, wanted: Words) => say`Takes a tunnel of ${origin} on ${listens}${wanted}.`,
  connector: (origin: Words, peer: string, wanted: Words) => say`Dials a tunnel of ${origin} at ${peer}${wanted}.`,
  through: (interfaceName: string, prefixes: readonly string[], routes: readonly string[], mtu: number) =>
    `, on interface ${interfaceName} with ${list(prefixes)} (MTU ${mtu})${routes.length === 0 ? '' : `, for ${list(routes)}`}`,
  multiplexes: (port: number) => `Takes multiplexed connections on tcp port ${port}.`,
  onPort: (port: number) => `on tcp port ${port}`,
  empty: 'none',
} as const;
