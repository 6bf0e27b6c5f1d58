/** `ServerFeatures` and `Gossip`: what 23.10.8 reports about itself. */
import { structuredUuid } from './calls.js';
import type { Faults } from './faults.js';
import type { Plain } from './wire.js';

const client = 'event_store.client.';
const startedAt = Date.now();
const subscriptionFeatures = ['stream', 'all'];

/** Services, their methods, and the features reported for some of them. */
const services: readonly (readonly [string, readonly (readonly [string, (readonly string[])?])[]])[] = [
  ['redaction.redaction', [['geteventpositions'], ['switchchunks']]],
  [
    'persistent_subscriptions.persistentsubscriptions',
    ['create', 'update', 'delete', 'read', 'getinfo', 'replayparked', 'list', 'restartsubsystem'].map(
      (method) => [method, subscriptionFeatures] as const,
    ),
  ],
  [
    'users.users',
    ['create', 'update', 'delete', 'disable', 'enable', 'details', 'changepassword', 'resetpassword'].map(
      (method) => [method] as const,
    ),
  ],
  [
    'streams.streams',
    [['read', ['position', 'events']], ['append'], ['delete'], ['tombstone'], ['batchappend', ['deadline_duration']]],
  ],
  [
    'operations.operations',
    [
      'startscavenge',
      'stopscavenge',
      'shutdown',
      'mergeindexes',
      'resignnode',
      'setnodepriority',
      'restartpersistentsubscriptions',
    ].map((method) => [method] as const),
  ],
  ['gossip.gossip', [['read']]],
  ['monitoring.monitoring', [['stats']]],
  ['server_features.serverfeatures', [['getsupportedmethods']]],
];

export const supportedMethods: Plain = {
  methods: services.flatMap(([service, methods]) =>
    methods.map(([methodName, features]) => ({
      methodName,
      serviceName: client + service,
      ...(features === undefined ? {} : { features }),
    })),
  ),
  eventStoreServerVersion: '23.10.8',
};

/**
 * One node, or this one as a follower beside its leader. Times are ticks of 100 ns. A node without others renews its own
 * only when its role changes, so this one's stays at the time of its start.
 */
export function clusterInfo(host: string, port: number, faults: Faults): Plain {
  const member = (state: string, address: string, at: number): Plain => ({
    instanceId: structuredUuid(`00000000-0000-4000-8000-${String(at).padStart(12, '0')}`),
    timeStamp: `${startedAt}0000`,
    state,
    isAlive: !faults.noNodes,
    httpEndPoint: { address, port: at },
  });
  const { leader } = faults;
  if (leader === undefined) return { members: [member('Leader', host, port)] };
  return { members: [member('Follower', host, port), member('Leader', leader.host, leader.port)] };
}
